"""The database file that the demo leaves behind: put in place at once, and never over something that is not ours."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

import duckdb

from linkbound.domain.errors import FailedPreconditionError, InternalError, UnavailableError

FILE_NAME = "study.duckdb"
_WRITE_AHEAD_LOG_SUFFIX = ".wal"


def prepare(directory: Path, run_ids: Collection[str]) -> Path:
    """The path of the file in `directory`, which is created; a database of an earlier demo may be there already.

    Raises FailedPreconditionError (OUTPUT_IN_THE_WAY) for anything else of that name or a folder that cannot be
    written, and UnavailableError (OUTPUT_LOCKED) for a database that another process has open.
    """
    path = directory / FILE_NAME
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # The only sure test of whether a file can be created here.
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise _in_the_way(directory, f"cannot be written: {error.strerror}") from error
    if os.path.lexists(path):
        _check_ours(path, run_ids)
    return path


def publish(store: Path, path: Path) -> None:
    """Puts a copy of the closed database `store` at `path`, as a whole or not at all.

    Raises InternalError if the database was not closed cleanly.
    """
    if store.with_name(store.name + _WRITE_AHEAD_LOG_SUFFIX).exists():
        raise InternalError(f"{store.name} was not closed cleanly: its write-ahead log is still there")
    handle, name = tempfile.mkstemp(prefix=f".{FILE_NAME}-", dir=path.parent)
    os.close(handle)
    copy = Path(name)
    try:
        shutil.copyfile(store, copy)
        copy.chmod(0o666 & ~_umask())
        copy.replace(path)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise


def _check_ours(path: Path, run_ids: Collection[str]) -> None:
    if path.is_symlink() or not path.is_file():
        raise _in_the_way(path, "is not a file")
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            found = {run_id for (run_id,) in connection.execute("SELECT run_id FROM runs").fetchall()}
    except duckdb.Error as error:
        if "Could not set lock" in str(error):
            message = f"{path} is in use by another process: close it first"
            raise UnavailableError(message, reason="OUTPUT_LOCKED", metadata={"path": str(path)}) from error
        raise _in_the_way(path, "was not written by this demo") from error
    if found != set(run_ids):
        raise _in_the_way(path, "holds other runs than those of the demo")


def _in_the_way(path: Path, what: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{path} {what}; choose another folder with --out", reason="OUTPUT_IN_THE_WAY", metadata={"path": str(path)}
    )


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
