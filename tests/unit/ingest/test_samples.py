"""Which readings of a batch are stored, which are counted as bad, and which batches make no sense."""

import pytest

from ingest_service.core.samples import check_batch
from linkbound.domain.samples import UNKNOWN_READ_DURATION_NS, SampleBatch, SampleColumns, SeriesDescriptor

COUNTER = SeriesDescriptor(metric="port_xmit_data", node="spark1", counter_bits=64)
NARROW = SeriesDescriptor(metric="port_xmit_data", node="spark1", counter_bits=32)
GAUGE = SeriesDescriptor(metric="temperature", node="spark1", counter_bits=0)
SERIES = (COUNTER, NARROW, GAUGE)


def batch(*columns: SampleColumns) -> SampleBatch:
    return SampleBatch(sequence_number=1, columns=columns)


def columns(
    series_index: int, time_ns: tuple[int, ...], value: tuple[int, ...], duration_ns: tuple[int, ...] = ()
) -> SampleColumns:
    return SampleColumns(series_index=series_index, time_ns=time_ns, value=value, read_duration_ns=duration_ns)


def test_good_readings_come_out_as_they_are() -> None:
    checked = check_batch(batch(columns(0, (1, 2, 2), (5, 6, 7), (9, 9, 9)), columns(2, (3,), (-4,))), SERIES)
    assert checked.error is None
    assert checked.rejected_sample_count == 0
    assert checked.rejection_message == ""
    assert checked.sample_count == 4
    assert [r.series for r in checked.readings] == [COUNTER, GAUGE]
    assert list(checked.readings[0].time_ns) == [1, 2, 2]
    assert list(checked.readings[0].value) == [5, 6, 7]
    assert list(checked.readings[0].read_duration_ns) == [9, 9, 9]
    assert list(checked.readings[1].read_duration_ns) == []


@pytest.mark.parametrize(
    ("bad", "kept_times"),
    [
        (columns(0, (1, 5, 4, 6), (0, 0, 0, 0)), (1, 5, 6)),
        (columns(0, (-1, 2), (0, 0)), (2,)),
        (columns(0, (1, 2), (0, -1)), (1,)),
        (columns(1, (1, 2), (2**32 - 1, 2**32)), (1,)),
        (columns(0, (1, 2), (0, 0), (3, -1)), (1,)),
    ],
)
def test_bad_readings_are_counted_and_left_out(bad: SampleColumns, kept_times: tuple[int, ...]) -> None:
    checked = check_batch(batch(bad), SERIES)
    assert checked.error is None
    assert checked.rejected_sample_count == 1
    assert f"series {bad.series_index}: 1 " in checked.rejection_message
    [readings] = checked.readings
    assert tuple(readings.time_ns) == kept_times
    assert len(readings.value) == len(kept_times)
    assert len(readings.read_duration_ns) in (0, len(kept_times))


def test_a_bad_time_does_not_spoil_the_ones_behind_it() -> None:
    checked = check_batch(batch(columns(0, (1, 9, 2, 3), (0, -1, 0, 0))), SERIES)
    assert list(checked.readings[0].time_ns) == [1, 2, 3]


def test_a_duration_that_is_not_known_is_no_bad_one() -> None:
    checked = check_batch(batch(columns(0, (1, 2), (0, 0), (7, UNKNOWN_READ_DURATION_NS))), SERIES)
    assert checked.rejected_sample_count == 0
    assert list(checked.readings[0].read_duration_ns) == [7, UNKNOWN_READ_DURATION_NS]


def test_a_series_without_any_good_reading_is_not_among_the_readings() -> None:
    checked = check_batch(batch(columns(0, (1, 2), (-1, -1)), columns(1, (1,), (1,))), SERIES)
    assert [r.series for r in checked.readings] == [NARROW]
    assert checked.rejected_sample_count == 2


def test_an_empty_batch_is_fine() -> None:
    checked = check_batch(batch(), SERIES)
    assert checked.error is None
    assert checked.readings == ()


def test_a_malformed_batch_names_all_that_is_wrong() -> None:
    checked = check_batch(
        batch(
            columns(0, (1, 2), (1,)),
            columns(3, (1,), (1,)),
            columns(0, (1,), (1,), (1, 2)),
            columns(-1, (), ()),
        ),
        SERIES,
    )
    assert checked.error is not None
    assert checked.error.reason == "INVALID_FIELD"
    assert [v.field for v in checked.error.field_violations] == [
        "columns[0].value",
        "columns[1].series_index",
        "columns[2].series_index",
        "columns[2].read_duration_ns",
        "columns[3].series_index",
    ]
    assert checked.readings == ()
    assert checked.rejected_sample_count == 4
    assert checked.rejection_message == checked.error.message


def test_more_readings_than_a_batch_may_have_are_malformed() -> None:
    many = tuple(range(50_001))
    checked = check_batch(batch(columns(0, many, many), columns(1, many, many)), SERIES)
    assert checked.error is not None
    assert checked.error.field_violations[0].field == "columns"
    assert "100002" in checked.error.field_violations[0].description
