"""Samples on their way into batches: what is checked before, what is put together, and what is cut to fit."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from attrs import define, evolve, field

from linkbound.client.batch_keeper import PackedBatch
from linkbound.client.spool.frames import SAMPLES
from linkbound.convert.sample_payload import payload_of_columns
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.samples import INT64_TYPECODE, SampleColumns
from linkbound.domain.words import counted

BATCH_SAMPLE_COUNT = 8192
"""A batch of so many samples does not wait for more: the store gains little beyond (measured: `docs/adr/0005`)."""

LARGEST_SAMPLE_BYTES = 30
"""One sample on the wire at most: three 64-bit values of up to 10 bytes each (protobuf, base-128 varints)."""

SMALLEST_LIMIT_BYTES = 256 * 1024
"""What a batch may take while the service has not told its limit: room for a full batch of many series."""

_SERIES_OVERHEAD_BYTES = 64
"""Tags, lengths and index of one series in a batch, rounded up."""


def check_columns(columns: Sequence[SampleColumns], series_count: int) -> None:
    """Raise InvalidArgumentError for columns that would make the whole batch malformed.

    The columns of a series have to be of equal length, and the series has to be one of the `series_count` that the
    writer was opened with and to come once.
    """
    violations = [
        Violation(f"columns[{position}].series_index", f"{entry.series_index} comes twice")
        for position, entry in enumerate(columns)
        if any(entry.series_index == earlier.series_index for earlier in columns[:position])
    ]
    violations += [
        Violation(f"columns[{position}].{field}", problem)
        for position, entry in enumerate(columns)
        for field, problem in _problems(entry, series_count)
    ]
    if violations:
        raise InvalidArgumentError(violations)


def _problems(entry: SampleColumns, series_count: int) -> Iterator[tuple[str, str]]:
    if not 0 <= entry.series_index < series_count:
        yield "series_index", f"{entry.series_index} is not from 0 to {series_count - 1}"
    count = len(entry.time_ns)
    if len(entry.value) != count:
        yield "value", f"{counted(len(entry.value), 'value')} for {counted(count, 'time')}"
    if entry.read_duration_ns and len(entry.read_duration_ns) != count:
        yield "read_duration_ns", f"{counted(len(entry.read_duration_ns), 'duration')} for {counted(count, 'time')}"


@define
class _OpenColumns:
    """What was written of one series since the last batch."""

    time_ns: array[int] = field(factory=lambda: array(INT64_TYPECODE))
    value: array[int] = field(factory=lambda: array(INT64_TYPECODE))
    read_duration_ns: array[int] = field(factory=lambda: array(INT64_TYPECODE))


class SampleBatcher:
    """Puts what is written together into batches of `BATCH_SAMPLE_COUNT` samples."""

    def __init__(self) -> None:
        self._open: dict[int, _OpenColumns] = {}
        self.sample_count = 0
        """Samples that are not in a batch yet."""

    def add(self, columns: Sequence[SampleColumns], max_batch_bytes: int) -> list[PackedBatch]:
        """Take samples that were checked, and return the batches that are full."""
        batches: list[PackedBatch] = []
        for entry in columns:
            open_columns = self._open.get(entry.series_index)
            if open_columns is not None and bool(open_columns.read_duration_ns) != bool(entry.read_duration_ns):
                # Within one batch, the durations of a series are known or they are not.
                batches += self.take(max_batch_bytes)
                open_columns = None
            if not entry.time_ns:
                continue
            if open_columns is None:
                open_columns = self._open[entry.series_index] = _OpenColumns()
            open_columns.time_ns.extend(entry.time_ns)
            open_columns.value.extend(entry.value)
            open_columns.read_duration_ns.extend(entry.read_duration_ns)
            self.sample_count += len(entry.time_ns)
        if self.sample_count >= BATCH_SAMPLE_COUNT:
            batches += self.take(max_batch_bytes)
        return batches

    def take(self, max_batch_bytes: int) -> list[PackedBatch]:
        """Everything that is not in a batch yet as batches; mostly that is one, and none where there is nothing."""
        columns = [
            SampleColumns(
                series_index=series_index,
                time_ns=entry.time_ns,
                value=entry.value,
                read_duration_ns=entry.read_duration_ns,
            )
            for series_index, entry in self._open.items()
        ]
        self._open, self.sample_count = {}, 0
        return [_packed(part) for part in split_columns(columns, max_batch_bytes, BATCH_SAMPLE_COUNT)]


def split_columns(
    columns: Sequence[SampleColumns], max_batch_bytes: int, max_sample_count: int
) -> Iterator[tuple[SampleColumns, ...]]:
    """`columns` in parts that each fit into one batch, in order; mostly that is one part."""
    part: list[SampleColumns] = []
    room_bytes, room_count = max_batch_bytes, max_sample_count
    for entry in columns:
        start = 0
        while start < len(entry.time_ns):
            fitting = min(room_count, (room_bytes - _SERIES_OVERHEAD_BYTES) // LARGEST_SAMPLE_BYTES)
            if fitting < 1 and part:
                yield tuple(part)
                part, room_bytes, room_count = [], max_batch_bytes, max_sample_count
                continue
            # One sample travels even where the limit is absurdly small: the service then says so.
            piece = _slice(entry, start, start + max(fitting, 1))
            part.append(piece)
            room_bytes -= _SERIES_OVERHEAD_BYTES + len(piece.time_ns) * LARGEST_SAMPLE_BYTES
            room_count -= len(piece.time_ns)
            start += len(piece.time_ns)
    if part:
        yield tuple(part)


def _packed(columns: tuple[SampleColumns, ...]) -> PackedBatch:
    sample_count = sum(len(entry.time_ns) for entry in columns)
    return PackedBatch(kind=SAMPLES, row_count=sample_count, payload=payload_of_columns(columns))


def _slice(entry: SampleColumns, start: int, stop: int) -> SampleColumns:
    if start == 0 and stop >= len(entry.time_ns):
        return entry
    return evolve(
        entry,
        time_ns=entry.time_ns[start:stop],
        value=entry.value[start:stop],
        read_duration_ns=entry.read_duration_ns[start:stop],
    )
