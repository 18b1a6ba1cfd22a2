"""Files of the catalogue: read as tables, and written so that no half file is ever seen."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from linkbound.domain.errors import FailedPreconditionError, ResourceExhaustedError

SUFFIX = ".toml"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})


class CatalogError(FailedPreconditionError):
    """A file of the catalogue cannot be read or breaks a rule. The message names the file and what is wrong."""

    default_reason = "CATALOG_UNREADABLE"


def read_table(path: Path) -> dict[str, Any]:
    """The table of a file, its lists as tuples; every entry names its sources. Raises CatalogError."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise CatalogError(f"{path}: {error}") from error
    if not table.get("sources"):
        raise CatalogError(f"{path}: names no sources")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def read_only_error(reason: str) -> FailedPreconditionError:
    """The error of a catalogue that nothing can be written to; `reason` says why."""
    return FailedPreconditionError(f"the catalogue cannot be written to: {reason}", reason="CATALOG_READ_ONLY")


def write_new(directory: Path, entry_id: str, text: str) -> bool:
    """Write the file of `entry_id`, if there is none yet, and say whether this call did.

    The file appears whole or not at all, whatever ends the process and whoever writes at the same time. Raises
    FailedPreconditionError (CATALOG_READ_ONLY) and ResourceExhaustedError (DISK_FULL).
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{entry_id}.", suffix=".tmp", dir=directory)
    except OSError as error:
        raise _write_error(error) from error
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        written = _publish(temporary, directory / f"{entry_id}{SUFFIX}")
        _sync(directory)
    except OSError as error:
        raise _write_error(error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return written


def _publish(temporary: Path, path: Path) -> bool:
    """Give the finished file its name, unless the name is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without links: of two that come at the same time, the later wins.
        if path.exists():
            return False
        temporary.replace(path)
    return True


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        # Some file systems cannot sync a directory; the file's content is safe all the same.
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_error(error: OSError) -> FailedPreconditionError | ResourceExhaustedError:
    if error.errno in _FULL:
        return ResourceExhaustedError(f"the disk of the catalogue is full: {error}", reason="DISK_FULL")
    return read_only_error(str(error))
