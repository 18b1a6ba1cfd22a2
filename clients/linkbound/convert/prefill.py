"""Converters of `EstimatePrefill` in `linkbound/estimator/v1/estimator_service.proto`."""

from __future__ import annotations

from linkbound.convert.calibration import collective_table_from_proto, collective_table_to_proto
from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.layout import (
    collective_traffic_from_proto,
    collective_traffic_to_proto,
    parallel_layout_from_proto,
    parallel_layout_to_proto,
)
from linkbound.convert.link import link_from_proto, link_to_proto, resolved_link_from_proto, resolved_link_to_proto
from linkbound.convert.values import each, maybe
from linkbound.convert.workload import prefill_workload_from_proto, prefill_workload_to_proto
from linkbound.domain.names import CALIBRATIONS, MODELS, resource_id, resource_name
from linkbound.domain.prefill import PassTransfers, PrefillEstimate, PrefillRequest
from linkbound.estimator.v1 import estimator_service_pb2


def prefill_request_to_proto(value: PrefillRequest) -> estimator_service_pb2.EstimatePrefillRequest:
    """A prefill question as a message."""
    return estimator_service_pb2.EstimatePrefillRequest(
        workload=prefill_workload_to_proto(value.workload),
        link=link_to_proto(value.link),
        to_link=maybe(link_to_proto, value.to_link),
        baseline_ttft_seconds=value.baseline_ttft_seconds,
        inner_link=maybe(link_to_proto, value.inner_link),
        rank_links=each(link_to_proto, value.rank_links),
        calibration=resource_name(CALIBRATIONS, value.calibration) if value.calibration else "",
        collective_table=maybe(collective_table_to_proto, value.collective_table),
    )


def prefill_request_from_proto(message: estimator_service_pb2.EstimatePrefillRequest) -> PrefillRequest:
    """A prefill question from its message. Raises InvalidArgumentError with every violation."""
    return PrefillRequest(
        workload=prefill_workload_from_proto(message.workload),
        link=link_from_proto(message.link),
        to_link=link_from_proto(message.to_link) if message.HasField("to_link") else None,
        baseline_ttft_seconds=message.baseline_ttft_seconds if message.HasField("baseline_ttft_seconds") else None,
        inner_link=link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
        rank_links=each(link_from_proto, message.rank_links),
        calibration=resource_id(CALIBRATIONS, message.calibration),
        collective_table=(
            collective_table_from_proto(message.collective_table) if message.HasField("collective_table") else None
        ),
    )


def pass_transfers_to_proto(value: PassTransfers) -> estimator_service_pb2.PassTransfers:
    """What one pass puts on the network, as a message."""
    return estimator_service_pb2.PassTransfers(
        tokens=value.tokens,
        message_bytes_per_all_reduce=value.message_bytes_per_all_reduce,
        sent_bytes_per_all_reduce=value.sent_bytes_per_all_reduce,
        ring_step_count=value.ring_step_count,
        sent_bytes_per_ring_step=value.sent_bytes_per_ring_step,
        send_seconds_per_all_reduce=value.send_seconds_per_all_reduce,
    )


def pass_transfers_from_proto(message: estimator_service_pb2.PassTransfers) -> PassTransfers:
    """What one pass puts on the network, from its message."""
    return PassTransfers(
        tokens=message.tokens,
        message_bytes_per_all_reduce=message.message_bytes_per_all_reduce,
        sent_bytes_per_all_reduce=message.sent_bytes_per_all_reduce,
        ring_step_count=message.ring_step_count,
        sent_bytes_per_ring_step=message.sent_bytes_per_ring_step,
        send_seconds_per_all_reduce=message.send_seconds_per_all_reduce,
    )


def prefill_estimate_to_proto(value: PrefillEstimate) -> estimator_service_pb2.EstimatePrefillResponse:
    """A prefill answer as a message."""
    return estimator_service_pb2.EstimatePrefillResponse(
        model=resource_name(MODELS, value.model),
        tensor_parallel_size=value.tensor_parallel_size,
        prompt_tokens=value.prompt_tokens,
        request_count=value.request_count,
        all_reduce_count=value.all_reduce_count,
        sent_bytes_per_prompt_token=value.sent_bytes_per_prompt_token,
        sent_bytes_per_rank=value.sent_bytes_per_rank,
        counter_bytes_per_rank=value.counter_bytes_per_rank,
        logits_gather_bytes_per_rank=value.logits_gather_bytes_per_rank,
        link=resolved_link_to_proto(value.link),
        to_link=maybe(resolved_link_to_proto, value.to_link),
        network_seconds=estimate_to_proto(value.network_seconds),
        ttft_seconds=estimate_to_proto(value.ttft_seconds),
        extra_ttft_seconds=maybe(estimate_to_proto, value.extra_ttft_seconds),
        extra_ttft_fraction=maybe(estimate_to_proto, value.extra_ttft_fraction),
        network_share_fraction=value.network_share_fraction,
        nominal_extra_ttft_seconds=maybe(estimate_to_proto, value.nominal_extra_ttft_seconds),
        largest_pass=maybe(pass_transfers_to_proto, value.largest_pass),
        baseline_ttft_seconds=value.baseline_ttft_seconds,
        layout=parallel_layout_to_proto(value.layout),
        inner_link=maybe(resolved_link_to_proto, value.inner_link),
        traffic=each(collective_traffic_to_proto, value.traffic),
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


def prefill_estimate_from_proto(message: estimator_service_pb2.EstimatePrefillResponse) -> PrefillEstimate:
    """A prefill answer from its message."""
    return PrefillEstimate(
        model=resource_id(MODELS, message.model),
        tensor_parallel_size=message.tensor_parallel_size,
        prompt_tokens=message.prompt_tokens,
        request_count=message.request_count,
        all_reduce_count=message.all_reduce_count,
        sent_bytes_per_prompt_token=message.sent_bytes_per_prompt_token,
        sent_bytes_per_rank=message.sent_bytes_per_rank,
        counter_bytes_per_rank=message.counter_bytes_per_rank,
        logits_gather_bytes_per_rank=message.logits_gather_bytes_per_rank,
        link=resolved_link_from_proto(message.link),
        to_link=resolved_link_from_proto(message.to_link) if message.HasField("to_link") else None,
        network_seconds=estimate_from_proto(message.network_seconds),
        ttft_seconds=estimate_from_proto(message.ttft_seconds),
        extra_ttft_seconds=(
            estimate_from_proto(message.extra_ttft_seconds) if message.HasField("extra_ttft_seconds") else None
        ),
        extra_ttft_fraction=(
            estimate_from_proto(message.extra_ttft_fraction) if message.HasField("extra_ttft_fraction") else None
        ),
        network_share_fraction=message.network_share_fraction if message.HasField("network_share_fraction") else None,
        nominal_extra_ttft_seconds=(
            estimate_from_proto(message.nominal_extra_ttft_seconds)
            if message.HasField("nominal_extra_ttft_seconds")
            else None
        ),
        largest_pass=pass_transfers_from_proto(message.largest_pass) if message.HasField("largest_pass") else None,
        baseline_ttft_seconds=message.baseline_ttft_seconds if message.HasField("baseline_ttft_seconds") else None,
        layout=parallel_layout_from_proto(message.layout),
        inner_link=resolved_link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
        traffic=each(collective_traffic_from_proto, message.traffic),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
