"""Converters of `ProjectTpSizes` in `linkbound/estimator/v1/estimator_service.proto`."""

from __future__ import annotations

from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto
from linkbound.convert.memory import memory_need_from_proto, memory_need_to_proto
from linkbound.convert.values import each, maybe
from linkbound.convert.workload import prefill_workload_from_proto, prefill_workload_to_proto
from linkbound.domain.names import HARDWARE, resource_id, resource_name
from linkbound.domain.tp_projection import TpProjection, TpProjectionRequest, TpSizeProjection
from linkbound.estimator.v1 import estimator_service_pb2


def tp_projection_request_to_proto(value: TpProjectionRequest) -> estimator_service_pb2.ProjectTpSizesRequest:
    """A question about tensor-parallel sizes as a message."""
    return estimator_service_pb2.ProjectTpSizesRequest(
        workload=prefill_workload_to_proto(value.workload),
        baseline_ttft_seconds=value.baseline_ttft_seconds,
        link=link_to_proto(value.link),
        to_link=link_to_proto(value.to_link),
        tensor_parallel_sizes=value.tensor_parallel_sizes,
        hardware=resource_name(HARDWARE, value.hardware) if value.hardware else "",
    )


def tp_projection_request_from_proto(message: estimator_service_pb2.ProjectTpSizesRequest) -> TpProjectionRequest:
    """A question about tensor-parallel sizes from its message. Raises InvalidArgumentError with every violation."""
    return TpProjectionRequest(
        workload=prefill_workload_from_proto(message.workload),
        baseline_ttft_seconds=message.baseline_ttft_seconds,
        link=link_from_proto(message.link),
        to_link=link_from_proto(message.to_link),
        tensor_parallel_sizes=tuple(message.tensor_parallel_sizes),
        hardware=resource_id(HARDWARE, message.hardware),
    )


def tp_size_projection_to_proto(value: TpSizeProjection) -> estimator_service_pb2.TpProjection:
    """One tensor-parallel size as a message."""
    return estimator_service_pb2.TpProjection(
        tensor_parallel_size=value.tensor_parallel_size,
        sent_bytes_per_rank=value.sent_bytes_per_rank,
        sent_bytes_ratio=value.sent_bytes_ratio,
        compute_ratio=value.compute_ratio,
        ttft_seconds=estimate_to_proto(value.ttft_seconds),
        extra_ttft_seconds=estimate_to_proto(value.extra_ttft_seconds),
        extra_ttft_fraction=estimate_to_proto(value.extra_ttft_fraction),
        feasible=value.feasible,
        reasons=value.reasons,
        memory=maybe(memory_need_to_proto, value.memory),
    )


def tp_size_projection_from_proto(message: estimator_service_pb2.TpProjection) -> TpSizeProjection:
    """One tensor-parallel size from its message."""
    return TpSizeProjection(
        tensor_parallel_size=message.tensor_parallel_size,
        sent_bytes_per_rank=message.sent_bytes_per_rank,
        sent_bytes_ratio=message.sent_bytes_ratio if message.HasField("sent_bytes_ratio") else None,
        compute_ratio=message.compute_ratio,
        ttft_seconds=estimate_from_proto(message.ttft_seconds),
        extra_ttft_seconds=estimate_from_proto(message.extra_ttft_seconds),
        extra_ttft_fraction=estimate_from_proto(message.extra_ttft_fraction),
        feasible=message.feasible if message.HasField("feasible") else None,
        reasons=tuple(message.reasons),
        memory=memory_need_from_proto(message.memory) if message.HasField("memory") else None,
    )


def tp_projection_to_proto(value: TpProjection) -> estimator_service_pb2.ProjectTpSizesResponse:
    """The projections as a message."""
    return estimator_service_pb2.ProjectTpSizesResponse(
        projections=each(tp_size_projection_to_proto, value.projections),
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


def tp_projection_from_proto(message: estimator_service_pb2.ProjectTpSizesResponse) -> TpProjection:
    """The projections from their message."""
    return TpProjection(
        projections=each(tp_size_projection_from_proto, message.projections),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
