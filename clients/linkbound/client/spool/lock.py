"""One process per spool."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from linkbound.domain.errors import UnavailableError

LOCK_FILE_NAME = "lock"


class SpoolLock:
    """Holds the spool in `directory` until it is released or this process ends, however it ends.

    Raises UnavailableError (SPOOL_LOCKED, with the `pid` of the process that holds it).
    """

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / LOCK_FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _pid_in(self._file)
            os.close(self._file)
            raise UnavailableError(
                f"the spool {directory} is in use by process {pid or 'unknown'}; a writer has a spool of its own",
                reason="SPOOL_LOCKED",
                metadata={"pid": pid, "directory": str(directory)},
            ) from None
        except BaseException:
            os.close(self._file)
            raise
        # Padded, so that a shorter pid takes a longer one's place in a single write.
        os.pwrite(self._file, f"{os.getpid():<20}\n".encode(), 0)

    def release(self) -> None:
        """Let others in."""
        os.close(self._file)


def holder_of(directory: Path) -> int | None:
    """The pid of the process that holds the spool; None where none does."""
    try:
        file = os.open(directory / LOCK_FILE_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(_pid_in(file) or 0)
    else:
        return None
    finally:
        os.close(file)


def _pid_in(file: int) -> str:
    return os.pread(file, 32, 0).decode("ascii", "replace").strip()
