"""Looks at the readings of a sample batch: what can be stored, what cannot, and whether the batch makes sense at all.

A malformed batch (columns of different length, a series that the stream did not announce or that comes twice, too many
readings) stores nothing. In a good batch single bad readings are left out and counted: outside 64 bits, below 0 or
beyond the width of their counter, a negative read duration, or a time before that of the reading kept before it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from itertools import compress, islice

from attrs import frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.samples import LARGEST_SAMPLE_COUNT, SampleBatch, SampleColumns, SeriesDescriptor
from linkbound.domain.words import counted

LARGEST_INT64 = 2**63 - 1
SMALLEST_INT64 = -(2**63)


@frozen(kw_only=True)
class SeriesReadings:
    """Readings of one series that can be stored: equal-length columns, `read_duration_ns` empty where not known."""

    series: SeriesDescriptor
    time_ns: tuple[int, ...]
    value: tuple[int, ...]
    read_duration_ns: tuple[int, ...]


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
    times, values, durations = columns.time_ns, columns.value, columns.read_duration_ns
    if times and not _all_good(columns, low, high):
        keep, message = _select(columns, low, high)
        times = tuple(compress(times, keep))
        values = tuple(compress(values, keep))
        durations = tuple(compress(durations, keep))
        problem = _Problem(len(columns.time_ns) - len(times), f"series {columns.series_index}: {message}")
    else:
        problem = None
    return SeriesReadings(series=series, time_ns=times, value=values, read_duration_ns=durations), problem


def _value_range(series: SeriesDescriptor) -> tuple[int, int]:
    """Smallest and largest reading: a counter starts at 0 and wraps at its width, a gauge has 64 bits with a sign."""
    if series.counter_bits == 0:
        return SMALLEST_INT64, LARGEST_INT64
    return 0, min(2**series.counter_bits - 1, LARGEST_INT64)


def _all_good(columns: SampleColumns, low: int, high: int) -> bool:
    """Whether nothing has to be left out; built of calls that run at the speed of C, since it nearly always holds."""
    times, durations = columns.time_ns, columns.read_duration_ns
    return (
        times[0] >= 0
        and times[-1] <= LARGEST_INT64
        and all(map(operator.le, times, islice(times, 1, None)))
        and low <= min(columns.value)
        and max(columns.value) <= high
        and (not durations or (min(durations) >= 0 and max(durations) <= LARGEST_INT64))
    )


def _select(columns: SampleColumns, low: int, high: int) -> tuple[list[bool], str]:
    """Which readings to keep, and how many were left out for which reason."""
    keep: list[bool] = []
    counts: dict[str, int] = {}
    last_time_ns = 0
    durations = columns.read_duration_ns or (0,) * len(columns.time_ns)
    for time_ns, value, duration_ns in zip(columns.time_ns, columns.value, durations, strict=True):
        reason = ""
        if not 0 <= time_ns <= LARGEST_INT64:
            reason = f"times outside 0 to {LARGEST_INT64}"
        elif time_ns < last_time_ns:
            reason = "times before the reading before"
        elif not low <= value <= high:
            reason = f"values outside {low} to {high}"
        elif not 0 <= duration_ns <= LARGEST_INT64:
            reason = f"read durations outside 0 to {LARGEST_INT64}"
        else:
            last_time_ns = time_ns
        keep.append(not reason)
        if reason:
            counts[reason] = counts.get(reason, 0) + 1
    return keep, ", ".join(f"{count} {reason}" for reason, count in counts.items())
