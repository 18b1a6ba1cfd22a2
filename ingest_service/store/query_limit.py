"""How long a read may take: its queries are interrupted, and its other work asks whether it is over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
from attrs import field, frozen

from linkbound.domain.errors import DeadlineExceededError

INTERRUPT_INTERVAL_SECONDS = 0.1
"""An interrupt ends the query that runs and no later one, so it is repeated until the work is over."""


@frozen
class QueryLimit:
    """The limit of one read; None: it takes as long as it does."""

    _limit_seconds: float | None
    _over: threading.Event = field(init=False, factory=threading.Event)

    def check(self) -> None:
        """Raises DeadlineExceededError once the time is over; for work that no interrupt ends."""
        if self._over.is_set():
            raise self.error()

    def end(self) -> None:
        """The time is over."""
        self._over.set()

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self._over.is_set()

    def error(self) -> DeadlineExceededError:
        """What is raised then."""
        return DeadlineExceededError(f"the read took longer than {self._limit_seconds:g} s")


@contextmanager
def interrupted_after(cursor: duckdb.DuckDBPyConnection, limit_seconds: float | None) -> Iterator[QueryLimit]:
    """Ends the queries of the block once the time is over. Raises DeadlineExceededError then."""
    limit = QueryLimit(limit_seconds)
    if limit_seconds is None:
        yield limit
        return
    done = threading.Event()

    def interrupt() -> None:
        wait_seconds = limit_seconds
        while not done.wait(wait_seconds):
            limit.end()
            cursor.interrupt()
            wait_seconds = INTERRUPT_INTERVAL_SECONDS

    thread = threading.Thread(target=interrupt, name="linkbound-interrupt", daemon=True)
    thread.start()
    try:
        yield limit
    except duckdb.InterruptException as error:
        raise limit.error() from error
    except OSError as error:
        # Arrow has no other word for what ended the query that it reads from.
        if limit.is_over:
            raise limit.error() from error
        raise
    finally:
        done.set()
        thread.join()
