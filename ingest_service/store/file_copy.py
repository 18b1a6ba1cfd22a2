"""Copies an open file within the system: as a reference where the file system can, else slice by slice."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

SLICE_BYTES = 16 * 2**20
"""What is copied at once; between two slices the copy may be given up."""

_FICLONE = 0x40049409
"""The request of Linux that makes a file share the blocks of another, `linux/fs.h`."""

_NOT_THERE = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM})
"""How a system says that it cannot copy in this way."""


def copy_content(source: int, target: int, size_bytes: int, check: Callable[[], None]) -> None:
    """Copies the first `size_bytes` of the file `source` into the empty file `target`, both open.

    `check` is called between slices, and raises to end the copy. Each slice goes to the disk before the next one, so
    that others who wait for the disk wait for a slice and not for all of it. Raises OSError.
    """
    if _shares_blocks(source, target):
        # It is a copy of the whole file, which may be longer by now.
        os.ftruncate(target, size_bytes)
        return
    place = 0
    while place < size_bytes:
        check()
        place += _copy_slice(source, target, place, min(SLICE_BYTES, size_bytes - place))
        os.fdatasync(target)


def _shares_blocks(source: int, target: int) -> bool:
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(target, _FICLONE, source)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return False
        raise
    return True


def _copy_slice(source: int, target: int, place: int, size_bytes: int) -> int:
    """Copies up to `size_bytes` from `place` to the same place, and returns how many. Raises OSError at the end."""
    if sys.platform == "linux":
        try:
            copied = os.copy_file_range(source, target, size_bytes, place, place)
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise
        else:
            return _not_none(copied)
    content = os.pread(source, size_bytes, place)
    return _not_none(os.pwrite(target, content, place) if content else 0)


def _not_none(size_bytes: int) -> int:
    if size_bytes == 0:
        raise OSError(errno.EIO, "the file ended before its copy was whole")
    return size_bytes
