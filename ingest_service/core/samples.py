"""Looks at the readings of a sample batch: what can be stored, what cannot, and whether the batch makes sense at all.

A malformed batch (columns of different length, a series that the stream did not announce or that comes twice, too many
readings) stores nothing. In a good batch single bad readings are left out and counted: a negative time or one before
that of the reading kept before it, a value below 0 or beyond the width of its counter, a negative read duration.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.samples import (
    INT64_TYPECODE,
    LARGEST_INT64,
    LARGEST_SAMPLE_COUNT,
    SMALLEST_INT64,
    UNKNOWN_READ_DURATION_NS,
    SampleBatch,
    SampleColumns,
    SeriesDescriptor,
)
from linkbound.domain.words import counted

Int64s = NDArray[np.int64]
Flags = NDArray[np.bool_]


@frozen(kw_only=True)
class SeriesReadings:
    """Readings of one series that can be stored: equal-length columns, `read_duration_ns` empty where not known."""

    series: SeriesDescriptor
    time_ns: array[int]
    value: array[int]
    read_duration_ns: array[int]


@frozen(kw_only=True)
class CheckedBatch:
    """What of a batch can be stored. `error` is set where the batch is malformed; then nothing can."""

    readings: tuple[SeriesReadings, ...] = ()
    rejected_sample_count: int = 0
    rejection_message: str = ""
    error: InvalidArgumentError | None = None

    @property
    def sample_count(self) -> int:
        """Readings that can be stored."""
        return sum(len(r.time_ns) for r in self.readings)


def check_batch(batch: SampleBatch, series: Sequence[SeriesDescriptor]) -> CheckedBatch:
    """Checks `batch` against the `series` that its stream announced."""
    violations = tuple(_violations(batch, len(series)))
    if violations:
        error = InvalidArgumentError(violations)
        return CheckedBatch(
            rejected_sample_count=sum(max(len(c.time_ns), len(c.value)) for c in batch.columns),
            rejection_message=error.message,
            error=error,
        )
    checked = [_check_columns(columns, series[columns.series_index]) for columns in batch.columns]
    problems = [problem for _, problem in checked if problem is not None]
    return CheckedBatch(
        readings=tuple(readings for readings, _ in checked if readings.time_ns),
        rejected_sample_count=sum(problem.rejected_count for problem in problems),
        rejection_message="; ".join(problem.message for problem in problems),
    )


def _violations(batch: SampleBatch, series_count: int) -> Iterator[Violation]:
    if batch.sample_count > LARGEST_SAMPLE_COUNT:
        yield Violation("columns", f"{batch.sample_count} readings are more than {LARGEST_SAMPLE_COUNT}")
    seen: set[int] = set()
    for index, columns in enumerate(batch.columns):
        path = f"columns[{index}]"
        if not 0 <= columns.series_index < series_count:
            yield Violation(
                f"{path}.series_index", f"{columns.series_index} is not one of the {series_count} series of the stream"
            )
        elif columns.series_index in seen:
            yield Violation(f"{path}.series_index", f"{columns.series_index} comes twice in the batch")
        seen.add(columns.series_index)
        count = len(columns.time_ns)
        if len(columns.value) != count:
            yield Violation(f"{path}.value", f"{counted(len(columns.value), 'value')} for {counted(count, 'time')}")
        if columns.read_duration_ns and len(columns.read_duration_ns) != count:
            yield Violation(
                f"{path}.read_duration_ns",
                f"{counted(len(columns.read_duration_ns), 'duration')} for {counted(count, 'time')}",
            )


@frozen
class _Problem:
    rejected_count: int
    message: str


def _check_columns(columns: SampleColumns, series: SeriesDescriptor) -> tuple[SeriesReadings, _Problem | None]:
    low, high = _value_range(series)
    if not columns.time_ns or _all_good(columns, low, high):
        return _readings(series, columns.time_ns, columns.value, columns.read_duration_ns), None
    keep, message = _select(columns, low, high)
    times, values, durations = (_kept(c, keep) for c in (columns.time_ns, columns.value, columns.read_duration_ns))
    problem = _Problem(len(columns.time_ns) - len(times), f"series {columns.series_index}: {message}")
    return _readings(series, times, values, durations), problem


def _readings(
    series: SeriesDescriptor, time_ns: array[int], value: array[int], read_duration_ns: array[int]
) -> SeriesReadings:
    return SeriesReadings(series=series, time_ns=time_ns, value=value, read_duration_ns=read_duration_ns)


def as_numbers(column: array[int]) -> Int64s:
    """`column` as NumPy sees it, without a copy."""
    return np.frombuffer(column, np.int64) if column else np.empty(0, np.int64)


def _kept(column: array[int], keep: Flags) -> array[int]:
    return array(INT64_TYPECODE, as_numbers(column)[keep].tobytes()) if column else column


def _value_range(series: SeriesDescriptor) -> tuple[int, int]:
    """Smallest and largest reading: a counter starts at 0 and wraps at its width, a gauge has 64 bits with a sign."""
    if series.counter_bits == 0:
        return SMALLEST_INT64, LARGEST_INT64
    return 0, min(2**series.counter_bits - 1, LARGEST_INT64)


def _all_good(columns: SampleColumns, low: int, high: int) -> bool:
    """Whether nothing has to be left out, which nearly always holds. There is at least one reading."""
    times, values, durations = map(as_numbers, (columns.time_ns, columns.value, columns.read_duration_ns))
    return bool(
        times[0] >= 0
        and (times[1:] >= times[:-1]).all()
        and values.min() >= low
        and values.max() <= high
        and (not len(durations) or durations.min() >= 0 or _are_durations(durations).all())
    )


def _are_durations(durations: Int64s) -> Flags:
    is_known: Flags = durations >= 0
    is_unknown: Flags = durations == UNKNOWN_READ_DURATION_NS
    return is_known | is_unknown


def _select(columns: SampleColumns, low: int, high: int) -> tuple[Flags, str]:
    """Which readings to keep, and how many were left out for which reason; of several reasons the first counts."""
    times, values, durations = map(as_numbers, (columns.time_ns, columns.value, columns.read_duration_ns))
    is_time = times >= 0
    is_value = (values >= low) & (values <= high)
    is_duration = _are_durations(durations) if len(durations) else np.ones(len(times), np.bool_)
    # Those kept never fall, and one that is left out for falling does not raise the highest before it.
    highest = np.maximum.accumulate(np.where(is_time & is_value & is_duration, times, 0))
    is_behind = times >= np.concatenate((highest[:1] * 0, highest[:-1]))
    rules = (
        (is_time, f"times outside 0 to {LARGEST_INT64}"),
        (is_behind, "times before the reading before"),
        (is_value, f"values outside {low} to {high}"),
        (is_duration, f"read durations outside 0 to {LARGEST_INT64}"),
    )
    keep = np.ones(len(times), np.bool_)
    found: list[tuple[int, str]] = []
    for is_kept, reason in rules:
        broken = np.flatnonzero(keep & ~is_kept)
        keep &= is_kept
        if len(broken):
            found.append((int(broken[0]), f"{len(broken)} {reason}"))
    return keep, ", ".join(text for _, text in sorted(found))
