"""A file of a sealed run that is gone is told wherever somebody would miss its rows, and looked for at the start."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from structlog.testing import capture_logs

from ingest_service.service import Ingest
from ingest_service.store.condition import StoreCondition
from ingest_service.store.public_views import KEPT_TABLES
from ingest_service.store.query_watch import WatchedQuery
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.sql_query import SqlQueries
from linkbound.domain.errors import FailedPreconditionError, NotFoundError
from linkbound.domain.paging import PageRequest
from linkbound.domain.run import SealRunRequest
from linkbound.domain.traffic import TrafficRequest
from tests.integration.sealing.content import COUNTS, SEALED_TABLES, Seen, filled
from tests.integration.sql.asking import rows_of
from tests.integration.store_content import RUN, opened
from tests.unit.cli.command import SETTINGS, Command

pytestmark = pytest.mark.storage

OTHER = "another"
OPEN = "open-one"
MOVED_TABLES = [name for name in SEALED_TABLES if name not in KEPT_TABLES]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Ingest]:
    """A store with two sealed runs, all of whose files are there, and an open one."""
    with opened(tmp_path) as ingest:
        for name in (RUN, OTHER):
            filled(ingest, name).seal_run(SealRunRequest(run=name))
        yield filled(ingest, OPEN)


def run_file(folder: Path, table: str) -> Path:
    return folder / "sealed" / f"run_id={RUN}" / f"{table}.parquet"


def refused(store: Ingest, sql: str) -> FailedPreconditionError:
    with pytest.raises(FailedPreconditionError) as caught:
        rows_of(store, sql)
    assert caught.value.reason == "RUN_UNREADABLE"
    return caught.value


@pytest.mark.parametrize("table", MOVED_TABLES)
def test_sql_that_would_miss_rows_names_the_run_and_the_file(store: Ingest, tmp_path: Path, table: str) -> None:
    path = run_file(tmp_path, table)
    count = f"SELECT count(*) AS n FROM {table}"
    of_others = f"{count} WHERE run_id IN ('{OTHER}', '{OPEN}')"
    before = rows_of(store, of_others)
    path.unlink()
    for sql in (count, f"{count} WHERE run_id = '{RUN}'", f"FROM {table} ORDER BY ALL LIMIT 1"):
        error = refused(store, sql)
        assert error.metadata == {"run": RUN, "path": str(path)}
        assert f"run {RUN} cannot be read: {path} is missing; bring it back from a copy" in error.message
    assert rows_of(store, of_others) == before
    assert before[0]["n"] > 0
    assert rows_of(store, f"{count} WHERE run_id = '{OPEN}'")[0]["n"] == before[0]["n"] // 2
    assert store.healthy


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM requests WHERE subject = 'nobody'",
        "SELECT count(*) FROM requests WHERE prompt_tokens > 10 AND send_ns < 0",
        "SELECT count(*) FROM requests WHERE stored_index IS NULL OR ttft_ns IS NULL",
        "SELECT max(send_ns) FROM requests",
        "SELECT EXISTS (FROM requests WHERE subject = 'nobody')",
        "SELECT run_id FROM runs WHERE run_id NOT IN (SELECT run_id FROM requests)",
        "SELECT count(*) FROM runs SEMI JOIN requests USING (run_id)",
        f"SELECT count(*) FROM requests WHERE run_id = '{OPEN}' OR subject = 'P1'",
        "SELECT count(*) FROM requests WHERE run_id LIKE 'study%'",
        "SELECT subject, count(*) FROM v_requests GROUP BY ALL",
        "SELECT count(*) FROM (SELECT DISTINCT writer_id, digest FROM ledger)",
    ],
)
def test_no_condition_hides_it(store: Ingest, tmp_path: Path, sql: str) -> None:
    assert rows_of(store, sql) is not None
    for table in ("requests", "ledger"):
        run_file(tmp_path, table).unlink()
    assert refused(store, sql).metadata["run"] == RUN


def test_views_of_other_runs_go_on(store: Ingest, tmp_path: Path) -> None:
    views = ["v_requests", "v_comparison", "v_intervals", "v_windows_100ms", "v_ack_lag"]
    if not duckdb.__version__.startswith("1."):
        # DuckDB 1.5 makes some of its parts for all runs, whichever is asked for.
        views.append("v_phase_traffic")
    queries = [f"SELECT * FROM {view} WHERE run_id = '{run}' ORDER BY ALL" for view in views for run in (OTHER, OPEN)]
    before = [rows_of(store, sql) for sql in queries]
    assert all(before)
    for table in MOVED_TABLES:
        run_file(tmp_path, table).unlink()
    assert [rows_of(store, sql) for sql in queries] == before


def test_every_read_of_the_run_fails_and_those_of_others_do_not(store: Ingest, tmp_path: Path) -> None:
    others = Seen.of(store, OTHER)
    path = run_file(tmp_path, "counter_samples")
    path.unlink()
    with pytest.raises(FailedPreconditionError) as caught:
        store.query_traffic(TrafficRequest(run=RUN))
    assert caught.value.reason == "RUN_UNREADABLE"
    assert caught.value.metadata == {"run": RUN, "path": str(path)}
    assert Seen.of(store, OTHER) == others
    assert Seen.of(store, OPEN).counts == COUNTS


def test_another_process_hears_of_it_from_the_snapshot(store: Ingest, tmp_path: Path) -> None:
    published = store.publish_snapshot()
    path = run_file(tmp_path, "requests")
    path.unlink()
    script = (
        "import sys, duckdb\n"
        "with duckdb.connect(sys.argv[1], read_only=True) as snapshot:\n"
        "    for sql in sys.argv[2:]:\n"
        "        try: print(snapshot.execute(sql).fetchall())\n"
        "        except duckdb.Error as error: print(repr(str(error)))\n"
    )
    count = "SELECT count(*) FROM requests"
    command = [sys.executable, "-c", script, published.path, count, f"{count} WHERE run_id = '{OTHER}'"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    failure, found = (ast.literal_eval(line) for line in done.stdout.splitlines())
    assert f"sealed run {RUN} cannot be read: {path} is missing; bring it back from a copy" in failure
    assert found == [(COUNTS.request_record_count,)]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def lose_the_manifest(path: Path) -> None:
    (path.parent / "manifest.json").unlink()


def lose_the_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("_elsewhere"))


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (Path.unlink, "requests.parquet is missing"),
        (cut, "requests.parquet has "),
        (flip, ""),
        (lose_the_manifest, "manifest.json is missing"),
        (lose_the_folder, ".parquet is missing, and 14 more faults"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_start_looks_for_every_file_and_the_list_of_runs_tells(
    tmp_path: Path, damage: Callable[[Path], None], told: str
) -> None:
    with opened(tmp_path) as store:
        for name in (RUN, OTHER):
            filled(store, name).seal_run(SealRunRequest(run=name))
    damage(run_file(tmp_path, "requests"))
    with capture_logs() as logs, opened(tmp_path) as store:
        named = [entry for entry in logs if entry["event"] == "sealed_file_damaged"]
        assert {entry["run"] for entry in named} == ({RUN} if told else set())
        assert all(entry["fault"] for entry in named)
        listed = {run.run_id: run for run in store.list_runs(PageRequest()).entries}
        assert listed[OTHER].sealed_fault == ""
        assert told in listed[RUN].sealed_fault
        assert bool(listed[RUN].sealed_fault) is bool(told)
        assert store.get_run(RUN).run.sealed_fault == listed[RUN].sealed_fault
        if damage is lose_the_manifest:
            assert store.compare_run(RUN).rows
        else:
            with pytest.raises(FailedPreconditionError):
                store.compare_run(RUN)


@pytest.mark.parametrize("damage", [Path.unlink, cut, flip, lose_the_manifest, lose_the_folder])
def test_verify_finds_each(
    tmp_path: Path,
    damage: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    command = Command(capsys)
    with opened(tmp_path) as store:
        filled(store).seal_run(SealRunRequest(run=RUN))
    options = ["--data", str(tmp_path)]
    assert command("store", "verify", *options).exit_code == 0
    assert "damaged" not in command("runs", "list", *options).out
    damage(run_file(tmp_path, "requests"))
    assert command("store", "verify", *options).exit_code == 1
    is_seen_by_size = damage is not flip
    assert ("sealed, damaged" in command("runs", "list", *options).out) is is_seen_by_size
    assert ("sealed, damaged" in command("runs", "show", RUN, *options).out) is is_seen_by_size


def test_without_the_folder_sql_says_so_and_a_start_makes_it_again(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        filled(store).seal_run(SealRunRequest(run=RUN))
        filled(store, OPEN)
        (tmp_path / "sealed").rename(tmp_path / "elsewhere")
        error = refused(store, f"SELECT count(*) FROM requests WHERE run_id = '{OPEN}'")
        assert "a restart of the service makes it again" in error.message
        assert rows_of(store, "SELECT count(*) AS n FROM runs") == [{"n": 2}]
        assert Seen.of(store, OPEN).counts == COUNTS
    with opened(tmp_path) as store:
        count = "SELECT count(*) AS n FROM requests"
        assert rows_of(store, f"{count} WHERE run_id = '{OPEN}'") == [{"n": COUNTS.request_record_count}]
        assert refused(store, count).metadata["run"] == RUN


def test_a_run_that_is_deleted_meanwhile_is_not_called_damaged(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        filled(store).seal_run(SealRunRequest(run=RUN))
    folder = SealedFolder.beside(tmp_path / "linkbound.duckdb")
    with duckdb.connect(str(tmp_path / "linkbound.duckdb")) as root:
        queries = SqlQueries(root, StoreCondition(), folder, 2**30)
        query = WatchedQuery(root.cursor(), None)
        gone = duckdb.IOException(f'Cannot open file "{folder.file_path(RUN, "requests")}": No such file or directory')
        error = queries.error_of(gone, query)
        assert isinstance(error, FailedPreconditionError)
        assert error.reason == "RUN_UNREADABLE"
        root.execute("DELETE FROM hot.runs")
        assert isinstance(queries.error_of(gone, query), NotFoundError)
        query.close()
