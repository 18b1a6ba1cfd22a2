"""The state of a spool on disk: two slots in one file, written in turn.

The file has its full size from the start, so that a state can be written on a disk that is full. A slot that was only
half written has a wrong checksum, and the other one counts.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from zlib import crc32

from linkbound.client.spool.numbering import SpoolState, state_from_text, state_to_text

SLOT_BYTES = 4096
_SLOT_COUNT = 2
_HEADER = struct.Struct("<4sIQI")
"""Magic, length of the text, turn, CRC-32 of turn and text."""
_MAGIC = b"LBst"


class StateFile:
    """The state file at `path`; it is created where it is missing. Errors are those of the operating system."""

    def __init__(self, path: Path) -> None:
        is_new = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if is_new or os.fstat(self._file).st_size < SLOT_BYTES * _SLOT_COUNT:
                os.pwrite(self._file, bytes(SLOT_BYTES * _SLOT_COUNT), 0)
                os.fsync(self._file)
            slots = [slot for slot in map(self._read, range(_SLOT_COUNT)) if slot is not None]
        except BaseException:
            os.close(self._file)
            raise
        self._turn, text = max(slots, default=(0, ""))
        self.state = state_from_text(text) if text else None
        """What was written last; None where nothing was."""

    def write(self, state: SpoolState) -> None:
        """Put `state` in place of what was written before; it is on the disk when this returns."""
        text = state_to_text(state).encode()
        if _HEADER.size + len(text) > SLOT_BYTES:
            raise ValueError(f"a state of {len(text)} bytes")
        turn = self._turn + 1
        slot = _HEADER.pack(_MAGIC, len(text), turn, _checksum(turn, text)) + text
        os.pwrite(self._file, slot, turn % _SLOT_COUNT * SLOT_BYTES)
        os.fdatasync(self._file)
        self._turn, self.state = turn, state

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _read(self, slot: int) -> tuple[int, str] | None:
        content = os.pread(self._file, SLOT_BYTES, slot * SLOT_BYTES)
        return slot_content(content)


def read_state(path: Path) -> SpoolState | None:
    """The state in the file at `path`, which somebody else may be writing; None where there is none."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    slots = [slot_content(content[offset : offset + SLOT_BYTES]) for offset in range(0, len(content), SLOT_BYTES)]
    _, text = max((slot for slot in slots if slot is not None), default=(0, ""))
    return state_from_text(text) if text else None


def slot_content(slot: bytes) -> tuple[int, str] | None:
    """Turn and text of a slot; None where it holds none, or was written by half."""
    if len(slot) < _HEADER.size:
        return None
    magic, length, turn, checksum = _HEADER.unpack_from(slot)
    text = slot[_HEADER.size : _HEADER.size + length]
    if magic != _MAGIC or len(text) != length or checksum != _checksum(turn, text):
        return None
    return turn, text.decode()


def _checksum(turn: int, text: bytes) -> int:
    return crc32(text, crc32(turn.to_bytes(8, "little")))
