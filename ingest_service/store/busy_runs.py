"""Which runs are being sealed, deleted or dropped: each by one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field

from ingest_service.store.database import closed_store_error


@define
class BusyRuns:
    """Safe from any thread."""

    _changed: threading.Condition = field(init=False, factory=threading.Condition)
    _runs: set[str] = field(init=False, factory=set)
    _vanishing: set[str] = field(init=False, factory=set)
    _is_ending: bool = field(init=False, default=False)

    @contextmanager
    def alone(self, run_id: str) -> Iterator[None]:
        """Nobody else is at the run within the block. Raises UnavailableError (STORE_CLOSED) once nothing may begin."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_ending or run_id not in self._runs)
            if self._is_ending:
                raise closed_store_error()
            self._runs.add(run_id)
        try:
            yield
        finally:
            with self._changed:
                self._runs.discard(run_id)
                self._vanishing.discard(run_id)
                self._changed.notify_all()

    def vanishes(self, run_id: str) -> None:
        """The run is deleted, and something of it is still there until the block of this thread ends."""
        with self._changed:
            self._vanishing.add(run_id)

    def wait_for_vanishing(self, run_id: str) -> None:
        """Returns once nothing is there any more of a deleted run."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_ending or run_id not in self._vanishing)

    def end(self) -> None:
        """Lets nothing begin any more."""
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()

    def wait_until_idle(self) -> None:
        """Returns once nobody is at any run."""
        with self._changed:
            self._changed.wait_for(lambda: not self._runs)
