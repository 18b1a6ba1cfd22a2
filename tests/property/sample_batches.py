"""Strategies of sample batches: any 64-bit readings, most of them close together, as bad ones are found at edges."""

from __future__ import annotations

import hypothesis.strategies as st

from linkbound.domain.samples import (
    LARGEST_INT64,
    SMALLEST_INT64,
    UNKNOWN_READ_DURATION_NS,
    SampleBatch,
    SampleColumns,
)

NUMBERS = st.one_of(
    st.integers(-2, 6),
    st.sampled_from((SMALLEST_INT64, LARGEST_INT64, 2**32 - 1, 2**32)),
    st.integers(SMALLEST_INT64, LARGEST_INT64),
)
DURATIONS = st.one_of(st.integers(-1, 3), st.sampled_from((UNKNOWN_READ_DURATION_NS, LARGEST_INT64)))


@st.composite
def columns(draw: st.DrawFn, series_index: int, *, is_equal: bool) -> SampleColumns:
    """Columns of one series, of equal length or of any."""
    times = draw(st.lists(NUMBERS, max_size=6))

    def others(numbers: st.SearchStrategy[int]) -> list[int]:
        smallest, largest = (len(times), len(times)) if is_equal else (0, 6)
        return draw(st.lists(numbers, min_size=smallest, max_size=largest))

    return SampleColumns(
        series_index=series_index,
        time_ns=times,
        value=others(NUMBERS),
        read_duration_ns=others(DURATIONS) if draw(st.booleans()) else (),
    )


def batches(series_count: int) -> st.SearchStrategy[SampleBatch]:
    """Batches in which each series comes at most once, with columns of any length."""
    return _batches(series_count, is_equal=False)


def batches_of_equal_columns(series_count: int) -> st.SearchStrategy[SampleBatch]:
    """Batches that are not malformed: each series at most once, its columns of equal length."""
    return _batches(series_count, is_equal=True)


@st.composite
def _batches(draw: st.DrawFn, series_count: int, *, is_equal: bool) -> SampleBatch:
    indexes = draw(st.lists(st.integers(0, series_count - 1), unique=True, max_size=series_count))
    return SampleBatch(sequence_number=1, columns=tuple(draw(columns(index, is_equal=is_equal)) for index in indexes))
