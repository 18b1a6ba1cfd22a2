"""The copy that other processes open: whole at any moment, and never at the cost of the store."""

import ast
import errno
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ingest_service.service import Ingest, StoreSettings
from ingest_service.snapshot_store import SnapshotStore
from ingest_service.store import file_copy, snapshot
from ingest_service.store.append_committer import CHECKPOINT_LOG_BYTES
from ingest_service.store.snapshot import SNAPSHOT_NAME
from linkbound.domain.errors import (
    FailedPreconditionError,
    ResourceExhaustedError,
    UnavailableError,
)
from linkbound.domain.paging import PageRequest
from linkbound.domain.records import AppendRequest, TrainingStep
from linkbound.domain.run import CreateRunRequest, SealRunRequest
from tests.integration.sql.asking import RUN, filled_store, rows_of

pytestmark = pytest.mark.storage

READER = """
import sys, duckdb
path, times = sys.argv[1], int(sys.argv[2])
seen = []
for _ in range(times):
    with duckdb.connect(path, read_only=True) as snapshot:
        # Each append is one transaction of ten rows: a copy has all of them or none.
        [(appends, rows, odd)] = snapshot.execute(
            "SELECT count(DISTINCT (writer_id, sequence_number)), count(*), count(*) FILTER (WHERE size != 10) FROM ("
            " SELECT writer_id, sequence_number, count(*) OVER (PARTITION BY writer_id, sequence_number) AS size"
            " FROM training_steps WHERE subject = 'load')"
        ).fetchall()
        [(ledger,)] = snapshot.execute("SELECT count(*) FROM ledger WHERE writer_id LIKE 'load%'").fetchall()
    assert odd == 0 and rows == 10 * appends and ledger == appends, (appends, rows, odd, ledger)
    assert not seen or appends >= seen[-1], (seen[-1], appends)
    seen.append(appends)
print(seen[0], seen[-1])
"""


def append(ingest: Ingest, writer: str, number: int) -> None:
    records = tuple(
        TrainingStep(subject="load", node_count=2, step_index=index, step_seconds=1.0, source="load.csv")
        for index in range(10)
    )
    ingest.append(AppendRequest(run=RUN, writer_id=writer, sequence_number=number, records=records)).result()


def opened_elsewhere(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query of another process, which has nothing of ours; it opens the file as `duckdb FILE` does."""
    script = (
        "import sys, duckdb\n"
        "with duckdb.connect(sys.argv[1]) as connection:\n"
        "    print(repr(connection.execute(sys.argv[2]).fetchall()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), sql], capture_output=True, text=True, check=True, timeout=60
    )
    rows: list[tuple[Any, ...]] = ast.literal_eval(done.stdout)
    return rows


def test_another_process_opens_what_was_committed(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest:
        published = ingest.publish_snapshot()
        append(ingest, "load", 1)
        path = tmp_path / SNAPSHOT_NAME
        assert published.path == str(path)
        assert published.size_bytes == path.stat().st_size
        assert abs((datetime.now(UTC) - published.snapshot_time).total_seconds()) < 60
        assert opened_elsewhere(path, "SELECT subject, count(*) FROM training_steps GROUP BY ALL") == [("6 nodes", 100)]
        ingest.publish_snapshot()
        assert opened_elsewhere(path, "SELECT count(*) FROM training_steps") == [(110,)]
        assert opened_elsewhere(path, "SELECT count(*) FROM v_requests") == [(0,)]
        assert [p.name for p in tmp_path.iterdir() if "_snapshot" in p.name] == []


def test_sealed_runs_are_read_through_it(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest:
        ingest.seal_run(SealRunRequest(run=RUN))
        ingest.publish_snapshot()
        assert opened_elsewhere(tmp_path / SNAPSHOT_NAME, "SELECT count(*) FROM training_steps") == [(100,)]


def test_a_second_process_opens_it_all_the_time_while_eight_writers_write(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest, ThreadPoolExecutor(10) as pool:
        append(ingest, "load0", 1)
        ingest.publish_snapshot()
        done = threading.Event()

        def write(name: str, number: int) -> None:
            while not done.is_set():
                append(ingest, name, number)
                number += 1

        def publish() -> int:
            count = 0
            while not done.is_set():
                ingest.publish_snapshot()
                count += 1
            return count

        writing = [pool.submit(write, f"load{index}", 2 if index == 0 else 1) for index in range(8)]
        publishing = pool.submit(publish)
        reader = subprocess.run(
            [sys.executable, "-c", READER, str(tmp_path / SNAPSHOT_NAME), "40"],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        done.set()
        for writer in writing:
            writer.result()
        assert reader.returncode == 0, reader.stderr
        first, last = map(int, reader.stdout.split())
        assert last > first
        assert publishing.result() > 1
        assert ingest.healthy


def test_whoever_has_the_copy_before_open_keeps_it(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest:
        ingest.publish_snapshot()
        with duckdb.connect(str(tmp_path / SNAPSHOT_NAME), read_only=True) as older:
            append(ingest, "load", 1)
            ingest.publish_snapshot()
            assert older.execute("SELECT count(*) FROM training_steps").fetchall() == [(100,)]
        assert opened_elsewhere(tmp_path / SNAPSHOT_NAME, "SELECT count(*) FROM training_steps") == [(110,)]


def test_what_somebody_writes_to_the_copy_is_gone_with_the_next_one(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest:
        ingest.publish_snapshot()
        path = tmp_path / SNAPSHOT_NAME
        script = (
            "import os, sys, duckdb\n"
            "connection = duckdb.connect(sys.argv[1])\n"
            "connection.execute('CREATE TABLE mine (a INTEGER)')\n"
            "os._exit(0)\n"
        )
        subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=60)
        assert path.with_name(f"{SNAPSHOT_NAME}.wal").exists()
        ingest.publish_snapshot()
        assert opened_elsewhere(path, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'mine'") == [(0,)]


def test_the_store_stays_locked_for_others(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest:
        for _ in range(3):
            ingest.publish_snapshot()
        with pytest.raises(subprocess.CalledProcessError) as caught:
            opened_elsewhere(tmp_path / "linkbound.duckdb", "SELECT 1")
        assert "lock" in caught.value.stderr


def test_nothing_is_published_again_where_nothing_changed(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest:
        path = tmp_path / SNAPSHOT_NAME
        publish = ingest.publish_snapshot_if_changed
        assert publish() is not None
        inode = path.stat().st_ino
        assert publish() is None
        assert path.stat().st_ino == inode
        append(ingest, "load", 1)
        assert publish() is not None
        assert publish() is None
        ingest.create_run(CreateRunRequest(run_id="second"))
        assert publish() is not None


def test_it_is_refreshed_at_an_interval(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest:
        ingest.publish_every(0.02)
        path = tmp_path / SNAPSHOT_NAME
        for number in (1, 2):
            append(ingest, "load", number)
            while not (path.exists() and count_in(path) == 100 + 10 * number):
                threading.Event().wait(0.01)


def count_in(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        [(count,)] = connection.execute("SELECT count(*) FROM training_steps").fetchall()
        return int(count)


def test_a_crash_midway_leaves_no_half_file(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from ingest_service.store import snapshot\n"
        "from tests.integration.sql.asking import filled_store\n"
        "def die(source, target, size_bytes, check):\n"
        "    os.write(target, b'half of a file')\n"
        "    os._exit(9)\n"
        "with filled_store(Path(sys.argv[1])) as ingest:\n"
        "    ingest.publish_snapshot()\n"
        "    snapshot.copy_content = die\n"
        "    ingest.publish_snapshot()\n"
    )
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "clients")])}
    killed = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], env=environment, capture_output=True, check=False, timeout=60
    )
    assert killed.returncode == 9, killed.stderr
    assert len(list(tmp_path.glob("_snapshot-*"))) == 1
    assert opened_elsewhere(tmp_path / SNAPSHOT_NAME, "SELECT count(*) FROM training_steps") == [(100,)]
    with Ingest.open(StoreSettings(path=tmp_path / "linkbound.duckdb")) as ingest:
        assert list(tmp_path.glob("_snapshot-*")) == []
        append(ingest, "load", 1)
        ingest.publish_snapshot()
    assert opened_elsewhere(tmp_path / SNAPSHOT_NAME, "SELECT count(*) FROM training_steps") == [(110,)]


def test_a_full_disk_is_told_and_the_copy_before_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled_store(tmp_path) as ingest:
        ingest.publish_snapshot()
        append(ingest, "load", 1)

        def full(*_args: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(snapshot, "copy_content", full)
        with pytest.raises(ResourceExhaustedError) as caught:
            ingest.publish_snapshot()
        assert caught.value.reason == "DISK_FULL"
        assert caught.value.retry_delay_seconds is None
        assert list(tmp_path.glob("_snapshot-*")) == []
        assert opened_elsewhere(tmp_path / SNAPSHOT_NAME, "SELECT count(*) FROM training_steps") == [(100,)]
        monkeypatch.undo()
        append(ingest, "load", 2)
        ingest.publish_snapshot()
        assert opened_elsewhere(tmp_path / SNAPSHOT_NAME, "SELECT count(*) FROM training_steps") == [(120,)]


def test_no_copy_is_begun_that_would_leave_less_than_the_floor(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest:
        ingest.publish_snapshot()
    # Appends are refused below it too, so nothing is appended here.
    with Ingest.open(StoreSettings(path=tmp_path / "linkbound.duckdb", free_space_floor_bytes=2**50)) as ingest:
        with pytest.raises(ResourceExhaustedError) as caught:
            ingest.publish_snapshot()
        assert caught.value.reason == "DISK_FULL"
        assert (tmp_path / SNAPSHOT_NAME).exists()
        assert rows_of(ingest, "SELECT count(*) AS n FROM training_steps") == [{"n": 100}]


def test_commits_go_on_while_the_file_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled_store(tmp_path) as ingest, ThreadPoolExecutor(1) as pool:
        copying, go_on = threading.Event(), threading.Event()

        def slow(*args: Any) -> None:
            copying.set()
            go_on.wait()
            file_copy.copy_content(*args)

        monkeypatch.setattr(snapshot, "copy_content", slow)
        publishing = pool.submit(ingest.publish_snapshot)
        copying.wait()
        log = tmp_path / "linkbound.duckdb.wal"
        number = 0
        try:
            # More than a log that is moved into the file when it is long.
            while not log.exists() or log.stat().st_size < CHECKPOINT_LOG_BYTES + 500_000:
                number += 1
                append_much(ingest, number)
        finally:
            go_on.set()
        publishing.result()
        assert opened_elsewhere(tmp_path / SNAPSHOT_NAME, "SELECT count(*) FROM training_steps") == [(100,)]
        append_much(ingest, number + 1)
        ingest.publish_snapshot()
        expected = [(100 + 1_000 * (number + 1),)]
        assert opened_elsewhere(tmp_path / SNAPSHOT_NAME, "SELECT count(*) FROM training_steps") == expected


def append_much(ingest: Ingest, number: int) -> None:
    records = tuple(
        TrainingStep(
            subject="load", node_count=2, step_index=index, step_seconds=1 + index / 7, source=f"load {index:0>1000}"
        )
        for index in range(1_000)
    )
    ingest.append(AppendRequest(run=RUN, writer_id="much", sequence_number=number, records=records)).result()


def test_a_copy_that_lets_the_log_grow_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "LARGEST_LOG_BYTES", 1_000_000)
    with filled_store(tmp_path) as ingest:

        def slow(source: int, target: int, size_bytes: int, check: Any) -> None:
            append_much(ingest, 1)
            append_much(ingest, 2)
            file_copy.copy_content(source, target, size_bytes, check)

        monkeypatch.setattr(snapshot, "copy_content", slow)
        with pytest.raises(UnavailableError) as caught:
            ingest.publish_snapshot()
        assert caught.value.reason == "SNAPSHOT_FAILED"
        assert not (tmp_path / SNAPSHOT_NAME).exists()
        monkeypatch.undo()
        ingest.publish_snapshot()


def test_closing_the_store_gives_a_copy_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copying = threading.Event()

    def endless(_source: int, _target: int, _size_bytes: int, check: Any) -> None:
        copying.set()
        while True:
            check()
            threading.Event().wait(0.01)

    monkeypatch.setattr(snapshot, "copy_content", endless)
    with ThreadPoolExecutor(1) as pool:
        with filled_store(tmp_path) as ingest:
            publishing = pool.submit(ingest.publish_snapshot)
            copying.wait()
        with pytest.raises(UnavailableError):
            publishing.result()
    assert not list(tmp_path.glob("*snapshot*"))
    with Ingest.open(StoreSettings(path=tmp_path / "linkbound.duckdb")) as again:
        assert rows_of(again, "SELECT count(*) AS n FROM training_steps") == [{"n": 100}]


@pytest.mark.parametrize("way", ["reflink", "kernel", "by hand"])
def test_a_file_is_copied_whole_in_every_way(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(3 * 2**20 + 17)
    (tmp_path / "source").write_bytes(content + b"later")
    if way != "reflink":
        monkeypatch.setattr(file_copy, "_shares_blocks", lambda _source, _target: False)
    if way == "by hand":

        def refuse(*_args: object) -> int:
            raise OSError(errno.EXDEV, "Invalid cross-device link")

        monkeypatch.setattr(os, "copy_file_range", refuse)
    monkeypatch.setattr(file_copy, "SLICE_BYTES", 2**20)
    checks: list[None] = []
    with (tmp_path / "source").open("rb") as source, (tmp_path / "target").open("wb") as target:
        file_copy.copy_content(source.fileno(), target.fileno(), len(content), lambda: checks.append(None))
    assert (tmp_path / "target").read_bytes() == content


def test_a_file_that_ends_early_is_no_copy(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"short")
    with (tmp_path / "source").open("rb") as source, (tmp_path / "target").open("wb") as target:  # noqa: SIM117
        with pytest.raises(OSError, match="ended before"):
            file_copy.copy_content(source.fileno(), target.fileno(), 1_000, lambda: None)


def test_reads_answer_from_it(tmp_path: Path) -> None:
    settings = StoreSettings(path=tmp_path / "linkbound.duckdb")
    with filled_store(tmp_path) as ingest:
        with pytest.raises(FileNotFoundError):
            SnapshotStore.open(settings)
        ingest.publish_snapshot()
        one, other = SnapshotStore.open(settings), SnapshotStore.open(settings)
        append(ingest, "load", 1)
        assert one.get_run(RUN).row_counts.training_step_count == 100
        assert [run.run_id for run in other.list_runs(PageRequest()).entries] == [RUN]
        assert other.compare_run(RUN).run_id == RUN
        assert not one.is_replaced(settings.path)
        ingest.publish_snapshot()
        assert one.is_replaced(settings.path)
        one.close()
        other.close()
        with SnapshotStore.open(settings) as later:
            assert later.get_run(RUN).row_counts.training_step_count == 110


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("INSERT INTO hot.schema_versions SELECT 999, 'x', now() FROM hot.schema_versions LIMIT 1", "SCHEMA_NEWER"),
        ("DELETE FROM hot.schema_versions WHERE version = 1", "SCHEMA_OLDER"),
        (None, "STORE_UNREADABLE"),
    ],
)
def test_one_of_another_release_is_told(tmp_path: Path, statement: str | None, reason: str) -> None:
    with filled_store(tmp_path) as ingest:
        ingest.publish_snapshot()
    path = tmp_path / SNAPSHOT_NAME
    if statement is None:
        path.write_bytes(b"no database")
    else:
        with duckdb.connect(str(path)) as connection:
            connection.execute(statement)
    with pytest.raises(FailedPreconditionError) as caught:
        SnapshotStore.open(StoreSettings(path=tmp_path / "linkbound.duckdb"))
    assert caught.value.reason == reason
