"""Opens the DuckDB file, says clearly why it cannot, and closes what the outside world could reach through SQL."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import duckdb

from ingest_service.settings import StoreSettings
from ingest_service.store.schema import migrate, shipped_migrations
from linkbound.domain.errors import Error, FailedPreconditionError, ResourceExhaustedError, UnavailableError

STORAGE_VERSION = "v1.5.0"
"""Files that every supported DuckDB reads; the default of a newer one would shut out the older."""

CHECKPOINT_WAL_SIZE = "4MB"
"""Size of the write-ahead log at which a commit also checkpoints; it bounds the longest commit. Measured: 16 MB makes
it more than three times as long."""

_LOCK_HOLDER = re.compile(r"lock is held in (?P<program>\S+)(?: \(PID (?P<pid>\d+)\))?")
_NO_SPACE = "No space left on device"


def open_database(settings: StoreSettings, clock: Callable[[], datetime]) -> duckdb.DuckDBPyConnection:
    """The opened and migrated database; creates the file and its folder where they are missing.

    Raises:
        UnavailableError: STORE_LOCKED, another process or another opening in this one holds the file.
        FailedPreconditionError: STORE_UNREADABLE, not a DuckDB file, damaged, or no right to it; SCHEMA_NEWER.
        ResourceExhaustedError: DISK_FULL.
    """
    path = settings.path
    is_new = not path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = duckdb.connect(str(path), config=_config(settings))
    except (OSError, duckdb.Error) as error:
        if is_new and _NO_SPACE in str(error):
            _remove_empty(path)
        raise _open_error(settings, error) from error
    try:
        migrate(connection, shipped_migrations(), clock)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except duckdb.Error as error:
        connection.close()
        raise _open_error(settings, error) from error
    except Error:
        connection.close()
        raise
    return connection


def _remove_empty(path: Path) -> None:
    """Removes what a full disk left of a new file: DuckDB takes no file without content for a database."""
    if path.exists() and path.stat().st_size == 0:
        path.unlink()


def broken_error(cause: BaseException) -> Error:
    """The error of an append whose transaction DuckDB could not finish.

    Whether it is durable is not known; the ledger says so after a restart. Trying again helps then, or once there is
    space.
    """
    if _NO_SPACE in str(cause):
        return _disk_full(cause)
    return broken_store_error(str(cause))


def broken_store_error(cause: str) -> UnavailableError:
    """The error of everything that is asked of a store after DuckDB gave it up."""
    return UnavailableError(f"the store stopped: {cause}; restart the service", reason="STORE_BROKEN")


def closed_store_error() -> UnavailableError:
    """The error of what is asked of a store that is closing or closed."""
    return UnavailableError("the store is closed", reason="STORE_CLOSED")


def _config(settings: StoreSettings) -> dict[str, str | bool | int | float | list[str]]:
    config: dict[str, str | bool | int | float | list[str]] = {
        "storage_compatibility_version": STORAGE_VERSION,
        "wal_autocheckpoint": CHECKPOINT_WAL_SIZE,
        "memory_limit": f"{settings.memory_limit_bytes}B",
        # The store needs no extension, so none is looked for, on this machine or on others.
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "allow_community_extensions": False,
        # DuckDB hands one open database to everybody in the process who asks with equal configuration. Two writers
        # must not share it, so each opening is made different, and DuckDB refuses the second.
        "custom_user_agent": f"linkbound-{uuid.uuid4()}",
    }
    if settings.thread_count is not None:
        config["threads"] = settings.thread_count
    return config


def _open_error(settings: StoreSettings, error: Exception) -> Error:
    text = str(error)
    holder = _LOCK_HOLDER.search(text)
    if holder is not None:
        return _locked(settings, holder["pid"] or "", holder["program"])
    if isinstance(error, duckdb.ConnectionException) and "different configuration" in text:
        return _locked(settings, str(os.getpid()), "this process")
    if "Could not set lock" in text:
        return _locked(settings, "", "another process")
    if _NO_SPACE in text:
        return _disk_full(error)
    return FailedPreconditionError(
        f"{settings.path} cannot be opened as a store: {text}",
        reason="STORE_UNREADABLE",
        metadata={"path": str(settings.path)},
    )


def _disk_full(cause: BaseException) -> ResourceExhaustedError:
    return ResourceExhaustedError(f"the disk is full: {cause}", reason="DISK_FULL")


def _locked(settings: StoreSettings, pid: str, program: str) -> UnavailableError:
    process = f", process {pid}" if pid else ""
    return UnavailableError(
        f"{settings.path} is in use by {program}{process}; stop it, or talk to it as a service",
        reason="STORE_LOCKED",
        metadata={"path": str(settings.path), "pid": pid, "program": program},
    )
