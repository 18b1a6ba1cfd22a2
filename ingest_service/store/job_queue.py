"""The bounded queue between everybody who asks for a change and the one thread that makes it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from enum import Enum
from typing import Any, Generic, TypeVar

from attrs import define, field, frozen

from ingest_service.core.append import AppendKind
from ingest_service.store.append_committer import AppendRows
from linkbound.domain.errors import Error, ResourceExhaustedError
from linkbound.domain.samples import BatchOutcome
from linkbound.domain.words import counted

QUEUE_RETRY_DELAY_SECONDS = 0.2
"""When to try again after QUEUE_FULL: about what a full queue of the default size takes to be committed."""

GATHERED_ROW_COUNT = 2_500
"""Rows for which a transaction is worth its cost, which hardly depends on them."""

T = TypeVar("T")


def _running_future() -> Future[Any]:
    """A future that cannot be cancelled: what is queued is stored."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


@frozen
class AppendJob:
    """An append to store. `byte_count` is what its rows take in memory."""

    rows: AppendRows
    byte_count: int
    future: Future[BatchOutcome] = field(init=False, factory=_running_future)

    @property
    def row_count(self) -> int:
        """What it counts for: one row at least, since an append without rows is stored in the ledger too."""
        return max(1, self.rows.row_count)


@frozen
class Command(Generic[T]):
    """Anything else that the writer thread does, such as creating a run."""

    action: Callable[[], T]
    future: Future[T] = field(init=False, factory=_running_future)


Job = AppendJob | Command[Any]


class Nothing(Enum):
    """Why there is no work."""

    YET = "nothing came in time"
    MORE = "the queue is closed and empty"


Work = list[AppendJob] | Command[Any] | Nothing


@define
class JobQueue:
    """First in, first out. Bounded by rows and bytes; one append is always let in, however large."""

    _row_limit: int
    _byte_limit: int
    _jobs: deque[Job] = field(init=False, factory=deque)
    _row_count: int = field(init=False, default=0)
    _byte_count: int = field(init=False, default=0)
    _closed_by: Callable[[], Error] | None = field(init=False, default=None)
    _changed: threading.Condition = field(init=False, factory=threading.Condition)
    _is_gathering: bool = field(init=False, default=False)
    _waiting_for_room: list[Future[None]] = field(init=False, factory=list)

    def put(self, job: Job) -> None:
        """Queues a job.

        Raises ResourceExhaustedError (QUEUE_FULL) for an append that does not fit, or what the queue was closed with.
        """
        with self._changed:
            if self._closed_by is not None:
                raise self._closed_by()
            if isinstance(job, AppendJob):
                self._reserve(job)
            self._jobs.append(job)
            if not (self._is_gathering and _may_wait(job) and self._row_count < GATHERED_ROW_COUNT):
                self._changed.notify()

    def take(
        self, row_limit: int, byte_limit: int, wait_seconds: float | None = None, gather_seconds: float = 0.0
    ) -> Work:
        """The next work: the appends at the head within both limits, but at least one; or one command.

        Waits for it, for `wait_seconds` at most where that is given. Where it is a few batches of streams, waits for
        others to come along, for `gather_seconds` at most.
        """
        with self._changed:
            while not self._jobs:
                if self._closed_by is not None:
                    return Nothing.MORE
                if not self._changed.wait(wait_seconds):
                    return Nothing.YET
            if gather_seconds > 0:
                self._gather(gather_seconds)
            head = self._jobs[0]
            if isinstance(head, Command):
                self._jobs.popleft()
                return head
            group, told = self._take_appends(row_limit, byte_limit), self._those_waiting_for_room()
        _resolve(told)
        return group

    @property
    def is_half_empty(self) -> bool:
        """Whether many more appends have room."""
        return 2 * self._row_count <= self._row_limit and 2 * self._byte_count <= self._byte_limit

    def when_room(self) -> Future[None]:
        """Resolves once the queue is half empty, or closed. Who asks before a look at the queue misses nothing."""
        room: Future[None] = _running_future()
        with self._changed:
            self._waiting_for_room.append(room)
            told = self._those_waiting_for_room()
        _resolve(told)
        return room

    def close(self, error: Callable[[], Error]) -> None:
        """Lets nothing more in: `put` raises a new `error()`. What is queued can still be taken."""
        with self._changed:
            self._closed_by = self._closed_by or error
            self._changed.notify_all()
            told = self._those_waiting_for_room()
        _resolve(told)

    def drain(self) -> list[Job]:
        """Takes everything."""
        with self._changed:
            jobs = list(self._jobs)
            self._jobs.clear()
            self._row_count = self._byte_count = 0
            return jobs

    def _gather(self, limit_seconds: float) -> None:
        """Returns once enough is queued, something cannot wait, the queue is closed or the time is over."""
        is_enough = self._row_count >= GATHERED_ROW_COUNT or self._closed_by is not None
        if not is_enough and all(map(_may_wait, self._jobs)):
            self._is_gathering = True
            self._changed.wait(limit_seconds)
            self._is_gathering = False

    def _those_waiting_for_room(self) -> list[Future[None]]:
        """Those whom room is news to; none while there is little. Half a queue lets many in at once."""
        if not (self.is_half_empty or self._closed_by is not None):
            return []
        told, self._waiting_for_room = self._waiting_for_room, []
        return told

    def _reserve(self, job: AppendJob) -> None:
        rows, size_bytes = self._row_count + job.row_count, self._byte_count + job.byte_count
        if self._row_count and (rows > self._row_limit or size_bytes > self._byte_limit):
            raise ResourceExhaustedError(
                f"{counted(self._row_count, 'row')} with {counted(self._byte_count, 'byte')} already queued;"
                " try again later",
                reason="QUEUE_FULL",
                retry_delay_seconds=QUEUE_RETRY_DELAY_SECONDS,
                metadata={"queuedRowCount": str(self._row_count), "queuedBytes": str(self._byte_count)},
            )
        self._row_count, self._byte_count = rows, size_bytes

    def _take_appends(self, row_limit: int, byte_limit: int) -> list[AppendJob]:
        group: list[AppendJob] = []
        rows = size_bytes = 0
        while self._jobs and isinstance(job := self._jobs[0], AppendJob):
            rows, size_bytes = rows + job.row_count, size_bytes + job.byte_count
            if group and (rows > row_limit or size_bytes > byte_limit):
                break
            self._jobs.popleft()
            group.append(job)
            self._row_count -= job.row_count
            self._byte_count -= job.byte_count
        return group


def _may_wait(job: Job) -> bool:
    """Whether others may be waited for first: a stream goes on meanwhile, while other callers wait for their answer."""
    return isinstance(job, AppendJob) and job.rows.append.kind is AppendKind.STREAM


def _resolve(futures: Iterable[Future[None]]) -> None:
    # Outside the lock: callbacks run here.
    for future in futures:
        future.set_result(None)
