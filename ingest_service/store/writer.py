"""The one thread that changes the database. Everybody else queues what they want and waits for a future."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any, TypeVar

import duckdb
import structlog

from ingest_service.core.append import Checkpointed, StreamPosition
from ingest_service.settings import StoreSettings
from ingest_service.store import run_commands
from ingest_service.store.append_committer import AppendCommitter, AppendRows
from ingest_service.store.change_signal import ChangeSignal
from ingest_service.store.checkpoint_rests import CheckpointRests
from ingest_service.store.condition import StoreCondition
from ingest_service.store.database import broken_store_error, closed_store_error, disk_full_error
from ingest_service.store.free_space import FreeSpace
from ingest_service.store.job_queue import AppendJob, Command, JobQueue, Nothing, Work
from ingest_service.store.log_watch import LogWatch, log_path
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.transactions import StoreBrokenError
from linkbound.domain.errors import Error, InternalError
from linkbound.domain.run import CreateRunRequest, Run
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest

GROUP_ROW_LIMIT = 60_000
"""Rows of one transaction, where as many wait. Measured: a row takes a third less than in transactions of 20,000. From
122,880 on, the rows of a row group, they would go around the log, and checkpoints would put them together anew."""

COMMIT_INTERVAL_SECONDS = 0.025
"""Time between the beginnings of two transactions where little is queued. Measured: one takes 1.5 ms of a core whatever
is in it, so that of many agents with a little each it would take more than their rows do."""

GROUP_BYTE_LIMIT = 16 * 2**20
"""Bytes of one transaction, as its rows take them in memory; bounds it where rows are long. The default of the largest
message, so that an append of any size makes up one transaction at most."""

T = TypeVar("T")
_log = structlog.get_logger(__name__)


def _nobody(_changes: Sequence[Checkpointed]) -> None:
    """Who is told of checkpoints where no stream is open."""


def _no_room_to_make() -> None:
    """What is done for memory where there are no queries of others."""


class Writer:
    """Queues changes and makes them on its own thread; the methods may be called from any other.

    Appends that wait when a commit ends make up the next one, so groups form by themselves and nothing waits for a
    timer: an append that comes after a pause is committed at once, and so is one of records, whose caller waits for it.
    While few samples come, transactions begin `COMMIT_INTERVAL_SECONDS` apart. Futures are resolved after COMMIT.
    Changes happen in the order in which they are queued.

    While nothing is asked for, it moves what is committed from the log into the file and tells `on_checkpointed` for
    which writers, so that they need not keep it. Where it lacks memory, `make_room` ends what else uses any.

    Errors of every method besides its own: UnavailableError (STORE_CLOSED, STORE_BROKEN), and ResourceExhaustedError
    (DISK_FULL) once a full disk broke the store.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        settings: StoreSettings,
        clock: Callable[[], datetime],
        condition: StoreCondition,
        on_checkpointed: Callable[[Sequence[Checkpointed]], None] = _nobody,
        make_room: Callable[[], None] = _no_room_to_make,
        changes: ChangeSignal | None = None,
    ) -> None:
        self._connection = connection
        self._clock = clock
        changes = changes or ChangeSignal()
        self._changes = changes
        self._appends = AppendCommitter(
            connection,
            clock,
            LogWatch(log_path(settings.path)),
            on_checkpointed,
            SealedFolder.beside(settings.path),
            changes,
        )
        self._space = FreeSpace(settings.path.parent, settings.free_space_floor_bytes)
        self._rests = CheckpointRests(
            idle_seconds=settings.checkpoint_idle_seconds, age_seconds=settings.checkpoint_age_seconds
        )
        self._queue = JobQueue(settings.queue_row_limit, settings.queue_byte_limit)
        self._condition = condition
        self._make_room = make_room
        self._thread = threading.Thread(target=self._run, name="linkbound-writer", daemon=True)
        self._thread.start()

    @property
    def healthy(self) -> bool:
        """Whether changes are still made."""
        return self._condition.broken_by is None and self._thread.is_alive()

    @property
    def has_room(self) -> bool:
        """Whether the disk has room for appends."""
        return not self._space.is_short

    def append(self, rows: AppendRows, byte_count: int) -> Future[BatchOutcome]:
        """Queues an append; the future holds what the append machine says of it, after COMMIT.

        Raises ResourceExhaustedError (QUEUE_FULL; DISK_FULL below the floor of free space).
        """
        self._space.check()
        job = AppendJob(rows, byte_count)
        self._queue.put(job)
        return job.future

    @property
    def is_crowded(self) -> bool:
        """Whether more than half of the queue is taken."""
        return not self._queue.is_half_empty

    def when_room(self) -> Future[None]:
        """Resolves once a queue that was full has room again, or takes nothing any more."""
        return self._queue.when_room()

    def create_run(self, request: CreateRunRequest) -> Run:
        """Creates a run (`run_commands.create_run`) and waits for it. Raises ResourceExhaustedError (DISK_FULL) too."""
        self._space.check()
        return self._command(lambda: run_commands.create_run(self._connection, request, self._clock()))

    def change(self, action: Callable[[duckdb.DuckDBPyConnection, AppendCommitter], T]) -> T:
        """What `action` returns, on the thread that writes and behind all appends queued before. It should be short."""
        return self._command(lambda: action(self._connection, self._appends))

    def open_stream(self, request: OpenStreamRequest, opened: Callable[[StreamPosition], T]) -> T:
        """What `opened` makes of where the stream goes on (`AppendCommitter.open_stream`), behind all appends queued.

        It runs on the thread that commits, so that nothing happens to the writer between the two.
        """
        return self._command(lambda: opened(self._appends.open_stream(request)))

    def close(self) -> None:
        """Commits what is queued, then ends the thread. Repeating it is fine."""
        self._queue.close(closed_store_error)
        self._thread.join()

    def _command(self, action: Callable[[], T]) -> T:
        command = Command(action)
        self._queue.put(command)
        return command.future.result()

    def _run(self) -> None:
        work: Work = Nothing.YET
        commit_time = 0.0
        try:
            while work is not Nothing.MORE:
                rest = self._rests.wait_seconds(time.monotonic())
                wait = _shorter(rest, self._appends.telling_wait_seconds())
                gather = commit_time + COMMIT_INTERVAL_SECONDS - time.monotonic()
                work = self._queue.take(GROUP_ROW_LIMIT, GROUP_BYTE_LIMIT, wait, gather)
                commit_time = time.monotonic()
                self._do(work)
                if work is Nothing.YET and rest is not None and rest == wait and not self._appends.checkpoint():
                    self._rests.postpone(time.monotonic())
                self._rests.note(time.monotonic(), has_uncheckpointed=self._appends.has_uncheckpointed)
        except BaseException as error:  # whatever ends this thread must not leave callers waiting for ever
            self._give_up(error.__cause__ or error, work)

    def _do(self, work: Work) -> None:
        match work:
            case Command():
                self._execute(work)
                self._changes.announce()
                self._appends.look_at_log()
                self._appends.checkpoint_when_full()
            case list():
                self._commit(work)
                self._appends.checkpoint_when_full()
            case Nothing.YET:
                self._appends.tell_of_appends()

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
            self._commit_with_room(group)
        except StoreBrokenError:
            raise
        except Exception as error:
            if len(group) == 1:
                group[0].future.set_exception(_as_domain_error(error))
                return
            _log.warning("append_group_failed", append_count=len(group), exc_info=error)
            for job in group:
                self._commit([job])

    def _commit_with_room(self, group: Sequence[AppendJob]) -> None:
        """Commits the group; where memory is short, once more after the queries of others were ended."""
        try:
            self._commit_together(group)
        except duckdb.OutOfMemoryException as error:
            _log.warning("append_memory_short", exc_info=error)
            self._make_room()
            self._commit_together(group)

    def _commit_together(self, group: Sequence[AppendJob]) -> None:
        answers = self._appends.append([job.rows for job in group])
        for job, answer in zip(group, answers, strict=True):
            if isinstance(answer, Error):
                job.future.set_exception(answer)
            else:
                job.future.set_result(answer)

    def _give_up(self, cause: BaseException, work: Work) -> None:
        """Fails what is under way and what is queued, and lets nothing more in."""
        self._condition.mark_broken(cause)
        is_disk_full = self._space.was_missing(cause)

        def error() -> Error:
            return disk_full_error(cause) if is_disk_full else broken_store_error(str(cause))

        self._queue.close(error)
        under_way = work if isinstance(work, list) else [work] if isinstance(work, Command) else []
        for job in (*under_way, *self._queue.drain()):
            if not job.future.done():
                job.future.set_exception(error())
        _log.error("store_broken", exc_info=cause)


def _shorter(one: float | None, other: float | None) -> float | None:
    """The shorter of two waits; None is for ever."""
    return min((wait for wait in (one, other) if wait is not None), default=None)


def _as_domain_error(error: Exception) -> Error:
    if isinstance(error, Error):
        return error
    internal = InternalError(f"not stored: {error}")
    internal.__cause__ = error
    return internal
