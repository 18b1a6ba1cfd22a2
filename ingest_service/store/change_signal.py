"""Wakes those who wait for runs to change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import define, field


@define
class ChangeSignal:
    """Told of changes by the thread that writes; tells listeners, which must be quick. Safe from any thread."""

    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _listeners: list[Callable[[], None]] = field(init=False, factory=list)

    @contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls `listener` after each change until the end of the block, from another thread."""
        with self._lock:
            self._listeners.append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)

    def announce(self) -> None:
        """Something may have changed."""
        with self._lock:
            for listener in self._listeners:
                listener()
