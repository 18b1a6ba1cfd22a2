"""The snapshot of a store that another process holds, for a client that only reads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from linkbound.domain.errors import UnavailableError
from linkbound.domain.sql import SnapshotWarning

if TYPE_CHECKING:
    from ingest_service.snapshot_store import SnapshotStore


class LocalSnapshots:
    """Opens the last snapshot of the store at `store_path()`, once the store itself cannot be opened."""

    def __init__(self, store_path: Callable[[], Path]) -> None:
        self._store_path = store_path
        self._lock = threading.Lock()
        self._opened: SnapshotStore | None = None

    def opened(self, error: UnavailableError) -> SnapshotStore | None:
        """The last snapshot, with a SnapshotWarning that tells its age; None where there is none, or for another error.

        `error` says why the store cannot be opened. Raises FailedPreconditionError (STORE_UNREADABLE, SCHEMA_NEWER,
        SCHEMA_OLDER).
        """
        if error.reason != "STORE_LOCKED":
            return None
        from ingest_service.settings import StoreSettings
        from ingest_service.snapshot_store import SnapshotStore

        path = self._store_path()
        with self._lock:
            if self._opened is not None:
                if not self._opened.is_replaced(path):
                    return self._opened
                self._opened.close()
                self._opened = None
            try:
                self._opened = SnapshotStore.open(StoreSettings(path=path))
            except FileNotFoundError:
                return None
            taken = self._opened.snapshot_time
            age_seconds = max(0.0, (datetime.now(UTC) - taken).total_seconds())
            warnings.warn(SnapshotWarning(taken, age_seconds, error.metadata.get("pid", "")), stacklevel=2)
            return self._opened

    def close(self) -> None:
        """Lets go of the snapshot."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()
