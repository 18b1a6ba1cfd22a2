"""The snapshot and the folder of sealed runs in other places, opened by processes that have nothing of ours."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ingest_service.service import StoreSettings
from ingest_service.snapshot_store import SnapshotStore
from ingest_service.store.snapshot import SNAPSHOT_NAME
from linkbound.domain.run import SealRunRequest
from linkbound.domain.sql import SqlRequest
from tests.integration.sealing.content import COUNTS, filled
from tests.integration.sql.asking import table_of
from tests.integration.store_content import RUN, opened

pytestmark = pytest.mark.storage

OPEN = "open-one"
COUNT = "SELECT run_id, count(*) FROM requests GROUP BY ALL ORDER BY ALL"
EVERYTHING = [(OPEN, COUNTS.request_record_count), (RUN, COUNTS.request_record_count)]

SCRIPT = """
import sys, duckdb
with duckdb.connect(sys.argv[1], read_only=sys.argv[1] != ':memory:') as connection:
    for sql in sys.argv[2:]:
        try:
            print(repr(connection.execute(sql).fetchall()))
        except duckdb.Error as error:
            print(repr(str(error)))
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The folder of a closed store with a sealed run, an open one and a snapshot of both."""
    folder = tmp_path / "store [1]"
    with opened(folder) as ingest:
        filled(ingest).seal_run(SealRunRequest(run=RUN))
        filled(ingest, OPEN).publish_snapshot()
    return folder


def answers(folder: Path, file: str, *queries: str) -> list[Any]:
    """What another process, whose working directory is `folder`, makes of the queries: rows, or an error as text."""
    command = [sys.executable, "-c", SCRIPT, file, *queries]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    return [ast.literal_eval(line) for line in done.stdout.splitlines()]


def moved(store: Path, folder: Path, *names: str) -> Path:
    """`folder`, with copies of these files of the store, which is gone."""
    folder.mkdir(parents=True)
    for name in names:
        (shutil.copytree if (store / name).is_dir() else shutil.copy)(store / name, folder / name)
    store.rename(store.with_name("gone"))
    return folder


def test_beside_its_folder_it_is_read_from_any_directory(store: Path, tmp_path: Path) -> None:
    for folder in (store, store / "sealed", tmp_path):
        assert answers(folder, str(store / SNAPSHOT_NAME), COUNT) == [EVERYTHING]


@pytest.mark.parametrize("place", ["sealed", "./sealed", "{folder}/sealed"])
def test_elsewhere_it_is_told_where_the_folder_is(store: Path, tmp_path: Path, place: str) -> None:
    folder = moved(store, tmp_path / "copy", SNAPSHOT_NAME, "sealed")
    told = f"SET VARIABLE sealed_folder = '{place.format(folder=folder)}'"
    comparison = f"SELECT count(*) > 0 FROM v_comparison WHERE run_id = '{RUN}'"
    assert answers(folder, SNAPSHOT_NAME, told, COUNT, comparison)[1:] == [EVERYTHING, [(True,)]]


def test_elsewhere_and_told_nothing_it_fails_and_names_the_folder_that_it_looks_for(
    store: Path, tmp_path: Path
) -> None:
    folder = moved(store, tmp_path / "copy", SNAPSHOT_NAME, "sealed")
    [error] = answers(folder, SNAPSHOT_NAME, COUNT)
    assert "No files found" in error
    assert "/sealed/run_id=-/requests.parquet" in error


def test_alone_it_tells_of_the_runs_and_has_the_rows_of_open_ones_in_hot(store: Path, tmp_path: Path) -> None:
    folder = moved(store, tmp_path / "copy", SNAPSHOT_NAME)
    runs, hot, error = answers(
        folder,
        SNAPSHOT_NAME,
        "SELECT run_id, state FROM runs ORDER BY ALL",
        "SELECT run_id, count(*) FROM hot.requests GROUP BY ALL",
        COUNT,
    )
    assert runs == [(OPEN, "OPEN"), (RUN, "SEALED")]
    assert hot == EVERYTHING[:1]
    assert "/sealed/run_id=-/requests.parquet" in error


def test_a_part_of_the_folder_is_not_taken_for_all_of_it(store: Path, tmp_path: Path) -> None:
    folder = moved(store, tmp_path / "copy", SNAPSHOT_NAME, "sealed")
    shutil.rmtree(folder / "sealed" / f"run_id={RUN}")
    of_others = f"SELECT run_id, count(*) FROM requests WHERE run_id = '{OPEN}' GROUP BY ALL"
    told = "SET VARIABLE sealed_folder = 'sealed'"
    error, others = answers(folder, SNAPSHOT_NAME, told, COUNT, of_others)[1:]
    assert f"sealed run {RUN} cannot be read: sealed/run_id={RUN}/requests.parquet is missing" in error
    assert others == EVERYTHING[:1]


def test_the_views_of_the_folder_are_made_from_any_directory(store: Path, tmp_path: Path) -> None:
    folder = moved(store, tmp_path / "copy", "sealed")
    script = (folder / "sealed" / "views.sql").read_text(encoding="utf-8")
    assert answers(folder / "sealed", ":memory:", script, COUNT)[1:] == [EVERYTHING[1:]]
    told = "SET VARIABLE sealed_folder = 'copy/sealed'"
    assert answers(tmp_path, ":memory:", told, script, COUNT)[2:] == [EVERYTHING[1:]]


def test_the_client_finds_the_folder_beside_the_snapshot(store: Path, tmp_path: Path) -> None:
    folder = moved(store, tmp_path / "copy", SNAPSHOT_NAME, "sealed")
    with SnapshotStore.open(StoreSettings(path=folder / "linkbound.duckdb")) as snapshot:
        assert snapshot.compare_run(RUN).rows
        assert snapshot.get_run(RUN).run.sealed_fault == ""
        with snapshot.query_sql(SqlRequest(sql=COUNT)) as answer:
            schema, batch = answer.begin(), answer.next_batch()
            assert batch is not None
            assert [tuple(row.values()) for row in table_of(schema, [batch]).to_pylist()] == EVERYTHING
