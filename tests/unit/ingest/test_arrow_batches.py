"""The bulk encoding: Arrow's own streams are read, and anything else is one error and never more than that."""

from __future__ import annotations

import struct
from array import array

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from ingest_service.core.arrow_batches import columns_of_arrow
from linkbound.convert.arrow_samples import sample_columns_to_arrow
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.samples import LARGEST_SAMPLE_COUNT, UNKNOWN_READ_DURATION_NS, SampleBatch, SampleColumns
from tests.property.sample_batches import batches_of_equal_columns

SCHEMA = pa.schema(
    [("series_index", pa.int32()), ("time_ns", pa.int64()), ("value", pa.int64()), ("read_duration_ns", pa.int64())]
)


def table(
    series: list[int], times: list[int], durations: list[int | None] | None = None, schema: pa.Schema = SCHEMA
) -> pa.Table:
    return pa.table([series, times, [-t for t in times], durations or [None] * len(times)], schema=schema)


def stream(rows: pa.Table, rows_per_batch: int | None = None, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(rows, max_chunksize=rows_per_batch)
    return bytes(sink.getvalue())


def refusal(content: bytes) -> str:
    with pytest.raises(InvalidArgumentError) as caught:
        columns_of_arrow(content)
    (violation,) = caught.value.field_violations
    assert violation.field == "arrow_ipc"
    return violation.description


def columns(series_index: int, times: list[int], durations: list[int] | None = None) -> SampleColumns:
    return SampleColumns(
        series_index=series_index, time_ns=times, value=[-t for t in times], read_duration_ns=durations or ()
    )


def test_a_stream_of_pyarrow_is_read_by_series() -> None:
    rows = table([1, 1, 0], [5, 6, 7], [None, None, 40])
    assert columns_of_arrow(stream(rows)) == (columns(1, [5, 6]), columns(0, [7], [40]))


@pytest.mark.parametrize("rows_per_batch", [1, 2, None])
def test_series_may_mix_and_batches_too(rows_per_batch: int | None) -> None:
    rows = table([3, 1, 3, 1, 3], [1, 2, 3, 4, 5], [10, None, None, None, 50])
    assert columns_of_arrow(stream(rows, rows_per_batch)) == (
        columns(1, [2, 4]),
        columns(3, [1, 3, 5], [10, UNKNOWN_READ_DURATION_NS, 50]),
    )


def test_a_stream_without_rows_is_a_batch_without_readings() -> None:
    assert columns_of_arrow(stream(table([], []))) == ()
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, SCHEMA).close()
    assert columns_of_arrow(bytes(sink.getvalue())) == ()


@given(batch=batches_of_equal_columns(4))
def test_what_is_written_without_arrow_is_what_arrow_reads_and_what_is_read_back(batch: SampleBatch) -> None:
    given_columns = [c for c in batch.columns if c.time_ns]
    content = sample_columns_to_arrow(given_columns)
    read_back = columns_of_arrow(content)
    assert [(c.series_index, list(c.time_ns), list(c.value)) for c in read_back] == [
        (c.series_index, list(c.time_ns), list(c.value)) for c in given_columns
    ]
    by_arrow = pa.ipc.open_stream(content).read_all()
    by_arrow.validate(full=True)
    assert by_arrow.schema == SCHEMA
    assert by_arrow["time_ns"].to_pylist() == [t for c in given_columns for t in c.time_ns]
    assert by_arrow["read_duration_ns"].to_pylist() == [
        None if d == UNKNOWN_READ_DURATION_NS else d
        for c in given_columns
        for d in c.read_duration_ns or [UNKNOWN_READ_DURATION_NS] * len(c.time_ns)
    ]


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([*list(SCHEMA)[:3], ("read_duration_ns", pa.int32())]),
        pa.schema([*list(SCHEMA)[:3], ("read_duration_ns", pa.uint64())]),
        pa.schema([*list(SCHEMA)[:3], ("read_duration_ns", pa.float64())]),
        pa.schema([*list(SCHEMA)[:3], ("duration", pa.int64())]),
        pa.schema([("series_index", pa.int64()), *list(SCHEMA)[1:]]),
        pa.schema([*list(SCHEMA), ("more", pa.int64())]),
        pa.schema(list(SCHEMA)[:3]),
        pa.schema([*list(SCHEMA)[:3], ("read_duration_ns", pa.dictionary(pa.int32(), pa.int64()))]),
    ],
)
def test_other_columns_are_refused(schema: pa.Schema) -> None:
    rows = pa.table([pa.array([1], field.type) for field in schema], schema=schema)
    assert refusal(stream(rows)).startswith("has ")


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_what_is_compressed_is_refused(compression: str) -> None:
    assert refusal(stream(table([0] * 1000, [1] * 1000), compression=compression)) == "is compressed"


@pytest.mark.parametrize("position", [0, 1, 2])
def test_nulls_are_for_durations_only(position: int) -> None:
    rows = table([0, 0], [1, 2])
    with_null = rows.set_column(position, SCHEMA.field(position), pa.array([None, 1], SCHEMA.types[position]))
    assert refusal(stream(with_null)) == f"has nulls in {SCHEMA.names[position]}"


def test_more_readings_than_a_batch_may_have_are_refused() -> None:
    many = LARGEST_SAMPLE_COUNT + 1
    rows = table([0] * many, [1] * many)
    for rows_per_batch in (None, 50_000):
        assert "more than 100000 readings" in refusal(stream(rows, rows_per_batch))


def test_more_series_than_a_batch_may_have_are_refused() -> None:
    assert "more than 1024 series" in refusal(stream(table(list(range(1025)), [1] * 1025)))


@pytest.mark.parametrize(
    "content", [b"", b"x", b"\xff" * 8, bytes(100), b"\xff\xff\xff\xff" + struct.pack("<I", 2**31) + bytes(8)]
)
def test_what_is_no_stream_is_refused(content: bytes) -> None:
    refusal(content)


def test_a_stream_that_is_cut_anywhere_is_refused_or_shorter() -> None:
    content = stream(table([0, 0, 1], [1, 2, 3], [None, 4, 5]))
    whole = columns_of_arrow(content)
    for length in range(len(content)):
        try:
            assert columns_of_arrow(content[:length]) in (whole, ())
        except InvalidArgumentError:
            continue


SEEDS = tuple(
    stream(table([0, 1, 0] * 5, list(range(15)), [None, 4, 5] * 5), rows_per_batch=7, **options)
    for options in ({}, {"compression": "zstd"})
)
SPECIAL = tuple(struct.pack("<q", number) for number in (0, 1, -1, 2**31, 2**32, 2**62, -(2**63), 2**63 - 1))


@given(
    seed=st.sampled_from(SEEDS),
    changes=st.lists(
        st.tuples(st.integers(0, 10**6), st.one_of(st.binary(min_size=1, max_size=4), st.sampled_from(SPECIAL))),
        min_size=1,
        max_size=5,
    ),
)
def test_whatever_the_bytes_are_it_is_readings_or_one_error(seed: bytes, changes: list[tuple[int, bytes]]) -> None:
    content = bytearray(seed)
    for position, part in changes:
        start = position % len(seed)
        content[start : start + len(part)] = part
    try:
        read = columns_of_arrow(bytes(content))
    except InvalidArgumentError as error:
        assert len(error.field_violations) == 1
    else:
        for entry in read:
            assert len(entry.time_ns) == len(entry.value)
            assert len(entry.read_duration_ns) in (0, len(entry.value))


def test_columns_are_taken_from_whatever_holds_64_bit_numbers() -> None:
    expected = array("q", [1, 2, 3])
    for numbers in ([1, 2, 3], (1, 2, 3), range(1, 4), expected, memoryview(expected), np.array([1, 2, 3]).data):
        assert SampleColumns(series_index=0, time_ns=numbers, value=()).time_ns == expected
    assert not SampleColumns(series_index=0, time_ns=np.array([], np.int64).data, value=()).time_ns


def test_columns_are_copies() -> None:
    times = array("q", [1, 2])
    made = SampleColumns(series_index=0, time_ns=times, value=times)
    times[0] = 9
    assert list(made.time_ns) == [1, 2]


@pytest.mark.parametrize("number", [1.5, float("nan"), "1", None, 2**63, -(2**63) - 1])
def test_what_is_no_64_bit_number_is_refused_with_its_place(number: object) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        SampleColumns(series_index=0, time_ns=(1, 2), value=(1, number))  # type: ignore[arg-type]  # the point
    assert [violation.field for violation in caught.value.field_violations] == ["value[1]"]
