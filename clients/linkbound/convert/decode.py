"""Converters of `EstimateDecode` in `linkbound/estimator/v1/estimator_service.proto`."""

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
from linkbound.convert.workload import decode_workload_from_proto, decode_workload_to_proto
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.layout import LARGEST_RANK_LINK_COUNT
from linkbound.domain.names import CALIBRATIONS, MODELS, resource_id, resource_name
from linkbound.estimator.v1 import estimator_service_pb2


def decode_request_to_proto(value: DecodeRequest) -> estimator_service_pb2.EstimateDecodeRequest:
    """A decode question as a message."""
    return estimator_service_pb2.EstimateDecodeRequest(
        workload=decode_workload_to_proto(value.workload),
        link=link_to_proto(value.link),
        to_link=maybe(link_to_proto, value.to_link),
        inner_link=maybe(link_to_proto, value.inner_link),
        rank_links=each(link_to_proto, value.rank_links),
        calibration=resource_name(CALIBRATIONS, value.calibration) if value.calibration else "",
        collective_table=maybe(collective_table_to_proto, value.collective_table),
    )


def decode_request_from_proto(message: estimator_service_pb2.EstimateDecodeRequest) -> DecodeRequest:
    """A decode question from its message. Raises InvalidArgumentError with every violation."""
    return DecodeRequest(
        workload=decode_workload_from_proto(message.workload),
        link=link_from_proto(message.link),
        to_link=link_from_proto(message.to_link) if message.HasField("to_link") else None,
        inner_link=link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
        rank_links=each_up_to(LARGEST_RANK_LINK_COUNT, link_from_proto, message.rank_links),
        calibration=resource_id(CALIBRATIONS, message.calibration),
        collective_table=(
            collective_table_from_proto(message.collective_table) if message.HasField("collective_table") else None
        ),
    )


def decode_estimate_to_proto(value: DecodeEstimate) -> estimator_service_pb2.EstimateDecodeResponse:
    """A decode answer as a message."""
    message = estimator_service_pb2.EstimateDecodeResponse(
        model=resource_name(MODELS, value.model),
        tensor_parallel_size=value.tensor_parallel_size,
        request_count=value.request_count,
        rows_per_pass=value.rows_per_pass,
        all_reduce_count=value.all_reduce_count,
        message_bytes_per_all_reduce=value.message_bytes_per_all_reduce,
        sent_bytes_per_all_reduce=value.sent_bytes_per_all_reduce,
        logits_gather_bytes_per_rank=value.logits_gather_bytes_per_rank,
        sent_bytes_per_pass=value.sent_bytes_per_pass,
        send_seconds_per_all_reduce=value.send_seconds_per_all_reduce,
        active_weight_bytes_per_rank=value.active_weight_bytes_per_rank,
        cache_bytes_read_per_rank=value.cache_bytes_read_per_rank,
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )
    write_resolved_link(value.link, message.link)
    if value.to_link is not None:
        write_resolved_link(value.to_link, message.to_link)
    if value.inner_link is not None:
        write_resolved_link(value.inner_link, message.inner_link)
    write_estimate(value.network_seconds, message.network_seconds)
    if value.memory_seconds is not None:
        write_estimate(value.memory_seconds, message.memory_seconds)
    write_estimate(value.pass_seconds, message.pass_seconds)
    write_estimate(value.traffic_bits_per_second, message.traffic_bits_per_second)
    if value.extra_pass_seconds is not None:
        write_estimate(value.extra_pass_seconds, message.extra_pass_seconds)
    if value.extra_pass_fraction is not None:
        write_estimate(value.extra_pass_fraction, message.extra_pass_fraction)
    if value.output_tokens_per_second is not None:
        write_estimate(value.output_tokens_per_second, message.output_tokens_per_second)
    write_parallel_layout(value.layout, message.layout)
    for one in value.traffic:
        write_collective_traffic(one, message.traffic.add())
    return message


def decode_estimate_from_proto(message: estimator_service_pb2.EstimateDecodeResponse) -> DecodeEstimate:
    """A decode answer from its message."""
    return DecodeEstimate(
        model=resource_id(MODELS, message.model),
        tensor_parallel_size=message.tensor_parallel_size,
        request_count=message.request_count,
        rows_per_pass=message.rows_per_pass,
        all_reduce_count=message.all_reduce_count,
        message_bytes_per_all_reduce=message.message_bytes_per_all_reduce,
        sent_bytes_per_all_reduce=message.sent_bytes_per_all_reduce,
        logits_gather_bytes_per_rank=message.logits_gather_bytes_per_rank,
        sent_bytes_per_pass=message.sent_bytes_per_pass,
        send_seconds_per_all_reduce=message.send_seconds_per_all_reduce,
        active_weight_bytes_per_rank=(
            message.active_weight_bytes_per_rank if message.HasField("active_weight_bytes_per_rank") else None
        ),
        cache_bytes_read_per_rank=(
            message.cache_bytes_read_per_rank if message.HasField("cache_bytes_read_per_rank") else None
        ),
        network_seconds=estimate_from_proto(message.network_seconds),
        memory_seconds=estimate_from_proto(message.memory_seconds) if message.HasField("memory_seconds") else None,
        pass_seconds=estimate_from_proto(message.pass_seconds),
        traffic_bits_per_second=estimate_from_proto(message.traffic_bits_per_second),
        extra_pass_seconds=(
            estimate_from_proto(message.extra_pass_seconds) if message.HasField("extra_pass_seconds") else None
        ),
        extra_pass_fraction=(
            estimate_from_proto(message.extra_pass_fraction) if message.HasField("extra_pass_fraction") else None
        ),
        output_tokens_per_second=(
            estimate_from_proto(message.output_tokens_per_second)
            if message.HasField("output_tokens_per_second")
            else None
        ),
        link=resolved_link_from_proto(message.link),
        to_link=resolved_link_from_proto(message.to_link) if message.HasField("to_link") else None,
        layout=parallel_layout_from_proto(message.layout),
        inner_link=resolved_link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
        traffic=each(collective_traffic_from_proto, message.traffic),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
