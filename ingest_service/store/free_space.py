"""The room that is left where the store is: appends stop before the disk is full, which DuckDB does not survive."""

from __future__ import annotations

import os
import time
from pathlib import Path

from attrs import define, field

from linkbound.domain.errors import ResourceExhaustedError

NO_SPACE = "No space left on device"

LOOK_INTERVAL_SECONDS = 0.1
"""What a store can write meanwhile is a small part of any floor that is worth having."""

EXHAUSTED_BYTES = 2 * 2**20
"""Below this a write that failed did so for want of room, whatever the error says."""


@define
class FreeSpace:
    """What the file system of `folder` has left. `floor_bytes` is what appends leave alone; 0: nothing.

    Safe from any thread. It looks again after `LOOK_INTERVAL_SECONDS`.
    """

    folder: Path
    floor_bytes: int
    _is_short: bool = field(init=False, default=False)
    _look_time: float = field(init=False, default=0.0)

    @property
    def is_short(self) -> bool:
        """Whether appends have to wait until somebody makes room."""
        now = time.monotonic()
        if self.floor_bytes and now >= self._look_time:
            self._look_time = now + LOOK_INTERVAL_SECONDS
            self._is_short = self._free_bytes() < self.floor_bytes
        return self._is_short

    def check(self) -> None:
        """Raises ResourceExhaustedError (DISK_FULL) below the floor; trying again does not help until there is room."""
        if self.is_short:
            raise ResourceExhaustedError(
                f"{self.folder} has {self._free_bytes()} bytes left, the store leaves {self.floor_bytes} alone:"
                " make room, then go on",
                reason="DISK_FULL",
                metadata={"freeBytes": str(self._free_bytes()), "floorBytes": str(self.floor_bytes)},
            )

    def was_missing(self, error: BaseException) -> bool:
        """Whether `error` came of a full disk. DuckDB says so in the error itself, in its cause, or not at all."""
        seen: BaseException | None = error
        while seen is not None:
            if NO_SPACE in str(seen):
                return True
            seen = seen.__cause__ or seen.__context__
        return self._free_bytes() < EXHAUSTED_BYTES

    def _free_bytes(self) -> int:
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize
