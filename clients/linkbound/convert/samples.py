"""Converters of `linkbound/ingest/v1/samples.proto`: absolute values here, differences on the wire.

Differences are 64-bit two's complement, so any two signed 64-bit readings have one. Both directions run at the speed of
the built-in iterators; only values that leave the range take the slow path.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import shown
from linkbound.domain.samples import SampleColumns, SeriesDescriptor
from linkbound.ingest.v1 import samples_pb2

_SMALLEST = -(2**63)
_LARGEST = 2**63 - 1
_MODULUS = 2**64


def series_descriptor_to_proto(value: SeriesDescriptor) -> samples_pb2.SeriesDescriptor:
    """A series as a message."""
    return samples_pb2.SeriesDescriptor(
        metric=value.metric,
        node=value.node,
        device=value.device,
        port=value.port,
        unit_bytes=value.unit_bytes,
        counter_bits=value.counter_bits,
        boot_id=value.boot_id,
    )


def series_descriptor_from_proto(message: samples_pb2.SeriesDescriptor) -> SeriesDescriptor:
    """A series from its message."""
    return SeriesDescriptor(
        metric=message.metric,
        node=message.node,
        device=message.device,
        port=message.port,
        unit_bytes=message.unit_bytes,
        counter_bits=message.counter_bits,
        boot_id=message.boot_id,
    )


def sample_columns_to_proto(value: SampleColumns) -> samples_pb2.SampleColumns:
    """Readings of one series as a message.

    Raises InvalidArgumentError for a number that is not a signed 64-bit integer.
    """
    return samples_pb2.SampleColumns(
        series_index=value.series_index,
        time_ns_deltas=_deltas("time_ns", value.time_ns),
        value_deltas=_deltas("value", value.value),
        read_duration_ns=_within_64_bits("read_duration_ns", value.read_duration_ns),
    )


def sample_columns_from_proto(message: samples_pb2.SampleColumns) -> SampleColumns:
    """Readings of one series from their message."""
    return SampleColumns(
        series_index=message.series_index,
        time_ns=_absolute(message.time_ns_deltas),
        value=_absolute(message.value_deltas),
        read_duration_ns=tuple(message.read_duration_ns),
    )


def _deltas(field: str, values: Sequence[int]) -> list[int]:
    _within_64_bits(field, values)
    deltas = list(chain(values[:1], map(operator.sub, values[1:], values)))
    return deltas if _is_within_64_bits(deltas) else [_wrapped(delta) for delta in deltas]


def _absolute(deltas: Iterable[int]) -> tuple[int, ...]:
    values = tuple(accumulate(deltas))
    return values if _is_within_64_bits(values) else tuple(_wrapped(value) for value in values)


def _within_64_bits(field: str, values: Sequence[int]) -> Sequence[int]:
    if not _is_within_64_bits(values):
        index, value = next((i, v) for i, v in enumerate(values) if not _SMALLEST <= v <= _LARGEST)
        description = f"{shown(value)} is not a signed 64-bit integer"
        raise InvalidArgumentError([Violation(f"{field}[{index}]", description)])
    return values


def _is_within_64_bits(values: Sequence[int]) -> bool:
    return not values or (min(values) >= _SMALLEST and max(values) <= _LARGEST)


def _wrapped(value: int) -> int:
    return (value - _SMALLEST) % _MODULUS + _SMALLEST
