"""Converters of `EstimateCollective` in `linkbound/estimator/v1/estimator_service.proto`."""

from __future__ import annotations

from linkbound.convert.calibration import (
    calibration_from_proto,
    calibration_to_proto,
    collective_table_from_proto,
    collective_table_to_proto,
)
from linkbound.convert.collective import collective_kind_from_proto, collective_kind_to_proto
from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto, resolved_link_from_proto, resolved_link_to_proto
from linkbound.convert.values import EnumConverter, each, maybe
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveProtocol
from linkbound.domain.collective_estimate import CollectiveChoice, CollectiveEstimate, CollectiveRequest
from linkbound.domain.names import CALIBRATIONS, resource_id, resource_name
from linkbound.estimator.v1 import estimator_service_pb2

_ALGORITHM = EnumConverter(CollectiveAlgorithm, estimator_service_pb2.CollectiveAlgorithm)
_PROTOCOL = EnumConverter(CollectiveProtocol, estimator_service_pb2.CollectiveProtocol)

collective_algorithm_to_proto = _ALGORITHM.to_proto
collective_algorithm_from_proto = _ALGORITHM.from_proto
collective_protocol_to_proto = _PROTOCOL.to_proto
collective_protocol_from_proto = _PROTOCOL.from_proto


def collective_request_to_proto(value: CollectiveRequest) -> estimator_service_pb2.EstimateCollectiveRequest:
    """A question about one collective as a message."""
    return estimator_service_pb2.EstimateCollectiveRequest(
        kind=collective_kind_to_proto(value.kind),
        rank_count=value.rank_count,
        message_bytes=value.message_bytes,
        link=link_to_proto(value.link),
        ranks_per_node=value.ranks_per_node,
        inner_link=maybe(link_to_proto, value.inner_link),
        algorithm=collective_algorithm_to_proto(value.algorithm),
        calibration=resource_name(CALIBRATIONS, value.calibration) if value.calibration else "",
        collective_table=maybe(collective_table_to_proto, value.collective_table),
    )


def collective_request_from_proto(message: estimator_service_pb2.EstimateCollectiveRequest) -> CollectiveRequest:
    """A question about one collective from its message. Raises InvalidArgumentError with every violation."""
    return CollectiveRequest(
        kind=collective_kind_from_proto(message.kind),
        rank_count=message.rank_count,
        message_bytes=message.message_bytes if message.HasField("message_bytes") else None,
        link=link_from_proto(message.link),
        ranks_per_node=message.ranks_per_node if message.HasField("ranks_per_node") else 1,
        inner_link=link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
        algorithm=collective_algorithm_from_proto(message.algorithm),
        calibration=resource_id(CALIBRATIONS, message.calibration),
        collective_table=(
            collective_table_from_proto(message.collective_table) if message.HasField("collective_table") else None
        ),
    )


def collective_choice_to_proto(value: CollectiveChoice) -> estimator_service_pb2.CollectiveChoice:
    """One way to run a collective as a message."""
    return estimator_service_pb2.CollectiveChoice(
        algorithm=collective_algorithm_to_proto(value.algorithm),
        protocol=collective_protocol_to_proto(value.protocol),
        fixed_seconds=value.fixed_seconds,
        seconds=value.seconds,
        wire_bytes_per_rank=value.wire_bytes_per_rank,
        chosen=value.chosen,
    )


def collective_choice_from_proto(message: estimator_service_pb2.CollectiveChoice) -> CollectiveChoice:
    """One way to run a collective from its message."""
    return CollectiveChoice(
        algorithm=collective_algorithm_from_proto(message.algorithm),
        protocol=collective_protocol_from_proto(message.protocol),
        fixed_seconds=message.fixed_seconds,
        seconds=message.seconds,
        wire_bytes_per_rank=message.wire_bytes_per_rank,
        chosen=message.chosen,
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
        choices=each(collective_choice_to_proto, value.choices),
        calibration=maybe(calibration_to_proto, value.calibration),
        inner_sent_bytes_per_rank=value.inner_sent_bytes_per_rank,
        inner_link=maybe(resolved_link_to_proto, value.inner_link),
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
        choices=each(collective_choice_from_proto, message.choices),
        calibration=calibration_from_proto(message.calibration) if message.HasField("calibration") else None,
        inner_sent_bytes_per_rank=(
            message.inner_sent_bytes_per_rank if message.HasField("inner_sent_bytes_per_rank") else None
        ),
        inner_link=resolved_link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
    )
