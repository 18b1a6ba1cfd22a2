"""Opens a store whose log is damaged: what stands before the damage is kept, and the log as it was beside it.

DuckDB reads a log from its begin to its end, checks each entry, and takes whole transactions only. So what stands
before the first entry that is not what was written is what was committed up to there, and what stands behind it cannot
be taken without it. A log that merely ends too early needs none of this: it is read as far as it goes.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from ingest_service.settings import StoreSettings
from ingest_service.store.database import LOG_DAMAGED, WHOLE_BYTES, open_database
from ingest_service.store.log_watch import log_path
from ingest_service.store.sealed_folder import sync_folder
from ingest_service.store.timestamps import utc_now
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.store_recovery import LogRecovery

_ENTRY_HEADER_BYTES = 16
"""Size and checksum, which stand before the place that DuckDB names."""


def recover_log(settings: StoreSettings, clock: Callable[[], datetime] = utc_now) -> LogRecovery:
    """Leaves a store that can be opened, and its log in its file. A log that is whole loses nothing.

    Raises FailedPreconditionError (STORE_UNREADABLE, SCHEMA_NEWER), UnavailableError (STORE_LOCKED),
    ResourceExhaustedError (DISK_FULL) and OSError; the log as it was is in its place or beside it then.
    """
    path, log = settings.path, log_path(settings.path)
    if not path.exists():
        raise FailedPreconditionError(
            f"there is no store at {path}", reason="STORE_UNREADABLE", metadata={"path": str(path)}
        )
    size_bytes = log.stat().st_size if log.exists() else 0
    damage = _damage(settings, clock)
    if damage is None:
        return LogRecovery(path=str(path), log_size_bytes=size_bytes, kept_size_bytes=size_bytes)
    aside = _copied_aside(log)
    for kept_bytes in _places_to_cut(int(damage.metadata[WHOLE_BYTES])):
        _cut(log, kept_bytes)
        damage = _damage(settings, clock)
        if damage is None:
            return LogRecovery(
                path=str(path), log_size_bytes=size_bytes, kept_size_bytes=kept_bytes, set_aside_path=str(aside)
            )
    raise damage


def _damage(settings: StoreSettings, clock: Callable[[], datetime]) -> FailedPreconditionError | None:
    """What is wrong with the log; None where it was read, and moved into the file."""
    try:
        open_database(settings, clock).close()
    except FailedPreconditionError as error:
        if error.reason == LOG_DAMAGED:
            return error
        raise
    return None


def _places_to_cut(named_bytes: int) -> Iterator[int]:
    """Where the log may end, the longest first; the last one leaves nothing of it."""
    yield from dict.fromkeys(place for place in (named_bytes, named_bytes - _ENTRY_HEADER_BYTES, 0) if place >= 0)


def _copied_aside(log: Path) -> Path:
    """A copy of the log under a name that was free, on the disk."""
    names = (log.with_name(f"{log.name}.damaged-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    try:
        with log.open("rb") as source, aside.open("xb") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        sync_folder(log.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            aside.unlink()
        raise
    return aside


def _cut(log: Path, size_bytes: int) -> None:
    with log.open("r+b") as file:
        file.truncate(size_bytes)
        os.fsync(file.fileno())
