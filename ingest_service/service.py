"""The ingest application object: domain types in, domain types out; servicers and the `local:` backend call it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType

import duckdb
import structlog
from attrs import evolve

from ingest_service.core.append import Append, AppendKind, StreamPosition
from ingest_service.core.comparison import compare
from ingest_service.core.digest import digest_of_records
from ingest_service.core.measured import fold
from ingest_service.open_streams import OpenStreams
from ingest_service.settings import StoreSettings
from ingest_service.store.append_committer import AppendRows, RecordRows
from ingest_service.store.archive import Archive
from ingest_service.store.arrow_rows import warm_up
from ingest_service.store.change_signal import ChangeSignal
from ingest_service.store.condition import StoreCondition
from ingest_service.store.database import open_database
from ingest_service.store.life_steps import OnStep, pass_on
from ingest_service.store.public_views import public_tables
from ingest_service.store.reader import Reader
from ingest_service.store.record_tables import table_of
from ingest_service.store.run_changes import insert_untold_appends
from ingest_service.store.run_scope import RunScope
from ingest_service.store.run_watch import RunWatch
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.snapshot import SnapshotPublisher, SnapshotSchedule
from ingest_service.store.sql_query import SqlAnswer, SqlQueries
from ingest_service.store.timestamps import utc_now
from ingest_service.store.token_table import HOT_TOKENS, token_rows
from ingest_service.store.transactions import transaction
from ingest_service.store.writer import Writer
from ingest_service.stream_session import PreparedAppend, RefusedBatch, StreamSession
from linkbound.domain.paging import Page, PageRequest
from linkbound.domain.records import AppendOutcome, AppendRequest, ListRequestRecordsRequest, RequestRecord
from linkbound.domain.run import CreateRunRequest, Run, RunDetails, RunRequest, RunRowCounts, SealRunRequest
from linkbound.domain.run_comparison import RunComparison
from linkbound.domain.run_watch import WatchRunsRequest
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, StreamLimits
from linkbound.domain.sql import PublishSnapshotRequest, Snapshot, SqlRequest
from linkbound.domain.traffic import ListPhaseTrafficRequest, PhaseTraffic, PortTraffic, TrafficRequest

__all__ = ["Ingest", "PreparedAppend", "RefusedBatch", "StoreSettings", "StreamSession"]

_NOW = PublishSnapshotRequest()

_log = structlog.get_logger(__name__)


class Ingest:
    """Stores runs, records and samples, and compares runs with their predictions. Safe from any thread.

    Methods raise `linkbound.domain.errors`; besides those named at each, UnavailableError (STORE_CLOSED, STORE_BROKEN).
    """

    def __init__(
        self,
        root: duckdb.DuckDBPyConnection,
        settings: StoreSettings,
        clock: Callable[[], datetime],
        on_step: OnStep = pass_on,
    ) -> None:
        self._root = root
        self._limits = StreamLimits(
            max_in_flight_batches=settings.max_in_flight_batches, max_batch_bytes=settings.max_batch_bytes
        )
        self._condition = StoreCondition()
        self._streams = OpenStreams()
        self._changes = ChangeSignal()
        self._queries = SqlQueries(
            root, self._condition, SealedFolder.beside(settings.path), settings.memory_limit_bytes
        )
        self._writer = Writer(
            root.cursor(),
            settings,
            clock,
            self._condition,
            self._streams.checkpointed,
            self._queries.make_room,
            self._changes,
        )
        self._snapshots = SnapshotPublisher(settings, self._writer)
        self._schedule: SnapshotSchedule | None = None
        self._archive = Archive(root, self._writer, settings, clock, self._condition, on_step)
        scope = RunScope.of(SealedFolder.beside(settings.path), public_tables(root))
        self._reader = Reader(root, self._condition, scope)

    @classmethod
    def open(
        cls, settings: StoreSettings, clock: Callable[[], datetime] = utc_now, on_step: OnStep = pass_on
    ) -> Ingest:
        """Opens the store at `settings.path`, creates it where it is missing, and warms it up.

        `on_step` is told of each step of a sealing or deletion, on the thread that takes it.

        Raises UnavailableError (STORE_LOCKED, with the `pid` of the process that holds it), FailedPreconditionError
        (STORE_UNREADABLE, STORE_LOG_DAMAGED, SCHEMA_NEWER) and ResourceExhaustedError (DISK_FULL).
        """
        root = open_database(settings, clock)
        try:
            warm_up(root)
            with transaction(root):
                insert_untold_appends(root, clock)
            return cls(root, settings, clock, on_step)
        except BaseException:
            root.close()
            raise

    def __enter__(self) -> Ingest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def healthy(self) -> bool:
        """Whether changes are still stored; False after the disk filled up or the database failed, and once closed."""
        return self._writer.healthy

    @property
    def has_room(self) -> bool:
        """Whether the disk has room for appends; it may have again later."""
        return self._writer.has_room

    def close(self) -> None:
        """Stores what is queued, ends what is being sealed, then closes the file. Repeating it is fine."""
        self._snapshots.end()
        if self._schedule is not None:
            self._schedule.end()
        self._archive.end()
        self._writer.close()
        self._archive.wait_until_ended()
        self._reader.close()
        self._changes.announce()
        self._queries.close()
        try:
            self._root.close()
        except duckdb.Error:
            # A broken store cannot write its last checkpoint. Nothing acknowledged is lost: the log has it.
            if self._condition.broken_by is None:
                raise
        finally:
            self._snapshots.close()

    def create_run(self, request: CreateRunRequest) -> Run:
        """Creates a run and freezes its prediction, or returns the run created before with the same content.

        Raises AlreadyExistsError (RUN_EXISTS).
        """
        self._archive.wait_until_deleted(request.run_id)
        return self._archive.located(self._writer.create_run(request))

    def get_run(self, run_id: str) -> RunDetails:
        """A run with its prediction and its row counts. Raises InvalidArgumentError, NotFoundError (RUN_NOT_FOUND)."""
        details = self._reader.get_run(RunRequest(run=run_id).run)
        return evolve(details, run=self._archive.located(details.run))

    def list_runs(self, request: PageRequest) -> Page[Run]:
        """One page of runs, newest first, without their predictions. Raises InvalidArgumentError on `page_token`."""
        page = self._reader.list_runs(request)
        return evolve(page, entries=tuple(map(self._archive.located, page.entries)))

    def seal_run(self, request: SealRunRequest) -> Run:
        """Ends a run; every append submitted before is in it. Its rows move into files beside the store.

        Raises NotFoundError (RUN_NOT_FOUND), FailedPreconditionError (ROW_COUNT_MISMATCH, SEAL_FAILED) and
        ResourceExhaustedError (DISK_FULL); the run stays open then.
        """
        return self._archive.seal(request)

    def delete_run(self, run_id: str) -> RunRowCounts:
        """Deletes a run and returns what it held. Raises InvalidArgumentError, NotFoundError (RUN_NOT_FOUND)."""
        return self._archive.delete(RunRequest(run=run_id).run)

    def remove_expired_runs(self) -> tuple[str, ...]:
        """Deletes the sealed runs that the settings keep no longer, and returns their ids; it happens by itself too."""
        return self._archive.remove_expired()

    def append(self, request: AppendRequest) -> Future[AppendOutcome]:
        """Queues records; the future resolves after their COMMIT to their number, below which all are stored too.

        The writer keeps them until they are checkpointed as well.

        Raises ResourceExhaustedError (QUEUE_FULL, nothing is queued). The future raises OutOfRangeError (SEQUENCE_GAP),
        AbortedError (WRITER_CONFLICT), FailedPreconditionError (RUN_SEALED, WRITER_KIND_MISMATCH), NotFoundError
        (RUN_NOT_FOUND) and ResourceExhaustedError (DISK_FULL).
        """
        table = table_of(request)
        records = table.rows(request.run, request.writer_id, request.sequence_number, request.records)
        rows = [RecordRows(table.hot_name, records)]
        chunks = token_rows(request)
        if chunks is not None:
            rows.append(RecordRows(HOT_TOKENS, chunks))
        append = Append(
            run_id=request.run,
            writer_id=request.writer_id,
            sequence_number=request.sequence_number,
            kind=AppendKind.UNARY,
            digest=digest_of_records(request.records),
        )
        outcome = self._writer.append(
            AppendRows(append=append, rows=tuple(rows), row_count=records.num_rows),
            sum(stored.rows.nbytes for stored in rows),
        )
        return _append_outcome(outcome)

    def open_stream(self, request: OpenStreamRequest) -> StreamSession:
        """Opens a sample stream, which goes on behind everything that its writer submitted before.

        The stream that the writer opened before is fenced.

        Raises NotFoundError (RUN_NOT_FOUND) and FailedPreconditionError (RUN_SEALED, WRITER_KIND_MISMATCH,
        ACKED_DATA_MISSING).
        """

        def opened(position: StreamPosition) -> StreamSession:
            session = StreamSession(self._writer, request, position, self._limits, self._streams.closed)
            self._streams.opened(session)
            return session

        session = self._writer.open_stream(request, opened)
        if session.lost_append_count:
            _log.warning(
                "store_lost_acknowledged",
                run=request.run,
                writer=request.writer_id,
                lost_append_count=session.lost_append_count,
                committed_sequence_number=session.start.committed_sequence_number,
                last_acked_sequence_number=request.last_acked_sequence_number,
            )
        return session

    def list_request_records(
        self, request: ListRequestRecordsRequest, limit_seconds: float | None = None
    ) -> Page[RequestRecord]:
        """One page of the request records of a run, by subject, round and position in the round.

        Its query ends after `limit_seconds`.

        Raises NotFoundError (RUN_NOT_FOUND), InvalidArgumentError on `page_token`, and DeadlineExceededError.
        """
        return self._reader.list_request_records(request, limit_seconds)

    def query_traffic(self, request: TrafficRequest, limit_seconds: float | None = None) -> tuple[PortTraffic, ...]:
        """Rates of the counters of a run over windows of time, by host, boot, physical port and counter.

        It ends after `limit_seconds`. Raises NotFoundError (RUN_NOT_FOUND), InvalidArgumentError for a metric that
        counts no bytes, and DeadlineExceededError.
        """
        return self._reader.query_traffic(request, limit_seconds)

    def list_phase_traffic(
        self, request: ListPhaseTrafficRequest, limit_seconds: float | None = None
    ) -> Page[PhaseTraffic]:
        """One page of the traffic of a run, split at the send, the first and the last token of its requests.

        By subject, round, request, host, port and counter. It ends after `limit_seconds`.

        Raises NotFoundError (RUN_NOT_FOUND), InvalidArgumentError on `page_token`, and DeadlineExceededError.
        """
        return self._reader.list_phase_traffic(request, limit_seconds)

    def compare_run(self, run_id: str, limit_seconds: float | None = None) -> RunComparison:
        """Holds the frozen prediction beside what was measured; its queries end after `limit_seconds`.

        Raises InvalidArgumentError, NotFoundError and DeadlineExceededError.
        """
        run, records = self._reader.read_measured(RunRequest(run=run_id).run, limit_seconds)
        return compare(run.run_id, run.prediction, fold(records))

    def query_sql(self, request: SqlRequest, limit_seconds: float | None = None) -> SqlAnswer:
        """The answer to one SELECT, to be begun and closed by the caller; it ends after `limit_seconds` at the latest.

        Beginning and reading it raise InvalidArgumentError (SQL_NOT_READ_ONLY, SQL_ERROR), DeadlineExceededError,
        ResourceExhaustedError (QUERY_TOO_LARGE) and FailedPreconditionError (RUN_UNREADABLE).
        """
        return self._queries.open(request, limit_seconds)

    @property
    def query_count(self) -> int:
        """SQL queries that are not over, those included that nobody waits for any more."""
        return self._queries.count

    def publish_snapshot(self, _request: PublishSnapshotRequest = _NOW) -> Snapshot:
        """Writes what is stored now into the read-only copy that other processes open.

        Raises ResourceExhaustedError (DISK_FULL) and UnavailableError (SNAPSHOT_FAILED); the copy before stays then.
        """
        return self._snapshots.publish()

    def publish_snapshot_if_changed(self) -> Snapshot | None:
        """The same, where anything changed since the last time; else None."""
        return self._snapshots.publish_if_changed()

    def publish_every(self, interval_seconds: float) -> None:
        """Publishes a snapshot at this interval, where anything changed, until `close`."""
        if self._schedule is not None:
            self._schedule.end()
        self._archive.keep_unpublished()
        self._schedule = SnapshotSchedule(self.publish_snapshot_if_changed, interval_seconds)

    def watch_runs(self, request: WatchRunsRequest) -> RunWatch:
        """A watch of runs from a revision on. Nothing is read before it is asked for something.

        It raises OutOfRangeError (REVISION_COMPACTED).
        """
        return RunWatch(request, self._reader.reading, self._archive.located, self._changes)


def _append_outcome(outcome: Future[BatchOutcome]) -> Future[AppendOutcome]:
    """What an outcome says of records, as a future that cannot be cancelled either."""
    numbers: Future[AppendOutcome] = Future()
    numbers.set_running_or_notify_cancel()

    def pass_on(done: Future[BatchOutcome]) -> None:
        error = done.exception()
        if error is not None:
            numbers.set_exception(error)
            return
        result = done.result()
        numbers.set_result(
            AppendOutcome(
                committed_sequence_number=result.committed_sequence_number,
                checkpointed_sequence_number=result.checkpointed_sequence_number,
            )
        )

    outcome.add_done_callback(pass_on)
    return numbers
