"""Converters of `EstimateDecode` in `linkbound/estimator/v1/estimator_service.proto`."""

from __future__ import annotations

from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto, resolved_link_from_proto, resolved_link_to_proto
from linkbound.convert.values import maybe
from linkbound.convert.workload import decode_workload_from_proto, decode_workload_to_proto
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.names import MODELS, resource_id, resource_name
from linkbound.estimator.v1 import estimator_service_pb2


def decode_request_to_proto(value: DecodeRequest) -> estimator_service_pb2.EstimateDecodeRequest:
    """A decode question as a message."""
    return estimator_service_pb2.EstimateDecodeRequest(
        workload=decode_workload_to_proto(value.workload),
        link=link_to_proto(value.link),
        to_link=maybe(link_to_proto, value.to_link),
    )


def decode_request_from_proto(message: estimator_service_pb2.EstimateDecodeRequest) -> DecodeRequest:
    """A decode question from its message. Raises InvalidArgumentError with every violation."""
    return DecodeRequest(
        workload=decode_workload_from_proto(message.workload),
        link=link_from_proto(message.link),
        to_link=link_from_proto(message.to_link) if message.HasField("to_link") else None,
    )


def decode_estimate_to_proto(value: DecodeEstimate) -> estimator_service_pb2.EstimateDecodeResponse:
    """A decode answer as a message."""
    return estimator_service_pb2.EstimateDecodeResponse(
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
        pass_seconds=estimate_to_proto(value.pass_seconds),
        traffic_bits_per_second=estimate_to_proto(value.traffic_bits_per_second),
        extra_pass_seconds=maybe(estimate_to_proto, value.extra_pass_seconds),
        output_tokens_per_second=maybe(estimate_to_proto, value.output_tokens_per_second),
        link=resolved_link_to_proto(value.link),
        to_link=maybe(resolved_link_to_proto, value.to_link),
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


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
        pass_seconds=estimate_from_proto(message.pass_seconds),
        traffic_bits_per_second=estimate_from_proto(message.traffic_bits_per_second),
        extra_pass_seconds=(
            estimate_from_proto(message.extra_pass_seconds) if message.HasField("extra_pass_seconds") else None
        ),
        output_tokens_per_second=(
            estimate_from_proto(message.output_tokens_per_second)
            if message.HasField("output_tokens_per_second")
            else None
        ),
        link=resolved_link_from_proto(message.link),
        to_link=resolved_link_from_proto(message.to_link) if message.HasField("to_link") else None,
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
