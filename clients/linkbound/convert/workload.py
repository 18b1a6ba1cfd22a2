"""Converters of `linkbound/estimator/v1/workload.proto`."""

from __future__ import annotations

from linkbound.domain.names import HARDWARE, MODELS, resource_id, resource_name
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from linkbound.estimator.v1 import workload_pb2

_DEFAULT_REQUEST_COUNT = 1


def prefill_workload_to_proto(value: PrefillWorkload) -> workload_pb2.PrefillWorkload:
    """Prompts as a message."""
    return workload_pb2.PrefillWorkload(
        model=resource_name(MODELS, value.model),
        tensor_parallel_size=value.tensor_parallel_size,
        prompt_tokens=value.prompt_tokens,
        request_count=value.request_count,
        max_num_batched_tokens=value.max_num_batched_tokens,
    )


def prefill_workload_from_proto(message: workload_pb2.PrefillWorkload) -> PrefillWorkload:
    """Prompts from their message."""
    return PrefillWorkload(
        model=resource_id(MODELS, message.model),
        tensor_parallel_size=message.tensor_parallel_size,
        prompt_tokens=message.prompt_tokens,
        request_count=message.request_count if message.HasField("request_count") else _DEFAULT_REQUEST_COUNT,
        max_num_batched_tokens=(message.max_num_batched_tokens if message.HasField("max_num_batched_tokens") else None),
    )


def decode_workload_to_proto(value: DecodeWorkload) -> workload_pb2.DecodeWorkload:
    """Generation as a message."""
    return workload_pb2.DecodeWorkload(
        model=resource_name(MODELS, value.model),
        tensor_parallel_size=value.tensor_parallel_size,
        request_count=value.request_count,
        draft_token_count=value.draft_token_count,
        acceptance_length_tokens=value.acceptance_length_tokens,
        hardware=resource_name(HARDWARE, value.hardware) if value.hardware else "",
    )


def decode_workload_from_proto(message: workload_pb2.DecodeWorkload) -> DecodeWorkload:
    """Generation from its message."""
    return DecodeWorkload(
        model=resource_id(MODELS, message.model),
        tensor_parallel_size=message.tensor_parallel_size,
        request_count=message.request_count if message.HasField("request_count") else _DEFAULT_REQUEST_COUNT,
        draft_token_count=message.draft_token_count,
        acceptance_length_tokens=(
            message.acceptance_length_tokens if message.HasField("acceptance_length_tokens") else None
        ),
        hardware=resource_id(HARDWARE, message.hardware),
    )
