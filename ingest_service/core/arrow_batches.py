"""Reads samples from a stream of the Arrow IPC format, the bulk encoding of a batch, without trusting a byte of it.

Arrow's own reader is fast and can be brought down by a stream that was made for it, so the few tables around the
readings are read here, and what is not exactly such a stream is refused before a column of it is made. Nothing is
decompressed, so nothing grows. (https://arrow.apache.org/docs/format/Columnar.html)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from ingest_service.core.flatbuffer import Table, number_at
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.samples import (
    LARGEST_SAMPLE_COUNT,
    LARGEST_SERIES_COUNT,
    UNKNOWN_READ_DURATION_NS,
    SampleColumns,
)

FIELD = "arrow_ipc"

CONTINUATION = 0xFFFFFFFF
"""Stands before every message of a stream."""

_COLUMNS = ((b"series_index", 32), (b"time_ns", 64), (b"value", 64), (b"read_duration_ns", 64))
"""Name and bits of each column."""
_COLUMNS_IN_WORDS = "series_index int32, time_ns int64, value int64, read_duration_ns int64"
_COLUMN_COUNT = len(_COLUMNS)
_PREFIX_BYTES = 8
_LARGEST_KNOWN_SCHEMA_BYTES = 4096
"""Ten times what the usual one takes: many streams keep one each."""
_INT_TYPE = 2
_VERSIONS = (3, 4)
"""V4 and V5 of the metadata: they differ in nothing that matters to these columns."""

Int64s = NDArray[np.int64]


class _Kind(IntEnum):
    SCHEMA = 1
    DICTIONARY_BATCH = 2
    RECORD_BATCH = 3


@frozen
class _Message:
    kind: int
    header: Table
    body: memoryview


@frozen
class _Rows:
    """Readings of all series as they came; `is_known` of the read durations, None where all are."""

    series_index: NDArray[np.int32]
    time_ns: Int64s
    value: Int64s
    read_duration_ns: Int64s
    is_known: NDArray[np.bool_] | None


def columns_of_arrow(content: bytes) -> tuple[SampleColumns, ...]:
    """The readings of one stream (`ArrowBatches.columns`)."""
    return ArrowBatches().columns(content)


@define
class ArrowBatches:
    """Reads batches of one writer, which begin alike: a schema that was checked once is known from then on."""

    _known_schema: bytes | None = field(init=False, default=None)

    def columns(self, content: bytes) -> tuple[SampleColumns, ...]:
        """The readings of a stream by series, each in the order in which they came.

        Raises InvalidArgumentError for anything but a stream of the four columns without compression, dictionaries and
        nulls, those of `read_duration_ns` excepted, with at most `LARGEST_SAMPLE_COUNT` readings of at most
        `LARGEST_SERIES_COUNT` series.
        """
        messages = _Messages(content)
        known = self._known_schema
        if known is not None and content.startswith(known):
            messages.skip(len(known))
        else:
            self._known_schema = None
            schema = messages.next()
            if schema is None or schema.kind != _Kind.SCHEMA:
                raise _refused("is not a stream of the Arrow IPC format: it does not begin with a schema")
            _check_schema(schema.header)
            if messages.position <= _LARGEST_KNOWN_SCHEMA_BYTES:
                self._known_schema = content[: messages.position]
        batches = list(_record_batches(messages))
        if not batches:
            return ()
        return tuple(_by_series(batches[0] if len(batches) == 1 else _joined(batches)))


def _record_batches(messages: _Messages) -> Iterator[_Rows]:
    row_count = 0
    while (message := messages.next()) is not None:
        if message.kind != _Kind.RECORD_BATCH:
            raise _refused("holds something else than record batches behind its schema")
        rows = _rows(message)
        row_count += len(rows.time_ns)
        if row_count > LARGEST_SAMPLE_COUNT:
            raise _refused(f"holds more than {LARGEST_SAMPLE_COUNT} readings")
        if len(rows.time_ns):
            yield rows


@define
class _Messages:
    """The messages of a stream, one after the other."""

    _content: bytes
    _position: int = field(init=False, default=0)

    @property
    def position(self) -> int:
        """Where the next message begins."""
        return self._position

    def skip(self, size_bytes: int) -> None:
        """Passes over messages that are known."""
        self._position = size_bytes

    def next(self) -> _Message | None:
        """The next message; None at the end of the stream."""
        if self._position == len(self._content):
            return None
        if number_at(self._content, "<I", self._position) != CONTINUATION:
            raise _refused("is not a stream of the Arrow IPC format")
        metadata_bytes = number_at(self._content, "<I", self._position + 4)
        if metadata_bytes == 0:
            self._position = len(self._content)
            return None
        start = self._position + _PREFIX_BYTES
        message = Table.root(self._content[start : start + metadata_bytes])
        header = message.table(2)
        if message.number(0, "<h") not in _VERSIONS or header is None:
            raise _refused("is not a stream of a version of the Arrow IPC format that this one reads")
        body_start, body_bytes = start + metadata_bytes, message.number(3, "<q")
        self._position = body_start + body_bytes
        if not 0 <= body_bytes <= len(self._content) - body_start:
            raise _refused("ends before something that it speaks of")
        return _Message(message.number(1, "<B"), header, memoryview(self._content)[body_start : self._position])


def _check_schema(schema: Table) -> None:
    fields = schema.vector(1)
    is_little_endian = schema.number(0, "<h") == 0
    if not (is_little_endian and fields.count == _COLUMN_COUNT):
        raise _refused(f"has other columns than {_COLUMNS_IN_WORDS}, little-endian")
    for index, (name, bits) in enumerate(_COLUMNS):
        column = fields.table(index)
        kind = column.table(3)
        is_signed_integer = (
            column.number(2, "<B") == _INT_TYPE
            and kind is not None
            and kind.number(0, "<i") == bits
            and kind.number(1, "<B") == 1
        )
        if column.text(0) != name or not is_signed_integer:
            raise _refused(f"has other columns than {_COLUMNS_IN_WORDS}")
        if column.table(4) is not None:
            raise _refused(f"has a dictionary for {name.decode()}")


def _rows(message: _Message) -> _Rows:
    batch = message.header
    if batch.table(3) is not None:
        raise _refused("is compressed")
    nodes, buffers = batch.vector(1), batch.vector(2)
    if nodes.count != _COLUMN_COUNT or buffers.count != 2 * _COLUMN_COUNT:
        raise _refused("holds a record batch of other columns than its schema")
    row_count = batch.number(0, "<q")
    if not 0 <= row_count <= LARGEST_SAMPLE_COUNT:
        raise _refused(f"holds more than {LARGEST_SAMPLE_COUNT} readings")
    counts = nodes.numbers(f"<{2 * _COLUMN_COUNT}q")
    null_counts = counts[1::2]
    if counts[::2] != (row_count,) * _COLUMN_COUNT:
        raise _refused("holds columns of unequal length")
    for (name, _), null_count in zip(_COLUMNS[:-1], null_counts, strict=False):
        if null_count:
            raise _refused(f"has nulls in {name.decode()}")
    places = buffers.numbers(f"<{4 * _COLUMN_COUNT}q")
    parts = [_part(message.body, *places[start : start + 2]) for start in range(0, len(places), 2)]
    _, series, _, times, _, values, validity, durations = parts
    return _Rows(
        series_index=_numbers(series, np.dtype("<i4"), row_count),
        time_ns=_numbers(times, np.dtype("<i8"), row_count),
        value=_numbers(values, np.dtype("<i8"), row_count),
        read_duration_ns=_numbers(durations, np.dtype("<i8"), row_count),
        is_known=_bits(validity, row_count) if null_counts[-1] else None,
    )


def _part(body: memoryview, offset: int, size_bytes: int) -> memoryview:
    if not (0 <= offset <= len(body) and 0 <= size_bytes <= len(body) - offset):
        raise _refused("ends before something that it speaks of")
    return body[offset : offset + size_bytes]


def _numbers(part: memoryview, kind: np.dtype[np.signedinteger], count: int) -> NDArray[np.signedinteger]:
    if len(part) < count * kind.itemsize:
        raise _refused("holds columns that are shorter than they say")
    if not count:
        return np.empty(0, kind)
    numbers = np.frombuffer(part, kind, count)
    # The content of a message lies where protobuf has put it.
    return numbers if numbers.flags.aligned else numbers.copy()


def _bits(part: memoryview, count: int) -> NDArray[np.bool_]:
    if len(part) * 8 < count:
        raise _refused("holds columns that are shorter than they say")
    return np.unpackbits(np.frombuffer(part, np.uint8), count=count, bitorder="little").astype(np.bool_)


def _joined(batches: Sequence[_Rows]) -> _Rows:
    known = [np.ones(len(b.time_ns), np.bool_) if b.is_known is None else b.is_known for b in batches]
    return _Rows(
        series_index=np.concatenate([b.series_index for b in batches]),
        time_ns=np.concatenate([b.time_ns for b in batches]),
        value=np.concatenate([b.value for b in batches]),
        read_duration_ns=np.concatenate([b.read_duration_ns for b in batches]),
        is_known=None if all(b.is_known is None for b in batches) else np.concatenate(known),
    )


def _by_series(rows: _Rows) -> Iterator[SampleColumns]:
    series, times, values, durations = rows.series_index, rows.time_ns, rows.value, rows.read_duration_ns
    known = rows.is_known
    starts = _run_starts(series)
    indexes = series[starts].tolist()
    if len(set(indexes)) != len(indexes):
        order = np.argsort(series, kind="stable")
        series, times, values, durations = series[order], times[order], values[order], durations[order]
        known = None if known is None else known[order]
        starts = _run_starts(series)
        indexes = series[starts].tolist()
    if len(starts) > LARGEST_SERIES_COUNT:
        raise _refused(f"holds readings of more than {LARGEST_SERIES_COUNT} series")
    if known is not None:
        durations = np.where(known, durations, UNKNOWN_READ_DURATION_NS)
    ends = [*starts[1:].tolist(), len(series)]
    for series_index, start, end in zip(indexes, starts.tolist(), ends, strict=True):
        is_unknown = known is not None and not known[start:end].any()
        yield SampleColumns(
            series_index=series_index,
            time_ns=times[start:end].data,
            value=values[start:end].data,
            read_duration_ns=() if is_unknown else durations[start:end].data,
        )


def _run_starts(series: NDArray[np.int32]) -> NDArray[np.intp]:
    """Where another series begins; 0 is the first. There is at least one reading."""
    return np.concatenate(([0], np.flatnonzero(series[1:] != series[:-1]) + 1))


def _refused(problem: str) -> InvalidArgumentError:
    return InvalidArgumentError([Violation(FIELD, problem)])
