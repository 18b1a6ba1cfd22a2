"""Which readings are kept: the same as a loop over them one by one would keep, with the same words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingest_service.core.samples import check_batch
from linkbound.domain.samples import (
    LARGEST_INT64,
    SMALLEST_INT64,
    UNKNOWN_READ_DURATION_NS,
    SampleBatch,
    SampleColumns,
    SeriesDescriptor,
)
from tests.property.sample_batches import batches_of_equal_columns

SERIES = tuple(SeriesDescriptor(metric=f"m{bits}", node="n", counter_bits=bits) for bits in (0, 32, 64))


def kept_one_by_one(columns: SampleColumns, series: SeriesDescriptor) -> tuple[list[tuple[int, ...]], str]:
    """Readings to keep, and how many were left out for which reason, by the rules as they are written down."""
    low, high = (
        (SMALLEST_INT64, LARGEST_INT64)
        if series.counter_bits == 0
        else (0, min(2**series.counter_bits - 1, LARGEST_INT64))
    )
    kept: list[tuple[int, ...]] = []
    counts: dict[str, int] = {}
    last_time_ns = 0
    durations = columns.read_duration_ns or [0] * len(columns.time_ns)
    for time_ns, value, duration_ns in zip(columns.time_ns, columns.value, durations, strict=True):
        if time_ns < 0:
            reason = f"times outside 0 to {LARGEST_INT64}"
        elif time_ns < last_time_ns:
            reason = "times before the reading before"
        elif not low <= value <= high:
            reason = f"values outside {low} to {high}"
        elif duration_ns < 0 and duration_ns != UNKNOWN_READ_DURATION_NS:
            reason = f"read durations outside 0 to {LARGEST_INT64}"
        else:
            last_time_ns = time_ns
            kept.append((time_ns, value, *([duration_ns] if columns.read_duration_ns else [])))
            continue
        counts[reason] = counts.get(reason, 0) + 1
    return kept, ", ".join(f"{count} {reason}" for reason, count in counts.items())


@given(batch=batches_of_equal_columns(len(SERIES)))
def test_the_same_readings_are_kept_as_one_by_one(batch: SampleBatch) -> None:
    checked = check_batch(batch, SERIES)
    expected = [(c.series_index, *kept_one_by_one(c, SERIES[c.series_index])) for c in batch.columns]
    assert checked.error is None
    assert [
        (r.series, list(zip(r.time_ns, r.value, *([r.read_duration_ns] if r.read_duration_ns else []), strict=True)))
        for r in checked.readings
    ] == [(SERIES[index], kept) for index, kept, _ in expected if kept]
    assert checked.rejection_message == "; ".join(f"series {i}: {message}" for i, _, message in expected if message)
    assert checked.rejected_sample_count == batch.sample_count - sum(len(kept) for _, kept, _ in expected)


@given(batch=batches_of_equal_columns(len(SERIES)))
def test_what_is_kept_and_what_is_counted_make_up_the_batch(batch: SampleBatch) -> None:
    checked = check_batch(batch, SERIES)
    assert checked.sample_count + checked.rejected_sample_count == batch.sample_count
    assert (checked.rejection_message == "") == (checked.rejected_sample_count == 0)
    for readings in checked.readings:
        assert list(readings.time_ns) == sorted(readings.time_ns)
        assert all(number >= 0 for number in readings.time_ns)


@given(batch=batches_of_equal_columns(len(SERIES)))
def test_keeping_what_was_kept_changes_nothing(batch: SampleBatch) -> None:
    once = check_batch(batch, SERIES)
    kept = SampleBatch(
        sequence_number=1,
        columns=tuple(
            SampleColumns(
                series_index=SERIES.index(r.series),
                time_ns=r.time_ns,
                value=r.value,
                read_duration_ns=r.read_duration_ns,
            )
            for r in once.readings
        ),
    )
    twice = check_batch(kept, SERIES)
    assert twice.readings == once.readings
    assert twice.rejected_sample_count == 0


@given(times=st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_times_that_never_fall_are_all_kept_and_no_others(times: list[int]) -> None:
    columns = SampleColumns(series_index=0, time_ns=times, value=[0] * len(times))
    [readings] = check_batch(SampleBatch(sequence_number=1, columns=(columns,)), SERIES).readings
    highest = 0
    expected = []
    for time_ns in times:
        if time_ns >= highest:
            expected.append(time_ns)
            highest = time_ns
    assert list(readings.time_ns) == expected
