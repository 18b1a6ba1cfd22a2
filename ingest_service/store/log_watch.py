"""Tells from the size of the write-ahead log what a checkpoint has moved into the file itself."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import define, field

LARGEST_GROWTH = 4
"""What a checkpoint writes is mostly less than the log; the row groups that it puts together anew come on top."""
SPARE_BYTES = 4 * 2**20


def log_path(store_path: Path) -> Path:
    """Where DuckDB keeps the log of a store."""
    return store_path.with_name(f"{store_path.name}.wal")


@define
class LogWatch:
    """Looks at the log of one store. Belongs to the thread that commits, and is asked after everything it did.

    The log only grows until a checkpoint takes all of it, so one that is gone, or shorter than it was, shows that
    everything committed by then is in the file.
    """

    _path: Path
    _size_bytes: int = field(init=False, default=0)

    @property
    def size_bytes(self) -> int:
        """Its size when it was looked at last."""
        return self._size_bytes

    def lacks_room(self) -> bool:
        """Whether the disk lacks room to move the log into the file: a checkpoint that finds none ends the store."""
        size_bytes = self._look()
        status = os.statvfs(self._path.parent)
        free_bytes = status.f_bavail * status.f_frsize
        return size_bytes > 0 and free_bytes < LARGEST_GROWTH * size_bytes + SPARE_BYTES

    def has_been_emptied(self) -> bool:
        """Whether everything committed so far is in the file."""
        size_bytes, self._size_bytes = self._size_bytes, self._look()
        return self._size_bytes < size_bytes or self._size_bytes == 0

    def _look(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0
