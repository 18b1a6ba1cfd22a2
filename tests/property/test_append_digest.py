"""Digests: the same for equal batches however their series are announced, different for different ones."""

import hypothesis.strategies as st
from hypothesis import assume, given

from ingest_service.core.digest import digest_of_batch
from ingest_service.core.samples import check_batch
from linkbound.domain.samples import SampleBatch, SampleColumns, SeriesDescriptor

SERIES = tuple(SeriesDescriptor(metric=f"m{index}", node="n") for index in range(4))

numbers = st.integers(-(2**70), 2**70)


@st.composite
def columns(draw: st.DrawFn, series_index: int) -> SampleColumns:
    """Columns of one series, of equal length or not, in range or not."""
    times = tuple(draw(st.lists(numbers, max_size=4)))
    values = tuple(draw(st.lists(numbers, min_size=len(times), max_size=len(times))))
    durations = tuple(draw(st.one_of(st.just([]), st.lists(numbers, min_size=len(times), max_size=len(times)))))
    return SampleColumns(series_index=series_index, time_ns=times, value=values, read_duration_ns=durations)


@st.composite
def batches(draw: st.DrawFn) -> SampleBatch:
    """Batches in which each series comes at most once."""
    indexes = draw(st.lists(st.integers(0, len(SERIES) - 1), unique=True, max_size=len(SERIES)))
    return SampleBatch(sequence_number=1, columns=tuple(draw(columns(index)) for index in indexes))


@given(first=batches(), second=batches())
def test_different_batches_have_different_digests(first: SampleBatch, second: SampleBatch) -> None:
    assume(first != second)
    assert digest_of_batch(first, SERIES) != digest_of_batch(second, SERIES)


@given(batch=batches(), order=st.permutations(range(len(SERIES))))
def test_the_order_in_which_series_are_announced_does_not_count(batch: SampleBatch, order: list[int]) -> None:
    renumbered = SampleBatch(
        sequence_number=1,
        columns=tuple(
            SampleColumns(
                series_index=order.index(c.series_index),
                time_ns=c.time_ns,
                value=c.value,
                read_duration_ns=c.read_duration_ns,
            )
            for c in batch.columns
        ),
    )
    assert digest_of_batch(renumbered, [SERIES[i] for i in order]) == digest_of_batch(batch, SERIES)


@given(batch=batches())
def test_what_is_kept_and_what_is_counted_make_up_the_batch(batch: SampleBatch) -> None:
    checked = check_batch(batch, SERIES)
    assert checked.error is None
    assert checked.sample_count + checked.rejected_sample_count == batch.sample_count
    assert (checked.rejection_message == "") == (checked.rejected_sample_count == 0)
    for readings in checked.readings:
        assert list(readings.time_ns) == sorted(readings.time_ns)
        assert all(0 <= number < 2**63 for column in (readings.time_ns, readings.value) for number in column)


@given(batch=batches())
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
