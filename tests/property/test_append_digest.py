"""Digests: the same for equal batches however they are encoded and announced, different for different ones."""

import hypothesis.strategies as st
from hypothesis import assume, given

from ingest_service.core.arrow_batches import columns_of_arrow
from ingest_service.core.digest import any_known, digest_of_batch, names_of_series
from linkbound.convert.arrow_samples import sample_columns_to_arrow
from linkbound.convert.samples import sample_columns_from_proto, sample_columns_to_proto
from linkbound.domain.samples import SampleBatch, SampleColumns, SeriesDescriptor
from tests.property.sample_batches import batches, batches_of_equal_columns

SERIES = tuple(SeriesDescriptor(metric=f"m{index}", node="n") for index in range(4))
NAMES = names_of_series(SERIES)


def content(batch: SampleBatch) -> dict[int, tuple[list[int], ...]]:
    """What a batch says: the readings of each series that has any."""
    return {
        c.series_index: (
            list(c.time_ns),
            list(c.value),
            list(c.read_duration_ns) if any_known(c.read_duration_ns) else [],
        )
        for c in batch.columns
        if c.time_ns or c.value or c.read_duration_ns
    }


@given(first=batches(len(SERIES)), second=batches(len(SERIES)))
def test_different_batches_have_different_digests(first: SampleBatch, second: SampleBatch) -> None:
    assume(content(first) != content(second))
    assert digest_of_batch(first, NAMES) != digest_of_batch(second, NAMES)


@given(batch=batches(len(SERIES)), order=st.permutations(range(len(SERIES))), data=st.data())
def test_the_order_in_which_series_are_announced_and_sent_does_not_count(
    batch: SampleBatch, order: list[int], data: st.DataObject
) -> None:
    renumbered = [
        SampleColumns(
            series_index=order.index(c.series_index),
            time_ns=c.time_ns,
            value=c.value,
            read_duration_ns=c.read_duration_ns,
        )
        for c in batch.columns
    ]
    moved = SampleBatch(sequence_number=1, columns=tuple(data.draw(st.permutations(renumbered))))
    names = names_of_series([SERIES[i] for i in order])
    assert digest_of_batch(moved, names) == digest_of_batch(batch, NAMES)


@given(batch=batches_of_equal_columns(len(SERIES)))
def test_both_encodings_of_a_batch_have_one_digest(batch: SampleBatch) -> None:
    by_arrow = SampleBatch(sequence_number=1, columns=columns_of_arrow(sample_columns_to_arrow(batch.columns)))
    packed = tuple(sample_columns_from_proto(sample_columns_to_proto(columns)) for columns in batch.columns)
    by_columns = SampleBatch(sequence_number=1, columns=packed)
    assert digest_of_batch(by_arrow, NAMES) == digest_of_batch(by_columns, NAMES) == digest_of_batch(batch, NAMES)
