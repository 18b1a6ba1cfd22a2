"""Absolute readings and their differences on the wire."""

from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkbound.convert.samples import sample_columns_from_proto, sample_columns_to_proto
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.samples import SampleColumns
from linkbound.ingest.v1 import samples_pb2

LARGEST = 2**63 - 1
SMALLEST = -(2**63)


def columns(time_ns: tuple[int, ...] = (), value: tuple[int, ...] = ()) -> SampleColumns:
    return SampleColumns(series_index=0, time_ns=time_ns, value=value)


def test_the_first_value_is_absolute_and_the_others_are_differences() -> None:
    message = sample_columns_to_proto(columns((1000, 1001, 1003), (5, 5, 2)))
    assert list(message.time_ns_deltas) == [1000, 1, 2]
    assert list(message.value_deltas) == [5, 0, -3]


def test_read_durations_are_plain() -> None:
    readings = SampleColumns(series_index=3, time_ns=(1, 2), value=(0, 0), read_duration_ns=(70, 80))
    assert list(sample_columns_to_proto(readings).read_duration_ns) == [70, 80]


def test_nothing_is_nothing() -> None:
    assert sample_columns_from_proto(samples_pb2.SampleColumns()) == columns()


def test_a_difference_that_needs_65_bits_wraps_as_machine_integers_do() -> None:
    readings = columns(value=(SMALLEST, LARGEST, SMALLEST))
    message = sample_columns_to_proto(readings)
    # 2^64 - 1 is -1 in two's complement.
    assert list(message.value_deltas) == [SMALLEST, -1, 1]
    assert sample_columns_from_proto(message) == readings


@given(st.lists(st.integers(SMALLEST, LARGEST), max_size=50))
def test_any_differences_become_64_bit_readings(deltas: list[int]) -> None:
    message = samples_pb2.SampleColumns(value_deltas=deltas)
    readings = sample_columns_from_proto(message)
    assert all(SMALLEST <= value <= LARGEST for value in readings.value)
    assert list(sample_columns_to_proto(readings).value_deltas) == deltas


@pytest.mark.parametrize("reading", [2**63, -(2**63) - 1, 2**64])
@pytest.mark.parametrize(
    ("field", "with_reading"),
    [
        ("time_ns", lambda reading: columns(time_ns=(1, reading))),
        ("value", lambda reading: columns(value=(1, reading))),
        ("read_duration_ns", lambda reading: attrs.evolve(columns(), read_duration_ns=(1, reading))),
    ],
)
def test_a_reading_beyond_64_bits_is_refused(
    field: str, with_reading: Callable[[int], SampleColumns], reading: int
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        sample_columns_to_proto(with_reading(reading))
    (violation,) = caught.value.field_violations
    assert violation.field == f"{field}[1]"
    assert str(reading) in violation.description
