"""Whether the store still works: one answer for the thread that writes, for reads and for health."""

from __future__ import annotations

import threading

from attrs import define, field


@define
class StoreCondition:
    """What broke the store, if anything did; it does not mend itself. Safe from any thread."""

    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _broken_by: str | None = field(init=False, default=None)

    @property
    def broken_by(self) -> str | None:
        """Why nothing more can be stored or read; None while all is well."""
        return self._broken_by

    def mark_broken(self, cause: BaseException) -> None:
        """The store is of no more use because of `cause`; the first cause stays."""
        with self._lock:
            if self._broken_by is None:
                self._broken_by = str(cause) or type(cause).__name__
