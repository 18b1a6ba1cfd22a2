"""Samples on their way into batches: what is checked before, and what is cut to fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import shown
from linkbound.domain.samples import SampleColumns
from linkbound.domain.words import counted

LARGEST_SAMPLE_BYTES = 30
"""One sample on the wire at most: three 64-bit values of up to 10 bytes each (protobuf, base-128 varints)."""

_SERIES_OVERHEAD_BYTES = 64
"""Tags, lengths and index of one series in a batch, rounded up."""

_SMALLEST = -(2**63)
_LARGEST = 2**63 - 1


def check_columns(columns: Sequence[SampleColumns], series_count: int) -> None:
    """Raise InvalidArgumentError for columns that would make the whole batch malformed.

    The columns of a series have to be of equal length and hold signed 64-bit integers, and the series has to be one of
    the `series_count` that the writer was opened with and to come once.
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
    for field in ("time_ns", "value", "read_duration_ns"):
        numbers: tuple[int, ...] = getattr(entry, field)
        if numbers and not (min(numbers) >= _SMALLEST and max(numbers) <= _LARGEST):
            beyond = next(number for number in numbers if not _SMALLEST <= number <= _LARGEST)
            yield field, f"{shown(beyond)} is not a signed 64-bit integer"


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


def _slice(entry: SampleColumns, start: int, stop: int) -> SampleColumns:
    return evolve(
        entry,
        time_ns=entry.time_ns[start:stop],
        value=entry.value[start:stop],
        read_duration_ns=entry.read_duration_ns[start:stop],
    )
