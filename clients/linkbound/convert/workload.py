"""Converters of `linkbound/estimator/v1/workload.proto`."""

from __future__ import annotations

from linkbound.convert.layout import expert_parallelism_from_proto, expert_parallelism_to_proto
from linkbound.domain.names import HARDWARE, MODELS, resource_id, resource_name
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from linkbound.estimator.v1 import workload_pb2

_DEFAULT_REQUEST_COUNT = 1


def prefill_workload_to_proto(value: PrefillWorkload) -> workload_pb2.PrefillWorkload:
    """Prompts as a message."""
    return workload_pb2.PrefillWorkload(
        model=resource_name(MODELS, value.model) if value.model else "",
        tensor_parallel_size=value.tensor_parallel_size,
        prompt_tokens=value.prompt_tokens,
        request_count=value.request_count,
        max_num_batched_tokens=value.max_num_batched_tokens,
        pipeline_parallel_size=value.pipeline_parallel_size,
        data_parallel_size=value.data_parallel_size,
        expert_parallelism=expert_parallelism_to_proto(value.expert_parallelism),
        sequence_parallel=value.sequence_parallel,
        ranks_per_node=value.ranks_per_node,
        model_config_json=value.model_config_json,
    )


def prefill_workload_from_proto(message: workload_pb2.PrefillWorkload) -> PrefillWorkload:
    """Prompts from their message."""
    return PrefillWorkload(
        model=resource_id(MODELS, message.model),
        tensor_parallel_size=message.tensor_parallel_size,
        prompt_tokens=message.prompt_tokens,
        request_count=message.request_count if message.HasField("request_count") else _DEFAULT_REQUEST_COUNT,
        max_num_batched_tokens=(message.max_num_batched_tokens if message.HasField("max_num_batched_tokens") else None),
        pipeline_parallel_size=(message.pipeline_parallel_size if message.HasField("pipeline_parallel_size") else 1),
        data_parallel_size=message.data_parallel_size if message.HasField("data_parallel_size") else 1,
        expert_parallelism=expert_parallelism_from_proto(message.expert_parallelism),
        sequence_parallel=message.sequence_parallel,
        ranks_per_node=message.ranks_per_node if message.HasField("ranks_per_node") else 1,
        model_config_json=message.model_config_json,
    )


def decode_workload_to_proto(value: DecodeWorkload) -> workload_pb2.DecodeWorkload:
    """Generation as a message."""
    return workload_pb2.DecodeWorkload(
        model=resource_name(MODELS, value.model) if value.model else "",
        tensor_parallel_size=value.tensor_parallel_size,
        request_count=value.request_count,
        draft_token_count=value.draft_token_count,
        acceptance_length_tokens=value.acceptance_length_tokens,
        hardware=resource_name(HARDWARE, value.hardware) if value.hardware else "",
        pipeline_parallel_size=value.pipeline_parallel_size,
        data_parallel_size=value.data_parallel_size,
        expert_parallelism=expert_parallelism_to_proto(value.expert_parallelism),
        sequence_parallel=value.sequence_parallel,
        ranks_per_node=value.ranks_per_node,
        model_config_json=value.model_config_json,
        context_tokens=value.context_tokens,
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
        pipeline_parallel_size=(message.pipeline_parallel_size if message.HasField("pipeline_parallel_size") else 1),
        data_parallel_size=message.data_parallel_size if message.HasField("data_parallel_size") else 1,
        expert_parallelism=expert_parallelism_from_proto(message.expert_parallelism),
        sequence_parallel=message.sequence_parallel,
        ranks_per_node=message.ranks_per_node if message.HasField("ranks_per_node") else 1,
        model_config_json=message.model_config_json,
        context_tokens=message.context_tokens if message.HasField("context_tokens") else None,
    )
