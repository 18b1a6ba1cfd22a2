"""The bounded queue between everybody who asks for a change and the one thread that makes it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from attrs import define, field, frozen

from ingest_service.store.append_committer import AppendRows
from linkbound.domain.errors import Error, ResourceExhaustedError
from linkbound.domain.samples import BatchOutcome
from linkbound.domain.words import counted

QUEUE_RETRY_DELAY_SECONDS = 0.2
"""When to try again after QUEUE_FULL: about what a full queue of the default size takes to be committed."""

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
            self._changed.notify()

    def take(self, row_limit: int, byte_limit: int) -> list[AppendJob] | Command[Any] | None:
        """Waits for the next work: the appends at the head within both limits, but at least one; or one command.

        None: the queue is closed and empty.
        """
        with self._changed:
            while not self._jobs:
                if self._closed_by is not None:
                    return None
                self._changed.wait()
            head = self._jobs[0]
            if isinstance(head, Command):
                self._jobs.popleft()
                return head
            return self._take_appends(row_limit, byte_limit)

    def close(self, error: Callable[[], Error]) -> None:
        """Lets nothing more in: `put` raises a new `error()`. What is queued can still be taken."""
        with self._changed:
            self._closed_by = self._closed_by or error
            self._changed.notify_all()

    def drain(self) -> list[Job]:
        """Takes everything."""
        with self._changed:
            jobs = list(self._jobs)
            self._jobs.clear()
            self._row_count = self._byte_count = 0
            return jobs

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
