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
from ingest_service.store.free_space import NO_SPACE
from ingest_service.store.log_watch import LogWatch, log_path
from ingest_service.store.public_views import as_pattern, create_public_views, public_tables, quoted
from ingest_service.store.queries import select
from ingest_service.store.schema import check_versions, migrate, shipped_migrations
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.sealed_layout import prepare_folder
from ingest_service.store.sealed_tables import has_sealed_runs
from linkbound.domain.errors import Error, FailedPreconditionError, ResourceExhaustedError, UnavailableError

STORAGE_VERSION = "v1.5.0"
"""Files that every supported DuckDB reads; the default of a newer one would shut out the older."""

NEVER_CHECKPOINTED_SIZE = "1TB"
"""Size of the log at which DuckDB would checkpoint within a commit. The thread that writes does it itself, between two
commits: nobody waits for it who is told of a commit, and it can wait while the file is copied."""

LOG_DAMAGED = "STORE_LOG_DAMAGED"
"""The reason of a store that cannot be opened because of its log alone."""

WHOLE_BYTES = "wholeBytes"
"""What its metadata says of the log: how much of it stands before the damage, about."""

_LOG_DAMAGE = re.compile(
    r"Failure while replaying WAL file.*(?:corrupt|Corrupt|marked as|WAL of version)"
    r"|WAL does not match database file|WAL was created for",
    re.DOTALL,
)
_DAMAGED_PLACE = re.compile(r"entry at byte position (?P<place>\d+)")
_LOCK_HOLDER = re.compile(r"lock is held in (?P<program>\S+)(?: \(PID (?P<pid>\d+)\))?")


def open_database(settings: StoreSettings, clock: Callable[[], datetime]) -> duckdb.DuckDBPyConnection:
    """The opened and migrated database; creates the file and its folder where they are missing.

    Raises:
        UnavailableError: STORE_LOCKED, another process or another opening in this one holds the file.
        FailedPreconditionError: STORE_UNREADABLE, not a DuckDB file, damaged, or no right to it; STORE_LOG_DAMAGED, and
            nothing was changed; SCHEMA_NEWER.
        ResourceExhaustedError: DISK_FULL.
    """
    path = settings.path
    is_new = not path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = duckdb.connect(str(path), config=_config(settings))
    except (OSError, duckdb.Error) as error:
        if is_new and NO_SPACE in str(error):
            _remove_empty(path)
        raise _open_error(settings, error) from error
    try:
        migrate(connection, shipped_migrations(), clock)
        log = LogWatch(log_path(path))
        if not (log.has_been_emptied() or log.lacks_room()):
            # What a process that was killed left in the log: mostly everything in the store is checkpointed then.
            connection.execute("CHECKPOINT")
        _create_views(connection, SealedFolder.beside(path))
        _close_to_the_outside(connection, path)
    except (OSError, duckdb.Error) as error:
        connection.close()
        raise _open_error(settings, error) from error
    except Error:
        connection.close()
        raise
    return connection


def open_snapshot(path: Path, settings: StoreSettings) -> duckdb.DuckDBPyConnection:
    """The snapshot at `path`, to be read; several may have it open, in this process and in others.

    Raises FailedPreconditionError: STORE_UNREADABLE; SCHEMA_NEWER, SCHEMA_OLDER where another release made it.
    """
    try:
        connection = duckdb.connect(str(path), read_only=True, config=_shared_config(settings))
    except duckdb.Error as error:
        raise _unreadable(path, error) from error
    try:
        check_versions(connection, shipped_migrations())
        try:
            _close_to_the_outside(connection, settings.path)
        except duckdb.InvalidInputException:
            # DuckDB has a file open once in a process; whoever had it open before has done that already.
            if select(connection, "SELECT current_setting('lock_configuration')") != [(True,)]:
                raise
    except duckdb.Error as error:
        connection.close()
        raise _unreadable(path, error) from error
    except Error:
        connection.close()
        raise
    return connection


def _close_to_the_outside(connection: duckdb.DuckDBPyConnection, store_path: Path) -> None:
    """From here on SQL reaches no file but those of sealed runs, and no setting. The order matters."""
    connection.execute(f"SET allowed_directories = [{_allowed_directories(SealedFolder.beside(store_path))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _create_views(connection: duckdb.DuckDBPyConnection, folder: SealedFolder) -> None:
    """Makes the views; a store without sealed runs looks for no files, so that a copy of its file has everything."""
    has_files = has_sealed_runs(connection)
    if has_files:
        prepare_folder(connection, folder, public_tables(connection))
    connection.begin()
    changed = create_public_views(connection, folder.path if has_files else None)
    connection.commit()
    if changed:
        # As after a migration: no damage of the log can take the views with it.
        connection.execute("CHECKPOINT")


def _allowed_directories(folder: SealedFolder) -> str:
    """The folder of sealed runs, by its name and as the pattern that finds its files."""
    return ", ".join(quoted(f"{name}/") for name in dict.fromkeys((str(folder.path), as_pattern(str(folder.path)))))


def _remove_empty(path: Path) -> None:
    """Removes what a full disk left of a new file: DuckDB takes no file without content for a database."""
    if path.exists() and path.stat().st_size == 0:
        path.unlink()


def disk_full_error(cause: BaseException) -> ResourceExhaustedError:
    """The error of everything that is asked for after the disk was full. Trying again helps once there is room.

    Whether a transaction that failed so is durable is not known; the ledger says it after a restart.
    """
    return ResourceExhaustedError(f"the disk is full: {cause}", reason="DISK_FULL")


def broken_store_error(cause: str) -> UnavailableError:
    """The error of everything that is asked of a store after DuckDB gave it up."""
    return UnavailableError(f"the store stopped: {cause}; restart the service", reason="STORE_BROKEN")


def closed_store_error() -> UnavailableError:
    """The error of what is asked of a store that is closing or closed."""
    return UnavailableError("the store is closed", reason="STORE_CLOSED")


_Config = dict[str, str | bool | int | float | list[str]]


def _config(settings: StoreSettings) -> _Config:
    return _shared_config(settings) | {
        "storage_compatibility_version": STORAGE_VERSION,
        "wal_autocheckpoint": NEVER_CHECKPOINTED_SIZE,
        # DuckDB hands one open database to everybody in the process who asks with equal configuration. Two writers
        # must not share it, so each opening is made different, and DuckDB refuses the second.
        "custom_user_agent": f"linkbound-{uuid.uuid4()}",
    }


def _shared_config(settings: StoreSettings) -> _Config:
    config: _Config = {
        # What a query may put on the disk where its memory does not suffice; see `query_watch`.
        "max_temp_directory_size": f"{settings.memory_limit_bytes}B",
        "memory_limit": f"{settings.memory_limit_bytes}B",
        # The store needs no extension, so none is looked for, on this machine or on others.
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "allow_community_extensions": False,
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
    if NO_SPACE in text:
        return disk_full_error(error)
    if _LOG_DAMAGE.search(text):
        return _log_damaged(settings.path, text)
    return _unreadable(settings.path, error)


def _log_damaged(path: Path, text: str) -> FailedPreconditionError:
    place = _DAMAGED_PLACE.search(text)
    return FailedPreconditionError(
        f"the log of {path} is damaged: {text}; nothing was changed, and `linkbound store recover` keeps what stands"
        " before the damage",
        reason=LOG_DAMAGED,
        metadata={"path": str(path), WHOLE_BYTES: "0" if place is None else place["place"]},
    )


def _unreadable(path: Path, error: Exception) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{path} cannot be opened as a store: {error}", reason="STORE_UNREADABLE", metadata={"path": str(path)}
    )


def _locked(settings: StoreSettings, pid: str, program: str) -> UnavailableError:
    process = f", process {pid}" if pid else ""
    return UnavailableError(
        f"{settings.path} is in use by {program}{process}; stop it, or talk to it as a service",
        reason="STORE_LOCKED",
        metadata={"path": str(settings.path), "pid": pid, "program": program},
    )
