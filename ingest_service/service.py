"""The ingest application object: domain types in, domain types out; servicers and the `local:` backend call it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType

import duckdb

from ingest_service.core.append import Append, AppendKind
from ingest_service.core.comparison import compare
from ingest_service.core.digest import digest_of_records
from ingest_service.core.measured import fold
from ingest_service.settings import StoreSettings
from ingest_service.store.append_committer import AppendRows, RecordRows
from ingest_service.store.arrow_rows import warm_up
from ingest_service.store.condition import StoreCondition
from ingest_service.store.database import open_database
from ingest_service.store.reader import Reader
from ingest_service.store.record_tables import table_of
from ingest_service.store.timestamps import utc_now
from ingest_service.store.writer import Writer
from ingest_service.stream_session import RefusedBatch, StreamSession
from linkbound.domain.paging import Page, PageRequest
from linkbound.domain.records import AppendRequest, ListRequestRecordsRequest, RequestRecord
from linkbound.domain.run import CreateRunRequest, Run, RunDetails, RunRequest, RunRowCounts, SealRunRequest
from linkbound.domain.run_comparison import RunComparison
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, StreamLimits

__all__ = ["Ingest", "RefusedBatch", "StoreSettings", "StreamSession"]


class Ingest:
    """Stores runs, records and samples, and compares runs with their predictions. Safe from any thread.

    Methods raise `linkbound.domain.errors`; besides those named at each, UnavailableError (STORE_CLOSED, STORE_BROKEN).
    """

    def __init__(self, root: duckdb.DuckDBPyConnection, settings: StoreSettings, clock: Callable[[], datetime]) -> None:
        self._root = root
        self._limits = StreamLimits(
            max_in_flight_batches=settings.max_in_flight_batches, max_batch_bytes=settings.max_batch_bytes
        )
        self._condition = StoreCondition()
        self._writer = Writer(root.cursor(), settings, clock, self._condition)
        self._reader = Reader(root, self._condition)

    @classmethod
    def open(cls, settings: StoreSettings, clock: Callable[[], datetime] = utc_now) -> Ingest:
        """Opens the store at `settings.path`, creates it where it is missing, and warms it up.

        Raises UnavailableError (STORE_LOCKED, with the `pid` of the process that holds it), FailedPreconditionError
        (STORE_UNREADABLE, SCHEMA_NEWER) and ResourceExhaustedError (DISK_FULL).
        """
        root = open_database(settings, clock)
        try:
            warm_up(root)
            return cls(root, settings, clock)
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

    def close(self) -> None:
        """Stores what is queued, then closes the file. Repeating it is fine."""
        self._writer.close()
        self._reader.close()
        try:
            self._root.close()
        except duckdb.Error:
            # A broken store cannot write its last checkpoint. Nothing acknowledged is lost: the log has it.
            if self._condition.broken_by is None:
                raise

    def create_run(self, request: CreateRunRequest) -> Run:
        """Creates a run and freezes its prediction, or returns the run created before with the same content.

        Raises AlreadyExistsError (RUN_EXISTS).
        """
        return self._writer.create_run(request)

    def get_run(self, run_id: str) -> RunDetails:
        """A run with its prediction and its row counts. Raises InvalidArgumentError, NotFoundError (RUN_NOT_FOUND)."""
        return self._reader.get_run(RunRequest(run=run_id).run)

    def list_runs(self, request: PageRequest) -> Page[Run]:
        """One page of runs, newest first, without their predictions. Raises InvalidArgumentError on `page_token`."""
        return self._reader.list_runs(request)

    def seal_run(self, request: SealRunRequest) -> Run:
        """Ends a run; every append submitted before is in it.

        Raises NotFoundError (RUN_NOT_FOUND) and FailedPreconditionError (ROW_COUNT_MISMATCH).
        """
        return self._writer.seal_run(request)

    def delete_run(self, run_id: str) -> RunRowCounts:
        """Deletes a run and returns what it held. Raises InvalidArgumentError, NotFoundError (RUN_NOT_FOUND)."""
        return self._writer.delete_run(RunRequest(run=run_id).run)

    def append(self, request: AppendRequest) -> Future[int]:
        """Queues records; the future resolves after their COMMIT to their number, below which all are stored too.

        Raises ResourceExhaustedError (QUEUE_FULL, nothing is queued). The future raises OutOfRangeError (SEQUENCE_GAP),
        AbortedError (WRITER_CONFLICT), FailedPreconditionError (RUN_SEALED, WRITER_KIND_MISMATCH), NotFoundError
        (RUN_NOT_FOUND) and ResourceExhaustedError (DISK_FULL).
        """
        table = table_of(request)
        rows = table.rows(request.run, request.writer_id, request.sequence_number, request.records)
        append = Append(
            run_id=request.run,
            writer_id=request.writer_id,
            sequence_number=request.sequence_number,
            kind=AppendKind.UNARY,
            digest=digest_of_records(request.records),
        )
        outcome = self._writer.append(
            AppendRows(append=append, rows=RecordRows(table.name, rows), row_count=rows.num_rows), rows.nbytes
        )
        return _committed_sequence_number(outcome)

    def open_stream(self, request: OpenStreamRequest) -> StreamSession:
        """Opens a sample stream; it goes on behind everything that its writer submitted before.

        Raises NotFoundError (RUN_NOT_FOUND) and FailedPreconditionError (RUN_SEALED, WRITER_KIND_MISMATCH,
        ACKED_DATA_MISSING).
        """
        return StreamSession(self._writer, request, self._writer.open_stream(request), self._limits)

    def list_request_records(
        self, request: ListRequestRecordsRequest, limit_seconds: float | None = None
    ) -> Page[RequestRecord]:
        """One page of the request records of a run, by subject, round and position in the round.

        Its query ends after `limit_seconds`.

        Raises NotFoundError (RUN_NOT_FOUND), InvalidArgumentError on `page_token`, and DeadlineExceededError.
        """
        return self._reader.list_request_records(request, limit_seconds)

    def compare_run(self, run_id: str, limit_seconds: float | None = None) -> RunComparison:
        """Holds the frozen prediction beside what was measured; its queries end after `limit_seconds`.

        Raises InvalidArgumentError, NotFoundError and DeadlineExceededError.
        """
        run, records = self._reader.read_measured(RunRequest(run=run_id).run, limit_seconds)
        return compare(run.run_id, run.prediction, fold(records))


def _committed_sequence_number(outcome: Future[BatchOutcome]) -> Future[int]:
    """The number in an outcome, as a future that cannot be cancelled either."""
    number: Future[int] = Future()
    number.set_running_or_notify_cancel()

    def pass_on(done: Future[BatchOutcome]) -> None:
        error = done.exception()
        if error is not None:
            number.set_exception(error)
        else:
            number.set_result(done.result().committed_sequence_number)

    outcome.add_done_callback(pass_on)
    return number
