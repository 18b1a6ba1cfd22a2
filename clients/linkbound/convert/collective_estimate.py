"""Converters of `EstimateCollective` in `linkbound/estimator/v1/estimator_service.proto`."""

from __future__ import annotations

from linkbound.convert.collective import collective_kind_from_proto, collective_kind_to_proto
from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto, resolved_link_from_proto, resolved_link_to_proto
from linkbound.convert.values import maybe
from linkbound.domain.collective import CollectiveEstimate, CollectiveRequest
from linkbound.estimator.v1 import estimator_service_pb2


def collective_request_to_proto(value: CollectiveRequest) -> estimator_service_pb2.EstimateCollectiveRequest:
    """A question about one collective as a message."""
    return estimator_service_pb2.EstimateCollectiveRequest(
        kind=collective_kind_to_proto(value.kind),
        rank_count=value.rank_count,
        message_bytes=value.message_bytes,
        link=link_to_proto(value.link),
    )


def collective_request_from_proto(message: estimator_service_pb2.EstimateCollectiveRequest) -> CollectiveRequest:
    """A question about one collective from its message. Raises InvalidArgumentError with every violation."""
    return CollectiveRequest(
        kind=collective_kind_from_proto(message.kind),
        rank_count=message.rank_count,
        message_bytes=message.message_bytes if message.HasField("message_bytes") else None,
        link=link_from_proto(message.link),
    )


def collective_estimate_to_proto(value: CollectiveEstimate) -> estimator_service_pb2.EstimateCollectiveResponse:
    """Bytes and bound of one collective as a message."""
    return estimator_service_pb2.EstimateCollectiveResponse(
        sent_bytes_per_rank=value.sent_bytes_per_rank,
        ring_step_count=value.ring_step_count,
        seconds=maybe(estimate_to_proto, value.seconds),
        bus_bandwidth_bytes_per_second=estimate_to_proto(value.bus_bandwidth_bytes_per_second),
        algorithm_bandwidth_bytes_per_second=estimate_to_proto(value.algorithm_bandwidth_bytes_per_second),
        link=resolved_link_to_proto(value.link),
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


def collective_estimate_from_proto(message: estimator_service_pb2.EstimateCollectiveResponse) -> CollectiveEstimate:
    """Bytes and bound of one collective from its message."""
    return CollectiveEstimate(
        sent_bytes_per_rank=message.sent_bytes_per_rank if message.HasField("sent_bytes_per_rank") else None,
        ring_step_count=message.ring_step_count,
        seconds=estimate_from_proto(message.seconds) if message.HasField("seconds") else None,
        bus_bandwidth_bytes_per_second=estimate_from_proto(message.bus_bandwidth_bytes_per_second),
        algorithm_bandwidth_bytes_per_second=estimate_from_proto(message.algorithm_bandwidth_bytes_per_second),
        link=resolved_link_from_proto(message.link),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
