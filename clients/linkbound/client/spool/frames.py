"""Frames: how a file of the spool is divided. No I/O.

A frame is a header of 32 bytes, little-endian, and its payload: magic `LBsp`, payload length, index, row count, kind,
CRC-32 of the payload, CRC-32 of the header before it. The header has a checksum of its own, so that a damaged payload
does not cost the frames behind it, and a damaged header none but those up to the next magic.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import crc32

from attrs import frozen

MAGIC = b"LBsp"
FORMAT_VERSION = 1

OPENING = 1
"""First frame of a file: what its batches belong to. Its row count is the version of the format."""
END = 2
"""Last frame of a file that was closed in order: index behind its last batch, and its rows."""
SAMPLES = 16
"""A batch of samples."""
FIRST_RECORDS = 17
"""Records of the first kind; the other kinds follow."""

_HEADER = struct.Struct("<4sIQIII")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _HEADER.size + _CHECKSUM.size


@frozen(kw_only=True)
class Frame:
    """A frame as its header tells. `offset` is where it begins in its file."""

    offset: int
    kind: int
    index: int
    row_count: int
    payload_bytes: int
    payload_checksum: int

    @property
    def payload_offset(self) -> int:
        """Where its payload begins."""
        return self.offset + HEADER_BYTES

    @property
    def end_offset(self) -> int:
        """Where the next frame begins."""
        return self.payload_offset + self.payload_bytes

    def holds(self, payload: bytes | memoryview) -> bool:
        """Whether `payload` is what was written."""
        return len(payload) == self.payload_bytes and crc32(payload) == self.payload_checksum


def frame_bytes(kind: int, index: int, row_count: int, payload: bytes) -> bytes:
    """A frame as it is written."""
    header = _HEADER.pack(MAGIC, len(payload), index, row_count, kind, crc32(payload))
    return header + _CHECKSUM.pack(crc32(header)) + payload


def frame_at(content: bytes | memoryview, offset: int) -> Frame | None:
    """The frame whose header stands at `offset`; None where none does. Its payload may reach beyond `content`."""
    if offset + HEADER_BYTES > len(content):
        return None
    header = content[offset : offset + _HEADER.size]
    magic, payload_bytes, index, row_count, kind, payload_checksum = _HEADER.unpack(header)
    (checksum,) = _CHECKSUM.unpack_from(content, offset + _HEADER.size)
    if magic != MAGIC or checksum != crc32(header):
        return None
    return Frame(
        offset=offset,
        kind=kind,
        index=index,
        row_count=row_count,
        payload_bytes=payload_bytes,
        payload_checksum=payload_checksum,
    )


def frames_in(content: bytes) -> Iterator[Frame]:
    """Every frame of a file, in order. What lies between two is damaged, and so is a payload that is cut off."""
    offset = 0
    while offset < len(content):
        frame = frame_at(content, offset)
        if frame is None:
            offset = content.find(MAGIC, offset + 1)
            if offset < 0:
                return
            continue
        yield frame
        # A payload that is cut off has nothing behind it but what was never written.
        offset = frame.end_offset
