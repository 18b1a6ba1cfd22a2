"""Samples as a stream of the Arrow IPC format, the bulk encoding of a batch.

The readings lie in the message as they lie in memory, so writing one costs little more than copying them. The few bytes
around them have one layout, which is written here without Arrow (https://arrow.apache.org/docs/format/Columnar.html).
"""

from __future__ import annotations

import base64
import struct
import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate

from linkbound.domain.samples import INT64_TYPECODE, UNKNOWN_READ_DURATION_NS, SampleColumns

CONTINUATION = 0xFFFFFFFF
"""Stands before every message of a stream."""
ALIGNMENT_BYTES = 8

_INT32_TYPECODE = "i"
_UNKNOWN = array(INT64_TYPECODE, [UNKNOWN_READ_DURATION_NS])
_END_OF_STREAM = struct.pack("<II", CONTINUATION, 0)

_SCHEMA_MESSAGE = base64.b64decode(
    "/////zABAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAQAAAC8AAAAeAAAAEQAAAAEAAAAZP///wAAAQIQ"
    "AAAAJAAAAAQAAAAAAAAAEAAAAHJlYWRfZHVyYXRpb25fbnMAAAAAWP///wAAAAFAAAAAoP///wAAAQIQAAAAGAAAAAQAAAAAAAAABQAAAHZh"
    "bHVlAAAAiP///wAAAAFAAAAA0P///wAAAQIQAAAAGAAAAAQAAAAAAAAABwAAAHRpbWVfbnMAuP///wAAAAFAAAAAEAAUAAgABgAHAAwAAAAQ"
    "ABAAAAAAAAECEAAAACgAAAAEAAAAAAAAAAwAAABzZXJpZXNfaW5kZXgAAAAACAAMAAgABwAIAAAAAAAAASAAAAAAAAAA"
)
"""`pyarrow.Schema.serialize` of series_index int32, time_ns int64, value int64, read_duration_ns int64."""

_RECORD_BATCH_METADATA = struct.Struct(
    "<"
    # 0: where the message is; its vtable: bytes, bytes of the table, version, header_type, header, bodyLength.
    "I 6H"
    # 16: the message: distance to its vtable, header, bodyLength, version, header_type.
    "i I q h B x"
    # 36: vtable of the record batch: bytes, bytes of the table, length, nodes, buffers.
    "5H 2x"
    # 48: the record batch: distance to its vtable, nodes, length, buffers.
    "i I q I"
    # 68: length and null count of each column.
    "I 8q"
    # 140: offset and bytes of the validity and the data of each column.
    "4x I 16q"
)
_METADATA_HEAD = (16, 12, 20, 16, 18, 4, 8)
_MESSAGE = (12, 28)
_VERSION_5, _RECORD_BATCH = 4, 3
_RECORD_BATCH_VTABLE = (10, 20, 8, 4, 16)
_NODES_OFFSET, _BUFFERS_OFFSET = 16, 76
_COLUMN_COUNT = 4


def sample_columns_to_arrow(columns: Sequence[SampleColumns]) -> bytes:
    """Readings of several series, in columns of equal length, as one stream, one series after the other."""
    series_index = array(_INT32_TYPECODE)
    time_ns, value, read_duration_ns = (array(INT64_TYPECODE) for _ in range(3))
    for entry in columns:
        count = len(entry.time_ns)
        series_index.extend(array(_INT32_TYPECODE, [entry.series_index]) * count)
        time_ns.extend(entry.time_ns)
        value.extend(entry.value)
        read_duration_ns.extend(entry.read_duration_ns or _UNKNOWN * count)
    # Looked for in the bytes first, which takes a hundredth of the time.
    may_lack = _UNKNOWN.tobytes() in read_duration_ns.tobytes()
    null_count = read_duration_ns.count(UNKNOWN_READ_DURATION_NS) if may_lack else 0
    validity = _validity(read_duration_ns) if null_count else b""
    data = (b"", _data(series_index), b"", _data(time_ns), b"", _data(value), validity, _data(read_duration_ns))
    body = tuple(map(_padded, data))
    return b"".join((_SCHEMA_MESSAGE, _record_batch_head(len(time_ns), null_count, body), *body, _END_OF_STREAM))


def _record_batch_head(row_count: int, null_count: int, body: Sequence[bytes]) -> bytes:
    """What stands before the `body` of a record batch: the prefix of the message and its metadata."""
    ends = tuple(accumulate(map(len, body)))
    nodes = (row_count, 0) * (_COLUMN_COUNT - 1) + (row_count, null_count)
    buffers = (number for end, part in zip(ends, body, strict=True) for number in (end - len(part), len(part)))
    metadata = _RECORD_BATCH_METADATA.pack(
        *_METADATA_HEAD,
        *(*_MESSAGE, ends[-1], _VERSION_5, _RECORD_BATCH),
        *_RECORD_BATCH_VTABLE,
        *(12, _NODES_OFFSET, row_count, _BUFFERS_OFFSET),
        *(_COLUMN_COUNT, *nodes),
        *(2 * _COLUMN_COUNT, *buffers),
    )
    return struct.pack("<II", CONTINUATION, len(metadata)) + metadata


def _validity(read_duration_ns: array[int]) -> bytes:
    """One bit for each duration, the lowest first: whether it is known."""
    bits = "".join("01"[number != UNKNOWN_READ_DURATION_NS] for number in reversed(read_duration_ns))
    return int(bits, 2).to_bytes(-(-len(bits) // 8), "little")


def _data(column: array[int]) -> bytes:
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % ALIGNMENT_BYTES)
