"""What a caller says about a spool."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from attrs import field, frozen

from linkbound.domain.rules import Checked, finite, instance, member, optional, whole

MEBIBYTE_BYTES = 2**20
SMALLEST_LIMIT_BYTES = 2**18


class WhenFull(Enum):
    """What becomes of new samples while a spool is full. Those that are in it stay in it, oldest first, in any case."""

    DROP_NEWEST = "DROP_NEWEST"
    """They are dropped and counted, and writing goes on."""
    WAIT = "WAIT"
    """Writing waits for room, up to the timeout of the writer, and then raises ResourceExhaustedError (SPOOL_FULL)."""


def _as_path(directory: object) -> object:
    return Path(directory) if isinstance(directory, str) else directory


@frozen
class Spool(Checked):
    """A directory of this machine in which writers keep what the service does not hold for good yet.

    Each writer of each run has a subdirectory of its own, of at most `limit_bytes`. A file system that is full counts
    as a spool that is full. What was spooled survives the end of the process in any case, and a loss of power but for
    the last `sync_seconds`; 0: but for nothing, at the price of one sync per batch; None: as the system pleases. The
    directory is to be on a local file system.

    Raises InvalidArgumentError on construction.
    """

    directory: Path = field(converter=_as_path, metadata=instance(Path))
    limit_bytes: int = field(default=1024 * MEBIBYTE_BYTES, kw_only=True, metadata=whole(SMALLEST_LIMIT_BYTES, 2**60))
    when_full: WhenFull = field(default=WhenFull.DROP_NEWEST, kw_only=True, metadata=member(WhenFull))
    sync_seconds: float | None = field(default=1.0, kw_only=True, metadata=optional(finite(0, 3600)))


def writer_directory(directory: Path, run: str, writer_id: str) -> Path:
    """Where a spool in `directory` keeps what this writer wrote. A writer may be called `..`, hence the suffix."""
    return directory / run / f"{writer_id}.spool"
