"""Converters of `CompareLinks` in `linkbound/estimator/v1/estimator_service.proto`."""

from __future__ import annotations

from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto, resolved_link_from_proto, resolved_link_to_proto
from linkbound.convert.values import maybe
from linkbound.convert.workload import (
    decode_workload_from_proto,
    decode_workload_to_proto,
    prefill_workload_from_proto,
    prefill_workload_to_proto,
)
from linkbound.domain.link_comparison import EmulatedLink, EmulationResult, LinkComparison, LinkComparisonRequest
from linkbound.estimator.v1 import estimator_service_pb2


def emulated_link_to_proto(value: EmulatedLink) -> estimator_service_pb2.EmulatedLink:
    """A measurement over a stand-in link as a message."""
    return estimator_service_pb2.EmulatedLink(
        link=link_to_proto(value.link),
        ttft_seconds=value.ttft_seconds,
        counter_bytes_per_prompt_token=value.counter_bytes_per_prompt_token,
    )


def emulated_link_from_proto(message: estimator_service_pb2.EmulatedLink) -> EmulatedLink:
    """A measurement over a stand-in link from its message."""
    return EmulatedLink(
        link=link_from_proto(message.link),
        ttft_seconds=message.ttft_seconds,
        counter_bytes_per_prompt_token=(
            message.counter_bytes_per_prompt_token if message.HasField("counter_bytes_per_prompt_token") else None
        ),
    )


def link_comparison_request_to_proto(value: LinkComparisonRequest) -> estimator_service_pb2.CompareLinksRequest:
    """A question about two links as a message."""
    return estimator_service_pb2.CompareLinksRequest(
        prefill=maybe(prefill_workload_to_proto, value.prefill),
        decode=maybe(decode_workload_to_proto, value.decode),
        old_link=link_to_proto(value.old_link),
        new_link=link_to_proto(value.new_link),
        baseline_seconds=value.baseline_seconds,
        emulation=maybe(emulated_link_to_proto, value.emulation),
        inner_link=maybe(link_to_proto, value.inner_link),
    )


def link_comparison_request_from_proto(message: estimator_service_pb2.CompareLinksRequest) -> LinkComparisonRequest:
    """A question about two links from its message. Raises InvalidArgumentError with every violation."""
    return LinkComparisonRequest(
        prefill=prefill_workload_from_proto(message.prefill) if message.HasField("prefill") else None,
        decode=decode_workload_from_proto(message.decode) if message.HasField("decode") else None,
        old_link=link_from_proto(message.old_link),
        new_link=link_from_proto(message.new_link),
        baseline_seconds=message.baseline_seconds if message.HasField("baseline_seconds") else None,
        emulation=emulated_link_from_proto(message.emulation) if message.HasField("emulation") else None,
        inner_link=link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
    )


def emulation_result_to_proto(value: EmulationResult) -> estimator_service_pb2.EmulationResult:
    """A measured increase, carried over to the real link, as a message."""
    return estimator_service_pb2.EmulationResult(
        measured_extra_seconds=value.measured_extra_seconds,
        measured_extra_fraction=value.measured_extra_fraction,
        real_link_extra_seconds=estimate_to_proto(value.real_link_extra_seconds),
        real_link_extra_fraction=estimate_to_proto(value.real_link_extra_fraction),
    )


def emulation_result_from_proto(message: estimator_service_pb2.EmulationResult) -> EmulationResult:
    """A measured increase, carried over to the real link, from its message."""
    return EmulationResult(
        measured_extra_seconds=message.measured_extra_seconds,
        measured_extra_fraction=message.measured_extra_fraction,
        real_link_extra_seconds=estimate_from_proto(message.real_link_extra_seconds),
        real_link_extra_fraction=estimate_from_proto(message.real_link_extra_fraction),
    )


def link_comparison_to_proto(value: LinkComparison) -> estimator_service_pb2.CompareLinksResponse:
    """One workload over two links as a message."""
    return estimator_service_pb2.CompareLinksResponse(
        sent_bytes_per_rank=value.sent_bytes_per_rank,
        old_link=resolved_link_to_proto(value.old_link),
        new_link=resolved_link_to_proto(value.new_link),
        old_network_seconds=estimate_to_proto(value.old_network_seconds),
        new_network_seconds=estimate_to_proto(value.new_network_seconds),
        extra_seconds=estimate_to_proto(value.extra_seconds),
        extra_fraction=maybe(estimate_to_proto, value.extra_fraction),
        speedup_ratio=estimate_to_proto(value.speedup_ratio),
        emulation=maybe(emulation_result_to_proto, value.emulation),
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


def link_comparison_from_proto(message: estimator_service_pb2.CompareLinksResponse) -> LinkComparison:
    """One workload over two links from its message."""
    return LinkComparison(
        sent_bytes_per_rank=message.sent_bytes_per_rank,
        old_link=resolved_link_from_proto(message.old_link),
        new_link=resolved_link_from_proto(message.new_link),
        old_network_seconds=estimate_from_proto(message.old_network_seconds),
        new_network_seconds=estimate_from_proto(message.new_network_seconds),
        extra_seconds=estimate_from_proto(message.extra_seconds),
        extra_fraction=estimate_from_proto(message.extra_fraction) if message.HasField("extra_fraction") else None,
        speedup_ratio=estimate_from_proto(message.speedup_ratio),
        emulation=emulation_result_from_proto(message.emulation) if message.HasField("emulation") else None,
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
