"""Converters of `CompareLayouts` in `linkbound/estimator/v1/layout.proto`."""

from __future__ import annotations

from linkbound.convert.calibration import collective_table_from_proto, collective_table_to_proto
from linkbound.convert.cluster_workload import cluster_workload_from_proto, cluster_workload_to_proto
from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.layout import parallel_layout_from_proto, parallel_layout_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto
from linkbound.convert.memory import memory_need_from_proto, memory_need_to_proto
from linkbound.convert.values import each, maybe
from linkbound.domain.layout_comparison import (
    DEFAULT_OUTPUT_TOKENS,
    LayoutChoice,
    LayoutComparison,
    LayoutComparisonRequest,
    LayoutEstimate,
)
from linkbound.domain.names import CALIBRATIONS, resource_id, resource_name
from linkbound.estimator.v1 import layout_pb2


def layout_comparison_request_to_proto(value: LayoutComparisonRequest) -> layout_pb2.CompareLayoutsRequest:
    """A question about layouts as a message."""
    return layout_pb2.CompareLayoutsRequest(
        workload=cluster_workload_to_proto(value.workload),
        link=link_to_proto(value.link),
        inner_link=maybe(link_to_proto, value.inner_link),
        calibration=resource_name(CALIBRATIONS, value.calibration) if value.calibration else "",
        collective_table=maybe(collective_table_to_proto, value.collective_table),
        draft_token_count=value.draft_token_count,
        output_tokens=value.output_tokens,
    )


def layout_comparison_request_from_proto(message: layout_pb2.CompareLayoutsRequest) -> LayoutComparisonRequest:
    """A question about layouts from its message. Raises InvalidArgumentError with every violation."""
    return LayoutComparisonRequest(
        workload=cluster_workload_from_proto(message.workload),
        link=link_from_proto(message.link),
        inner_link=link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
        calibration=resource_id(CALIBRATIONS, message.calibration),
        collective_table=(
            collective_table_from_proto(message.collective_table) if message.HasField("collective_table") else None
        ),
        draft_token_count=message.draft_token_count,
        output_tokens=message.output_tokens if message.HasField("output_tokens") else DEFAULT_OUTPUT_TOKENS,
    )


def layout_estimate_to_proto(value: LayoutEstimate) -> layout_pb2.LayoutEstimate:
    """One layout as a message; its sizes stand in it twice, for those who look for these alone."""
    return layout_pb2.LayoutEstimate(
        tensor_parallel_size=value.layout.tensor_parallel_size,
        pipeline_parallel_size=value.layout.pipeline_parallel_size,
        layout=parallel_layout_to_proto(value.layout),
        sent_bytes_per_rank=value.sent_bytes_per_rank,
        inner_sent_bytes_per_rank=value.inner_sent_bytes_per_rank,
        network_seconds=estimate_to_proto(value.network_seconds),
        single_network_seconds=estimate_to_proto(value.single_network_seconds),
        pass_seconds=estimate_to_proto(value.pass_seconds),
        bubble_fraction=value.bubble_fraction,
        passes_in_flight=value.passes_in_flight,
        memory=maybe(memory_need_to_proto, value.memory),
        feasible=value.feasible,
        reasons=value.reasons,
        single_pass_seconds=estimate_to_proto(value.single_pass_seconds),
    )


def layout_estimate_from_proto(message: layout_pb2.LayoutEstimate) -> LayoutEstimate:
    """One layout from its message."""
    return LayoutEstimate(
        layout=parallel_layout_from_proto(message.layout),
        sent_bytes_per_rank=message.sent_bytes_per_rank,
        inner_sent_bytes_per_rank=message.inner_sent_bytes_per_rank,
        network_seconds=estimate_from_proto(message.network_seconds),
        single_network_seconds=estimate_from_proto(message.single_network_seconds),
        pass_seconds=estimate_from_proto(message.pass_seconds),
        single_pass_seconds=estimate_from_proto(message.single_pass_seconds),
        bubble_fraction=message.bubble_fraction,
        passes_in_flight=message.passes_in_flight,
        memory=memory_need_from_proto(message.memory) if message.HasField("memory") else None,
        feasible=message.feasible if message.HasField("feasible") else None,
        reasons=tuple(message.reasons),
    )


def layout_choice_to_proto(value: LayoutChoice) -> layout_pb2.LayoutChoice:
    """A choice among layouts as a message."""
    return layout_pb2.LayoutChoice(index=value.index, reasons=value.reasons, undecided_indices=value.undecided_indices)


def layout_choice_from_proto(message: layout_pb2.LayoutChoice) -> LayoutChoice:
    """A choice among layouts from its message."""
    return LayoutChoice(
        index=message.index, reasons=tuple(message.reasons), undecided_indices=tuple(message.undecided_indices)
    )


def layout_comparison_to_proto(value: LayoutComparison) -> layout_pb2.CompareLayoutsResponse:
    """A comparison of layouts as a message."""
    return layout_pb2.CompareLayoutsResponse(
        layouts=each(layout_estimate_to_proto, value.layouts),
        single_stream=maybe(layout_choice_to_proto, value.single_stream),
        batched=maybe(layout_choice_to_proto, value.batched),
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


def layout_comparison_from_proto(message: layout_pb2.CompareLayoutsResponse) -> LayoutComparison:
    """A comparison of layouts from its message."""
    return LayoutComparison(
        layouts=each(layout_estimate_from_proto, message.layouts),
        single_stream=layout_choice_from_proto(message.single_stream) if message.HasField("single_stream") else None,
        batched=layout_choice_from_proto(message.batched) if message.HasField("batched") else None,
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
