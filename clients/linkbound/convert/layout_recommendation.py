"""Converters of `RecommendLayout` in `linkbound/estimator/v1/layout.proto`."""

from __future__ import annotations

from linkbound.convert.calibration import collective_table_from_proto, collective_table_to_proto
from linkbound.convert.cluster_workload import cluster_workload_from_proto, cluster_workload_to_proto
from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.layout import parallel_layout_from_proto, parallel_layout_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto
from linkbound.convert.memory import memory_need_from_proto, memory_need_to_proto
from linkbound.convert.values import each, maybe
from linkbound.domain.layout_recommendation import (
    LayoutOption,
    LayoutRecommendation,
    LayoutRecommendationRequest,
)
from linkbound.domain.names import CALIBRATIONS, resource_id, resource_name
from linkbound.estimator.v1 import layout_pb2


def layout_recommendation_request_to_proto(
    value: LayoutRecommendationRequest,
) -> layout_pb2.RecommendLayoutRequest:
    """A question for a recommendation as a message."""
    return layout_pb2.RecommendLayoutRequest(
        workload=cluster_workload_to_proto(value.workload),
        link=link_to_proto(value.link),
        inner_link=maybe(link_to_proto, value.inner_link),
        calibration=resource_name(CALIBRATIONS, value.calibration) if value.calibration else "",
        collective_table=maybe(collective_table_to_proto, value.collective_table),
        reference_link=link_to_proto(value.reference_link),
        baseline_tensor_parallel_size=value.baseline_tensor_parallel_size,
        baseline_ttft_seconds=value.baseline_ttft_seconds,
    )


def layout_recommendation_request_from_proto(
    message: layout_pb2.RecommendLayoutRequest,
) -> LayoutRecommendationRequest:
    """A question for a recommendation from its message. Raises InvalidArgumentError with every violation."""
    return LayoutRecommendationRequest(
        workload=cluster_workload_from_proto(message.workload),
        link=link_from_proto(message.link),
        inner_link=link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
        calibration=resource_id(CALIBRATIONS, message.calibration),
        collective_table=(
            collective_table_from_proto(message.collective_table) if message.HasField("collective_table") else None
        ),
        reference_link=link_from_proto(message.reference_link),
        baseline_tensor_parallel_size=message.baseline_tensor_parallel_size,
        baseline_ttft_seconds=message.baseline_ttft_seconds if message.HasField("baseline_ttft_seconds") else None,
    )


def layout_option_to_proto(value: LayoutOption) -> layout_pb2.LayoutOption:
    """One way to fill the nodes as a message."""
    return layout_pb2.LayoutOption(
        instance_count=value.instance_count,
        idle_node_count=value.idle_node_count,
        layout=parallel_layout_to_proto(value.layout),
        sent_bytes_per_rank=value.sent_bytes_per_rank,
        extra_ttft_seconds=estimate_to_proto(value.extra_ttft_seconds),
        extra_ttft_fraction=maybe(estimate_to_proto, value.extra_ttft_fraction),
        ttft_seconds=maybe(estimate_to_proto, value.ttft_seconds),
        last_ttft_seconds=maybe(estimate_to_proto, value.last_ttft_seconds),
        memory=maybe(memory_need_to_proto, value.memory),
        feasible=value.feasible,
        reasons=value.reasons,
    )


def layout_option_from_proto(message: layout_pb2.LayoutOption) -> LayoutOption:
    """One way to fill the nodes from its message."""
    return LayoutOption(
        instance_count=message.instance_count,
        idle_node_count=message.idle_node_count,
        layout=parallel_layout_from_proto(message.layout),
        sent_bytes_per_rank=message.sent_bytes_per_rank,
        extra_ttft_seconds=estimate_from_proto(message.extra_ttft_seconds),
        extra_ttft_fraction=(
            estimate_from_proto(message.extra_ttft_fraction) if message.HasField("extra_ttft_fraction") else None
        ),
        ttft_seconds=estimate_from_proto(message.ttft_seconds) if message.HasField("ttft_seconds") else None,
        last_ttft_seconds=(
            estimate_from_proto(message.last_ttft_seconds) if message.HasField("last_ttft_seconds") else None
        ),
        memory=memory_need_from_proto(message.memory) if message.HasField("memory") else None,
        feasible=message.feasible if message.HasField("feasible") else None,
        reasons=tuple(message.reasons),
    )


def layout_recommendation_to_proto(value: LayoutRecommendation) -> layout_pb2.RecommendLayoutResponse:
    """A recommendation as a message."""
    return layout_pb2.RecommendLayoutResponse(
        options=each(layout_option_to_proto, value.options),
        reasons=value.reasons,
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


def layout_recommendation_from_proto(message: layout_pb2.RecommendLayoutResponse) -> LayoutRecommendation:
    """A recommendation from its message."""
    return LayoutRecommendation(
        options=each(layout_option_from_proto, message.options),
        reasons=tuple(message.reasons),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
