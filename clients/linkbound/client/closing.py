"""How sample writers learn that their client was closed: one rule for both APIs and both backends."""

from __future__ import annotations

import threading
from collections.abc import Callable

from linkbound.domain.errors import FailedPreconditionError


def closed_error() -> FailedPreconditionError:
    """The error of whatever needs a client that was closed."""
    return FailedPreconditionError("the client is closed", reason="CLIENT_CLOSED")


class Closing:
    """Whether a client is closed, and whom to tell when it is. Threads may share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_closed = False
        self._listeners: list[Callable[[], None]] = []

    def add(self, listener: Callable[[], None]) -> None:
        """Call `listener` once the client is closed, in the thread that closes it.

        Raises FailedPreconditionError (CLIENT_CLOSED) if it is closed already.
        """
        with self._lock:
            if self._is_closed:
                raise closed_error()
            self._listeners.append(listener)

    def remove(self, listener: Callable[[], None]) -> None:
        """Forget `listener`."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def close(self) -> None:
        """The client is closed: tell everyone, once."""
        with self._lock:
            self._is_closed = True
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener()
