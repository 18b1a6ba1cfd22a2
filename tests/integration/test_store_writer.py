"""The writer thread when something goes wrong inside: one append must not take others with it."""

import errno
import os
from array import array
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from ingest_service.core.append import Append, AppendKind
from ingest_service.core.samples import SeriesReadings
from ingest_service.settings import StoreSettings
from ingest_service.store.append_committer import AppendRows, RecordRows
from ingest_service.store.condition import StoreCondition
from ingest_service.store.database import open_database
from ingest_service.store.free_space import FreeSpace
from ingest_service.store.public_views import public_tables
from ingest_service.store.reader import Reader
from ingest_service.store.record_tables import METRIC_AGGREGATES
from ingest_service.store.run_scope import RunScope
from ingest_service.store.sample_tables import sample_rows
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.writer import Writer
from linkbound.domain.errors import (
    DeadlineExceededError,
    InternalError,
    OutOfRangeError,
    UnavailableError,
)
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import BatchOutcome
from tests.integration.store_content import RUN, TX, GatedClock, aggregate, rows


@pytest.fixture
def clock() -> GatedClock:
    return GatedClock()


@pytest.fixture
def root(tmp_path: Path, clock: GatedClock) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_database(StoreSettings(path=tmp_path / "linkbound.duckdb"), clock) as connection:
        yield connection


@pytest.fixture
def writer(tmp_path: Path, clock: GatedClock, root: duckdb.DuckDBPyConnection) -> Iterator[Writer]:
    thread = Writer(root.cursor(), StoreSettings(path=tmp_path / "linkbound.duckdb"), clock, StoreCondition())
    thread.create_run(CreateRunRequest(run_id=RUN))
    yield thread
    thread.close()


def rows_of(number: int, table: pa.Table, writer_id: str) -> AppendRows:
    append = Append(
        run_id=RUN, writer_id=writer_id, sequence_number=number, kind=AppendKind.UNARY, digest=str(number).encode()
    )
    return AppendRows(append=append, rows=(RecordRows("hot.metric_aggregates", table),), row_count=table.num_rows)


def good(number: int, writer_id: str) -> AppendRows:
    return rows_of(
        number, METRIC_AGGREGATES.rows(RUN, writer_id, number, [aggregate(f"{writer_id} {number}")]), writer_id
    )


def bad(number: int, writer_id: str) -> AppendRows:
    """Rows that the table refuses: the subject is missing."""
    table = METRIC_AGGREGATES.rows(RUN, writer_id, number, [aggregate()])
    position = table.schema.get_field_index("subject")
    return rows_of(number, table.set_column(position, "subject", pa.nulls(1, pa.string())), writer_id)


def submitted_together(writer: Writer, clock: GatedClock, *appends: AppendRows) -> list[Future[BatchOutcome]]:
    """Submits the appends so that they make up one group."""
    clock.close_gate()
    writer.append(good(1, "first"), 1)
    assert clock.reached.wait(60)
    futures = [writer.append(append, 1) for append in appends]
    clock.gate.set()
    return futures


def test_an_append_that_cannot_be_stored_fails_alone(tmp_path: Path, writer: Writer, clock: GatedClock) -> None:
    before, failed, after = submitted_together(writer, clock, good(1, "a"), bad(1, "b"), good(1, "c"))
    assert before.result(60).committed_sequence_number == 1
    assert after.result(60).committed_sequence_number == 1
    error = failed.exception(60)
    assert isinstance(error, InternalError)
    assert isinstance(error.__cause__, duckdb.ConstraintException)
    assert writer.healthy


def test_what_its_writer_sent_behind_it_is_a_gap_and_not_a_hole(
    tmp_path: Path, root: duckdb.DuckDBPyConnection, writer: Writer, clock: GatedClock
) -> None:
    first, failed, behind = submitted_together(writer, clock, good(1, "a"), bad(2, "a"), good(3, "a"))
    assert first.result(60).committed_sequence_number == 1
    assert isinstance(failed.exception(60), InternalError)
    gap = behind.exception(60)
    assert isinstance(gap, OutOfRangeError)
    assert gap.metadata["expectedSequenceNumber"] == "2"
    assert writer.append(good(2, "a"), 1).result(60).committed_sequence_number == 2
    stored = root.execute(
        "SELECT subject FROM metric_aggregates WHERE writer_id = 'a' ORDER BY sequence_number, record_index"
    ).fetchall()
    assert stored == [("a 1",), ("a 2",)]


def test_a_series_that_a_failed_group_registered_is_registered_again(
    root: duckdb.DuckDBPyConnection, writer: Writer, clock: GatedClock
) -> None:
    readings = SeriesReadings(
        series=TX, time_ns=array("q", [1, 2]), value=array("q", [3, 4]), read_duration_ns=array("q")
    )
    append = Append(run_id=RUN, writer_id="s", sequence_number=1, kind=AppendKind.STREAM, digest=b"1")
    samples = AppendRows(append=append, rows=sample_rows([readings]), row_count=2)
    stored, failed = submitted_together(writer, clock, samples, bad(1, "b"))
    assert stored.result(60).committed_sequence_number == 1
    assert isinstance(failed.exception(60), InternalError)
    joined = root.execute("SELECT metric, value FROM counter_samples JOIN series USING (series_id)").fetchall()
    assert sorted(joined) == [(TX.metric, 3), (TX.metric, 4)]


def test_a_command_that_fails_stops_nothing(root: duckdb.DuckDBPyConnection, writer: Writer) -> None:
    root.execute("DROP TABLE hot.settings")
    with pytest.raises(InternalError):
        writer.create_run(CreateRunRequest(run_id="x"))
    root.execute("CREATE TABLE hot.settings (run_id VARCHAR, key VARCHAR, value VARCHAR)")
    assert writer.append(good(1, "a"), 1).result(60).committed_sequence_number == 1


def test_a_connection_that_is_lost_breaks_the_store_and_says_so(tmp_path: Path) -> None:
    clock = GatedClock()
    settings = StoreSettings(path=tmp_path / "linkbound.duckdb")
    with open_database(settings, clock) as root:
        connection = root.cursor()
        writer = Writer(connection, settings, clock, StoreCondition())
        writer.create_run(CreateRunRequest(run_id=RUN))
        assert writer.append(good(1, "a"), 1).result(60).committed_sequence_number == 1
        connection.close()
        lost = writer.append(good(2, "a"), 1).exception(60)
        assert isinstance(lost, UnavailableError)
        assert lost.reason == "STORE_BROKEN"
        writer.close()
        assert not writer.healthy
        with pytest.raises(UnavailableError) as caught:
            writer.append(good(3, "a"), 1)
        assert caught.value.reason == "STORE_BROKEN"
    assert rows(tmp_path, "SELECT max(sequence_number) FROM ledger") == [(1,)]


def test_a_full_disk_is_told_from_other_faults(tmp_path: Path) -> None:
    space = FreeSpace(tmp_path, floor_bytes=0)
    assert space.was_missing(duckdb.TransactionException("Failed to commit: Could not write: No space left on device"))
    hidden = duckdb.FatalException("database has been invalidated")
    assert not space.was_missing(hidden)
    hidden.__cause__ = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert space.was_missing(hidden)


class ThreadEndedError(BaseException):
    """Stands for what ends a thread besides exceptions, such as SystemExit."""


def test_whatever_ends_the_thread_nobody_waits_for_ever(tmp_path: Path) -> None:
    clock = GatedClock()
    settings, condition = StoreSettings(path=tmp_path / "linkbound.duckdb"), StoreCondition()
    with open_database(settings, clock) as root:
        ended = False

        def ending_clock() -> datetime:
            now = clock()
            if ended:
                raise ThreadEndedError
            return now

        writer = Writer(root.cursor(), settings, ending_clock, condition)
        writer.create_run(CreateRunRequest(run_id=RUN))
        clock.close_gate()
        under_way = writer.append(good(1, "a"), 1)
        assert clock.reached.wait(60)
        queued = [writer.append(good(number, "a"), 1) for number in (2, 3)]
        ended = True
        clock.gate.set()
        for future in (under_way, *queued):
            assert isinstance(future.exception(60), UnavailableError)
        assert not writer.healthy
        assert condition.broken_by == "ThreadEndedError"
        with pytest.raises(UnavailableError):
            writer.change(lambda _connection, _appends: None)
        writer.close()


def test_a_read_that_finds_the_database_broken_marks_it_for_the_writer_too(tmp_path: Path) -> None:
    settings, condition = StoreSettings(path=tmp_path / "linkbound.duckdb"), StoreCondition()
    with open_database(settings, GatedClock()) as root:
        writer = Writer(root.cursor(), settings, GatedClock(), condition)
        before = writer.healthy
        broken: Any = BrokenConnection()
        with pytest.raises(UnavailableError) as caught:
            Reader(broken, condition, scope_of(root, settings)).get_run(RUN)
        assert caught.value.reason == "STORE_BROKEN"
        assert (before, writer.healthy) == (True, False)
        assert condition.broken_by == "database has been invalidated"
        writer.close()


class BrokenConnection:
    """A connection to a database that DuckDB gave up."""

    def cursor(self) -> Any:
        return self

    def begin(self) -> None:
        raise duckdb.FatalException("database has been invalidated")

    def close(self) -> None:
        pass


def test_queries_end_when_their_time_is_over(tmp_path: Path) -> None:
    settings = StoreSettings(path=tmp_path / "linkbound.duckdb")
    with open_database(settings, GatedClock()) as root:
        writer = Writer(root.cursor(), settings, GatedClock(), StoreCondition())
        writer.create_run(CreateRunRequest(run_id=RUN))
        writer.close()
        scope = scope_of(root, settings)
        # Counting so far takes hours.
        root.execute("DROP TABLE hot.metric_aggregates")
        root.execute(
            "CREATE VIEW hot.metric_aggregates AS"
            f" SELECT 0 AS rowid, '{RUN}' AS run_id, 'w' AS writer_id, 1::BIGINT AS sequence_number, 0 AS record_index,"
            " 'TTFT_SECONDS' AS metric, 'P1' AS subject, '' AS source,"
            " (SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range < -1)::DOUBLE AS mean,"
            " NULL::DOUBLE AS minimum, NULL::DOUBLE AS maximum, NULL::INTEGER AS round_count"
        )
        with pytest.raises(DeadlineExceededError):
            Reader(root, StoreCondition(), scope).read_measured(RUN, 0.05)


def scope_of(root: duckdb.DuckDBPyConnection, settings: StoreSettings) -> RunScope:
    return RunScope.of(SealedFolder.beside(settings.path), public_tables(root))
