"""Converters of `linkbound/ingest/v1/samples.proto`: absolute values here, differences on the wire.

Differences are 64-bit two's complement, so any two signed 64-bit readings have one. Both directions run at the speed of
the built-in iterators; only values that leave the range take the slow path. Who receives many batches brings a faster
way from message to column: `BatchReading`.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Callable, Collection, Iterable
from itertools import accumulate, chain

from attrs import frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.samples import (
    INT64_TYPECODE,
    LARGEST_INT64,
    SMALLEST_INT64,
    Numbers,
    SampleColumns,
    SeriesDescriptor,
)
from linkbound.ingest.v1 import samples_pb2

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
        physical_port=value.physical_port,
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
        physical_port=message.physical_port,
    )


@frozen
class BatchReading:
    """How what a batch holds becomes columns: `plain` numbers as they are, differences as their `running_sums`.

    Sums are taken in 64-bit two's complement. `arrow` reads the bulk encoding and raises InvalidArgumentError.
    """

    plain: Callable[[Collection[int]], Numbers]
    running_sums: Callable[[Collection[int]], Numbers]
    arrow: Callable[[bytes], tuple[SampleColumns, ...]]


def sample_columns_to_proto(value: SampleColumns) -> samples_pb2.SampleColumns:
    """Readings of one series as a message."""
    return samples_pb2.SampleColumns(
        series_index=value.series_index,
        time_ns_deltas=_deltas(value.time_ns),
        value_deltas=_deltas(value.value),
        read_duration_ns=value.read_duration_ns,
    )


def _deltas(values: array[int]) -> list[int]:
    deltas = list(chain(values[:1], map(operator.sub, values[1:], values)))
    return deltas if _is_within_64_bits(deltas) else [_wrapped(delta) for delta in deltas]


def _running_sums(deltas: Iterable[int]) -> array[int]:
    sums = list(accumulate(deltas))
    return array(INT64_TYPECODE, sums if _is_within_64_bits(sums) else map(_wrapped, sums))


def _no_arrow(_content: bytes) -> tuple[SampleColumns, ...]:
    raise InvalidArgumentError([Violation("arrow_ipc", "is an encoding that only the service reads")])


STANDARD_READING = BatchReading(plain=tuple, running_sums=_running_sums, arrow=_no_arrow)
"""That of the standard library."""


def sample_columns_from_proto(
    message: samples_pb2.SampleColumns, reading: BatchReading = STANDARD_READING
) -> SampleColumns:
    """Readings of one series from their message."""
    return SampleColumns(
        series_index=message.series_index,
        time_ns=reading.running_sums(message.time_ns_deltas),
        value=reading.running_sums(message.value_deltas),
        read_duration_ns=reading.plain(message.read_duration_ns),
    )


def _is_within_64_bits(values: list[int]) -> bool:
    return not values or (min(values) >= SMALLEST_INT64 and max(values) <= LARGEST_INT64)


def _wrapped(value: int) -> int:
    return (value - SMALLEST_INT64) % _MODULUS + SMALLEST_INT64
