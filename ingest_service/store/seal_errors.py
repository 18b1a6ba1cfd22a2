"""Why a run could not be sealed, and why a sealed one cannot be read."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from urllib.parse import unquote

import duckdb

from ingest_service.store.public_views import MISSING_FILE, NO_RUN, as_pattern
from ingest_service.store.sealed_folder import SealedFolder
from linkbound.domain.errors import Error, FailedPreconditionError, ResourceExhaustedError

RUN_UNREADABLE = "RUN_UNREADABLE"
"""Reason of the error of a read that met a missing or damaged file."""

_FULL_DISK_NUMBERS = frozenset({errno.ENOSPC, errno.EDQUOT})
_FULL_DISK_TEXTS = ("No space left on device", "Disk quota exceeded")


def seal_error(run_id: str, error: duckdb.Error | OSError) -> Error:
    """The error of a sealing whose files could not be written or read back: DISK_FULL or SEAL_FAILED."""
    if getattr(error, "errno", None) in _FULL_DISK_NUMBERS or any(text in str(error) for text in _FULL_DISK_TEXTS):
        return ResourceExhaustedError(
            f"run {run_id} stays open: the disk is full: {first_line(error)}",
            reason="DISK_FULL",
            metadata={"run": run_id},
        )
    return FailedPreconditionError(
        f"run {run_id} stays open: its files cannot be written: {first_line(error)}",
        reason="SEAL_FAILED",
        metadata={"run": run_id},
    )


def unreadable_run(run_id: str, path: Path, why: str) -> FailedPreconditionError:
    """The error of a read of a sealed run whose file is missing or damaged."""
    return FailedPreconditionError(
        f"run {run_id} cannot be read: {path} {why}; bring it back from a copy, or delete the run",
        reason=RUN_UNREADABLE,
        metadata={"run": run_id, "path": str(path)},
    )


def sealed_file_error(error: duckdb.Error, folder: SealedFolder) -> FailedPreconditionError | None:
    """The error of a read that met a missing or damaged file of a sealed run; None where `error` is about else.

    It is the affair of that run alone: the store is as well as before.
    """
    if isinstance(error, duckdb.FatalException | duckdb.InternalException):
        return None
    # Where letters of the path mean something in patterns, the views name it as one.
    places = "|".join(re.escape(f"{path}/run_id=") for path in (str(folder.path), as_pattern(str(folder.path))))
    found = re.search(rf"(?:{places})(?P<run>[^/]+)/(?P<table>\w+)\.parquet", str(error))
    if found is None:
        return None
    run_id, path = unquote(found["run"]), folder.path / f"run_id={found['run']}" / f"{found['table']}.parquet"
    if run_id == NO_RUN:
        return FailedPreconditionError(
            f"no sealed run can be read by SQL: {path} is missing; a restart of the service makes it again",
            reason=RUN_UNREADABLE,
            metadata={"run": NO_RUN, "path": str(path)},
        )
    why = "is missing" if MISSING_FILE in str(error) else f"cannot be read: {first_line(error)}"
    return unreadable_run(run_id, path, why)


def first_line(error: Exception) -> str:
    """What an error says, without the statement that DuckDB shows below."""
    return (str(error).splitlines() or [type(error).__name__])[0]
