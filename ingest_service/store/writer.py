"""The one thread that changes the database. Everybody else queues what they want and waits for a future."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any, TypeVar

import duckdb
import structlog

from ingest_service.settings import StoreSettings
from ingest_service.store import run_commands
from ingest_service.store.append_committer import AppendCommitter, AppendRows
from ingest_service.store.condition import StoreCondition
from ingest_service.store.database import broken_error, broken_store_error, closed_store_error
from ingest_service.store.job_queue import AppendJob, Command, JobQueue
from ingest_service.store.transactions import StoreBrokenError
from linkbound.domain.errors import Error, InternalError
from linkbound.domain.run import CreateRunRequest, Run, RunRowCounts, SealRunRequest
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest

GROUP_ROW_LIMIT = 20_000
"""Rows of one transaction. Measured: half the throughput of five times as many, at a fraction of the commit time."""

GROUP_BYTE_LIMIT = 16 * 2**20
"""Bytes of one transaction, as its rows take them in memory; bounds it where rows are long. The default of the largest
message, so that an append of any size makes up one transaction at most."""

T = TypeVar("T")
_log = structlog.get_logger(__name__)


class Writer:
    """Queues changes and makes them on its own thread; the methods may be called from any other.

    Appends that wait when a commit ends make up the next one, so groups form by themselves and nothing waits for a
    timer. Futures are resolved after COMMIT. Changes happen in the order in which they are queued.

    Errors of every method besides its own: UnavailableError (STORE_CLOSED, STORE_BROKEN).
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        settings: StoreSettings,
        clock: Callable[[], datetime],
        condition: StoreCondition,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._appends = AppendCommitter(connection, clock)
        self._queue = JobQueue(settings.queue_row_limit, settings.queue_byte_limit)
        self._condition = condition
        self._thread = threading.Thread(target=self._run, name="linkbound-writer", daemon=True)
        self._thread.start()

    @property
    def healthy(self) -> bool:
        """Whether changes are still made."""
        return self._condition.broken_by is None and self._thread.is_alive()

    def append(self, rows: AppendRows, byte_count: int) -> Future[BatchOutcome]:
        """Queues an append; the future holds what the append machine says of it, after COMMIT.

        Raises ResourceExhaustedError (QUEUE_FULL).
        """
        job = AppendJob(rows, byte_count)
        self._queue.put(job)
        return job.future

    def create_run(self, request: CreateRunRequest) -> Run:
        """Creates a run (`run_commands.create_run`) and waits for it."""
        return self._command(lambda: run_commands.create_run(self._connection, request, self._clock()))

    def seal_run(self, request: SealRunRequest) -> Run:
        """Seals a run (`run_commands.seal_run`) behind all appends queued before, and waits for it."""

        def seal() -> Run:
            run = run_commands.seal_run(self._connection, request, self._clock())
            self._appends.forget(request.run)
            return run

        return self._command(seal)

    def delete_run(self, run_id: str) -> RunRowCounts:
        """Deletes a run (`run_commands.delete_run`) and waits for it."""

        def delete() -> RunRowCounts:
            counts = run_commands.delete_run(self._connection, run_id)
            self._appends.forget(run_id)
            return counts

        return self._command(delete)

    def open_stream(self, request: OpenStreamRequest) -> int:
        """Committed number of the writer (`AppendCommitter.open_stream`) behind all appends queued before."""
        return self._command(lambda: self._appends.open_stream(request))

    def close(self) -> None:
        """Commits what is queued, then ends the thread. Repeating it is fine."""
        self._queue.close(closed_store_error)
        self._thread.join()

    def _command(self, action: Callable[[], T]) -> T:
        command = Command(action)
        self._queue.put(command)
        return command.future.result()

    def _run(self) -> None:
        work: list[AppendJob] | Command[Any] | None = None
        try:
            while (work := self._queue.take(GROUP_ROW_LIMIT, GROUP_BYTE_LIMIT)) is not None:
                if isinstance(work, Command):
                    self._execute(work)
                else:
                    self._commit(work)
        except BaseException as error:  # whatever ends this thread must not leave callers waiting for ever
            self._give_up(error.__cause__ or error, [work] if isinstance(work, Command) else work or [])

    def _execute(self, command: Command[Any]) -> None:
        try:
            result = command.action()
        except StoreBrokenError:
            raise
        except Exception as error:
            command.future.set_exception(_as_domain_error(error))
        else:
            command.future.set_result(result)

    def _commit(self, group: Sequence[AppendJob]) -> None:
        """Commits the group; where that fails, each append alone, so that one cannot fail the others."""
        try:
            self._commit_together(group)
        except StoreBrokenError:
            raise
        except Exception as error:
            if len(group) == 1:
                group[0].future.set_exception(_as_domain_error(error))
                return
            _log.warning("append_group_failed", append_count=len(group), exc_info=error)
            for job in group:
                self._commit([job])

    def _commit_together(self, group: Sequence[AppendJob]) -> None:
        answers = self._appends.append([job.rows for job in group])
        for job, answer in zip(group, answers, strict=True):
            if isinstance(answer, Error):
                job.future.set_exception(answer)
            else:
                job.future.set_result(answer)

    def _give_up(self, cause: BaseException, work: Sequence[AppendJob | Command[Any]]) -> None:
        """Fails what is under way and what is queued, and lets nothing more in."""
        self._condition.mark_broken(cause)
        self._queue.close(lambda: broken_store_error(str(cause)))
        for job in (*work, *self._queue.drain()):
            if not job.future.done():
                job.future.set_exception(broken_error(cause))
        _log.error("store_broken", exc_info=cause)


def _as_domain_error(error: Exception) -> Error:
    if isinstance(error, Error):
        return error
    internal = InternalError(f"not stored: {error}")
    internal.__cause__ = error
    return internal
