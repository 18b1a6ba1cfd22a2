"""Converters of `EstimatePrefill` in `linkbound/estimator/v1/estimator_service.proto`."""

from __future__ import annotations

from linkbound.convert.calibration import collective_table_from_proto, collective_table_to_proto
from linkbound.convert.estimate import estimate_from_proto, write_estimate
from linkbound.convert.layout import (
    collective_traffic_from_proto,
    parallel_layout_from_proto,
    write_collective_traffic,
    write_parallel_layout,
)
from linkbound.convert.link import link_from_proto, link_to_proto, resolved_link_from_proto, write_resolved_link
from linkbound.convert.values import each, each_up_to, maybe
from linkbound.convert.workload import prefill_workload_from_proto, prefill_workload_to_proto
from linkbound.domain.layout import LARGEST_RANK_LINK_COUNT
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
        rank_links=each_up_to(LARGEST_RANK_LINK_COUNT, link_from_proto, message.rank_links),
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
    message = estimator_service_pb2.EstimatePrefillResponse(
        model=resource_name(MODELS, value.model),
        tensor_parallel_size=value.tensor_parallel_size,
        prompt_tokens=value.prompt_tokens,
        request_count=value.request_count,
        all_reduce_count=value.all_reduce_count,
        sent_bytes_per_prompt_token=value.sent_bytes_per_prompt_token,
        sent_bytes_per_rank=value.sent_bytes_per_rank,
        counter_bytes_per_rank=value.counter_bytes_per_rank,
        logits_gather_bytes_per_rank=value.logits_gather_bytes_per_rank,
        network_share_fraction=value.network_share_fraction,
        largest_pass=maybe(pass_transfers_to_proto, value.largest_pass),
        baseline_ttft_seconds=value.baseline_ttft_seconds,
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )
    write_resolved_link(value.link, message.link)
    if value.to_link is not None:
        write_resolved_link(value.to_link, message.to_link)
    if value.inner_link is not None:
        write_resolved_link(value.inner_link, message.inner_link)
    write_estimate(value.network_seconds, message.network_seconds)
    write_estimate(value.ttft_seconds, message.ttft_seconds)
    if value.extra_ttft_seconds is not None:
        write_estimate(value.extra_ttft_seconds, message.extra_ttft_seconds)
    if value.extra_ttft_fraction is not None:
        write_estimate(value.extra_ttft_fraction, message.extra_ttft_fraction)
    if value.nominal_extra_ttft_seconds is not None:
        write_estimate(value.nominal_extra_ttft_seconds, message.nominal_extra_ttft_seconds)
    write_parallel_layout(value.layout, message.layout)
    for one in value.traffic:
        write_collective_traffic(one, message.traffic.add())
    return message


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
