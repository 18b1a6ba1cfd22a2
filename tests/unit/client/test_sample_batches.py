import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkbound.client.sample_batches import (
    BATCH_SAMPLE_COUNT,
    LARGEST_SAMPLE_BYTES,
    SMALLEST_LIMIT_BYTES,
    SampleBatcher,
    check_columns,
    split_columns,
)
from linkbound.convert.ingest_service import sample_batch_to_proto
from linkbound.convert.sample_payload import batch_of_payload
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.samples import SampleBatch, SampleColumns

INT64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def columns_of_series(draw: st.DrawFn, series_index: int) -> SampleColumns:
    count = draw(st.integers(0, 60))
    numbers = st.lists(INT64, min_size=count, max_size=count).map(tuple)
    return SampleColumns(
        series_index=series_index,
        time_ns=draw(numbers),
        value=draw(numbers),
        read_duration_ns=draw(st.one_of(st.just(()), numbers)),
    )


SEVERAL = st.integers(1, 4).flatmap(lambda n: st.tuples(*(columns_of_series(i) for i in range(n))))


@given(SEVERAL, st.integers(1, 3000), st.integers(1, 100))
def test_parts_hold_every_sample_once_and_in_order(
    columns: tuple[SampleColumns, ...], max_batch_bytes: int, max_sample_count: int
) -> None:
    parts = list(split_columns(columns, max_batch_bytes, max_sample_count))
    for entry in columns:
        pieces = [piece for part in parts for piece in part if piece.series_index == entry.series_index]
        for field in ("time_ns", "value", "read_duration_ns"):
            assert [number for piece in pieces for number in getattr(piece, field)] == list(getattr(entry, field))
    for part in parts:
        assert sum(len(piece.time_ns) for piece in part) <= max_sample_count
        indices = [piece.series_index for piece in part]
        assert len(indices) == len(set(indices))


@given(SEVERAL, st.integers(1024, 3000))
def test_no_part_is_larger_on_the_wire_than_allowed(columns: tuple[SampleColumns, ...], max_batch_bytes: int) -> None:
    for part in split_columns(columns, max_batch_bytes, 10**6):
        message = sample_batch_to_proto(SampleBatch(sequence_number=2**62, columns=part))
        assert message.ByteSize() <= max_batch_bytes


def test_what_fits_stays_together() -> None:
    columns = (
        SampleColumns(series_index=0, time_ns=(1, 2), value=(3, 4)),
        SampleColumns(series_index=1, time_ns=(1,), value=(5,)),
    )
    assert list(split_columns(columns, 1024, 100)) == [columns]


def test_nothing_makes_no_part() -> None:
    assert list(split_columns((), 1024, 100)) == []
    assert list(split_columns((SampleColumns(series_index=0, time_ns=(), value=()),), 1024, 100)) == []


def test_a_sample_has_three_numbers_of_ten_bytes() -> None:
    widest = SampleColumns(series_index=0, time_ns=(-(2**63),), value=(-(2**63),), read_duration_ns=(-1,))
    empty = SampleColumns(series_index=0, time_ns=(), value=())
    sizes = [
        sample_batch_to_proto(SampleBatch(sequence_number=1, columns=(entry,))).column_set.columns[0].ByteSize()
        for entry in (widest, empty)
    ]
    # Each of the three packed fields adds a tag and a length of one byte.
    assert sizes[0] - sizes[1] == LARGEST_SAMPLE_BYTES + 3 * 2


@pytest.mark.parametrize(
    ("columns", "fields"),
    [
        ([SampleColumns(series_index=2, time_ns=(1,), value=(1,))], ["columns[0].series_index"]),
        ([SampleColumns(series_index=-1, time_ns=(1,), value=(1,))], ["columns[0].series_index"]),
        ([SampleColumns(series_index=0, time_ns=(1, 2), value=(1,))], ["columns[0].value"]),
        (
            [SampleColumns(series_index=0, time_ns=(1,), value=(1,), read_duration_ns=(1, 2))],
            ["columns[0].read_duration_ns"],
        ),
        ([SampleColumns(series_index=0, time_ns=(1,), value=(1,))] * 2, ["columns[1].series_index"]),
    ],
)
def test_malformed_columns_are_named(columns: list[SampleColumns], fields: list[str]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        check_columns(columns, series_count=2)
    assert [violation.field for violation in caught.value.field_violations] == fields


WRITES = st.lists(SEVERAL, max_size=6)


@given(WRITES, st.integers(200, 3000))
def test_batches_hold_what_was_written_of_each_series_once_and_in_order(
    writes: list[tuple[SampleColumns, ...]], max_batch_bytes: int
) -> None:
    batcher = SampleBatcher()
    packed = [batch for columns in writes for batch in batcher.add(columns, max_batch_bytes)]
    packed += batcher.take(max_batch_bytes)
    batches = [batch_of_payload(1, batch.payload) for batch in packed]
    assert [batch.row_count for batch in packed] == [batch.sample_count for batch in batches]
    for series_index in range(4):
        written = [entry for columns in writes for entry in columns if entry.series_index == series_index]
        arrived = [entry for batch in batches for entry in batch.columns if entry.series_index == series_index]
        for name in ("time_ns", "value", "read_duration_ns"):
            assert [number for entry in arrived for number in getattr(entry, name)] == [
                number for entry in written for number in getattr(entry, name)
            ]
        # Durations stay with their times: a series of a batch has all of them or none.
        assert all(len(entry.read_duration_ns) in (0, len(entry.time_ns)) for entry in arrived)
    assert (batcher.sample_count, batcher.take(max_batch_bytes)) == (0, [])


def test_a_batch_is_passed_on_when_it_is_full_and_not_before() -> None:
    batcher, half = SampleBatcher(), range(BATCH_SAMPLE_COUNT // 2)
    columns = [SampleColumns(series_index=0, time_ns=half, value=half)]
    assert batcher.add(columns, 2**20) == []
    assert [batch.row_count for batch in batcher.add(columns, 2**20)] == [BATCH_SAMPLE_COUNT]
    assert batcher.sample_count == 0


def test_a_full_batch_fits_before_the_service_told_its_limit() -> None:
    (batch,) = SampleBatcher().add(
        [
            SampleColumns(series_index=i, time_ns=[2**62, -(2**62)] * 32, value=[-(2**62), 2**62] * 32)
            for i in range(BATCH_SAMPLE_COUNT // 64)
        ],
        SMALLEST_LIMIT_BYTES,
    )
    assert batch.row_count == BATCH_SAMPLE_COUNT


def test_well_formed_columns_pass() -> None:
    check_columns(
        [
            SampleColumns(series_index=1, time_ns=(1, 2), value=(-(2**63), 2**63 - 1), read_duration_ns=(5, 6)),
            SampleColumns(series_index=0, time_ns=(), value=()),
        ],
        series_count=2,
    )
