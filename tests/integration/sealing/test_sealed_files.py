"""What sealing writes: files that say what the store said, a manifest, and views for a DuckDB that has only those."""

import hashlib
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest_service.store.manifest import read_manifest
from ingest_service.store.public_views import KEPT_TABLES, PUBLIC_TABLES
from ingest_service.store.schema import shipped_migrations
from linkbound import __version__
from linkbound.domain.run import RunState, SealRunRequest
from linkbound.domain.samples import SampleColumns
from tests.integration.sealing.content import (
    COUNTS,
    SEALED_TABLES,
    filled,
    hot_row_count,
    script_rows,
    sealed_names,
    view_rows,
)
from tests.integration.sql.asking import rows_of
from tests.integration.store_content import RUN, batch, opened, stream, with_run

pytestmark = pytest.mark.storage


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """A folder with a closed store that has one sealed run."""
    with opened(tmp_path) as store:
        filled(store).seal_run(SealRunRequest(run=RUN, expected_row_count=COUNTS.total_row_count))
    return tmp_path


def fetched(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        rows: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
        return rows


def run_folder(folder: Path) -> Path:
    return folder / "sealed" / f"run_id={RUN}"


def test_every_table_with_rows_has_a_file_and_the_store_has_none_left(sealed: Path) -> None:
    names = {path.name for path in run_folder(sealed).iterdir()}
    assert names == {*(f"{name}.parquet" for name in SEALED_TABLES), "manifest.json"}
    assert hot_row_count(sealed) == 0
    assert sealed_names(sealed) == {f"run_id={RUN}"}


def test_files_are_compressed_and_leave_the_run_to_the_name_of_their_folder(sealed: Path) -> None:
    for name in SEALED_TABLES:
        path = run_folder(sealed) / f"{name}.parquet"
        columns = fetched(f"SELECT path_in_schema, compression FROM parquet_metadata('{path}')")
        assert "run_id" not in {column for column, _ in columns}
        assert {compression for _, compression in columns} == {"ZSTD"}


@pytest.mark.parametrize(
    ("table", "order"),
    [
        ("counter_samples", "series_id, time_ns"),
        ("series", "series_id"),
        ("requests", "subject, round_index, request_index, prompt_tokens"),
        ("tokens", "subject, round_index, request_index, sequence_number, record_index, chunk_index"),
        ("ledger", "writer_id, sequence_number"),
        ("collectives", "writer_id, sequence_number, record_index"),
        ("events", "writer_id, sequence_number, record_index"),
    ],
)
def test_rows_of_a_file_are_sorted(sealed: Path, table: str, order: str) -> None:
    source = f"read_parquet('{run_folder(sealed) / f'{table}.parquet'}', file_row_number = true)"
    places = fetched(f"SELECT file_row_number FROM {source} ORDER BY {order}")
    assert places == sorted(places)
    assert len(places) > 1


def test_the_views_show_the_same_before_and_after_and_without_the_store(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        filled(filled(store), "other")
    before = {name: view_rows(tmp_path, name) for name in PUBLIC_TABLES}
    others = {name: view_rows(tmp_path, name, "other") for name in PUBLIC_TABLES}
    with opened(tmp_path) as store:
        store.seal_run(SealRunRequest(run=RUN))
    for name in PUBLIC_TABLES:
        assert view_rows(tmp_path, name, "other") == others[name]
        after = view_rows(tmp_path, name)
        assert after.schema == before[name].schema
        if name == "runs":
            changed = ("state", "seal_time_utc")
            assert after["state"].to_pylist() == ["SEALED"]
            assert after.drop_columns(changed) == before[name].drop_columns(changed)
        else:
            assert after == before[name]
            assert after.num_rows > 0 or name not in SEALED_TABLES
        assert script_rows(tmp_path, name) == after


def test_what_a_clock_that_was_set_back_left_is_read_as_before(tmp_path: Path) -> None:
    sql = "SELECT * FROM v_intervals ORDER BY ALL"
    with opened(tmp_path) as store:
        session = with_run(store).open_stream(stream())
        for number, times in enumerate(([1000, 1010, 1020], [1015, 1016], [400, 410, 420], [430, 1030]), 1):
            values = [4096 * number + time for time in times]
            session.submit(batch(number, SampleColumns(series_index=0, time_ns=times, value=values))).result()
        session.close()
        before = rows_of(store, sql)
        store.seal_run(SealRunRequest(run=RUN))
        assert rows_of(store, sql) == before
        assert len(before) == 3


def test_the_views_of_the_script_have_the_comments_and_the_other_views_of_the_store(sealed: Path) -> None:
    sql = (
        "SELECT table_name, column_name, data_type, comment FROM duckdb_columns()"
        " WHERE schema_name = 'main' AND NOT internal ORDER BY ALL"
    )
    with duckdb.connect(str(sealed / "linkbound.duckdb"), read_only=True) as connection:
        expected = connection.execute(sql).fetchall()
    with pytest.MonkeyPatch.context() as context, duckdb.connect() as connection:
        context.chdir(sealed / "sealed")
        connection.execute((sealed / "sealed" / "views.sql").read_text(encoding="utf-8"))
        assert connection.execute(sql).fetchall() == expected
    assert {name for name, _, _, _ in expected} >= set(PUBLIC_TABLES)


def test_the_manifest_says_what_the_files_are(sealed: Path) -> None:
    manifest = read_manifest(run_folder(sealed))
    assert manifest.run_id == RUN
    assert manifest.schema_version == shipped_migrations()[-1].version
    assert manifest.linkbound_version == __version__
    assert set(manifest.empty_tables) == set(PUBLIC_TABLES) - set(SEALED_TABLES)
    files = {file.table: file for file in manifest.files}
    assert set(files) == set(SEALED_TABLES)
    for name, file in files.items():
        content = (run_folder(sealed) / f"{name}.parquet").read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size_bytes, file.sha256)
        assert fetched(f"SELECT count(*) FROM '{run_folder(sealed) / name}.parquet'") == [(file.row_count,)]
    assert files["counter_samples"].row_count == COUNTS.sample_count
    times = files["counter_samples"].time_range
    assert times is not None
    assert (times.column, times.least, times.greatest) == ("time_ns", 1000, 4049)
    with opened(sealed) as store:
        run = store.get_run(RUN).run
        assert run.seal_time == manifest.seal_time
        assert run.sealed_path == str(run_folder(sealed))
        kept = sum(files[name].size_bytes for name in KEPT_TABLES)
        assert run.sealed_size_bytes == manifest.size_bytes > kept


def test_the_manifest_is_plain_json(sealed: Path) -> None:
    content = json.loads((run_folder(sealed) / "manifest.json").read_text(encoding="utf-8"))
    assert content["run_id"] == RUN
    assert content["seal_time"].startswith("2026-01-01T00:")


def test_a_run_without_rows_is_sealed_with_what_tells_of_it(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        run = with_run(store).seal_run(SealRunRequest(run=RUN, expected_row_count=0))
        assert run.state is RunState.SEALED
        assert {path.name for path in run_folder(tmp_path).iterdir()} == {"manifest.json", "runs.parquet"}
        assert store.compare_run(RUN).rows == ()
    assert script_rows(tmp_path, "runs").num_rows == 1
