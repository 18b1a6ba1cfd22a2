"""Converters of `linkbound/types/v1/metric.proto`."""

from __future__ import annotations

from linkbound.convert.values import EnumConverter
from linkbound.domain.metric import Metric, Spread
from linkbound.types.v1 import metric_pb2

_METRIC = EnumConverter(Metric, metric_pb2.Metric)

metric_to_proto = _METRIC.to_proto
metric_from_proto = _METRIC.from_proto


def spread_to_proto(value: Spread) -> metric_pb2.Spread:
    """A measured value over rounds as a message."""
    return metric_pb2.Spread(
        mean=value.mean, minimum=value.minimum, maximum=value.maximum, round_count=value.round_count
    )


def spread_from_proto(message: metric_pb2.Spread) -> Spread:
    """A measured value over rounds from its message."""
    return Spread(
        mean=message.mean,
        minimum=message.minimum if message.HasField("minimum") else None,
        maximum=message.maximum if message.HasField("maximum") else None,
        round_count=message.round_count if message.HasField("round_count") else None,
    )
