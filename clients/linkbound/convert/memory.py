"""Converters of `linkbound/estimator/v1/memory.proto`."""

from __future__ import annotations

from linkbound.convert.catalog_service import weight_format_source_from_proto, weight_format_source_to_proto
from linkbound.convert.layout import parallel_layout_from_proto, parallel_layout_to_proto
from linkbound.domain.memory import (
    DEFAULT_CACHE_VALUE_BYTES,
    DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION,
    DEFAULT_MAX_NUM_BATCHED_TOKENS,
    MemoryFit,
    MemoryFitRequest,
    MemoryNeed,
)
from linkbound.domain.names import HARDWARE, MODELS, resource_id, resource_name
from linkbound.estimator.v1 import memory_pb2

_DEFAULT_REQUEST_COUNT = 1


def memory_fit_request_to_proto(value: MemoryFitRequest) -> memory_pb2.CheckMemoryFitRequest:
    """A question about memory as a message."""
    return memory_pb2.CheckMemoryFitRequest(
        model=resource_name(MODELS, value.model) if value.model else "",
        model_config_json=value.model_config_json,
        layout=parallel_layout_to_proto(value.layout),
        hardware=resource_name(HARDWARE, value.hardware),
        context_tokens=value.context_tokens,
        request_count=value.request_count,
        gpu_memory_utilization_fraction=value.gpu_memory_utilization_fraction,
        cache_value_bytes=value.cache_value_bytes,
        max_num_batched_tokens=value.max_num_batched_tokens,
        weight_bits_per_parameter=value.weight_bits_per_parameter,
        draft_token_count=value.draft_token_count,
    )


def memory_fit_request_from_proto(message: memory_pb2.CheckMemoryFitRequest) -> MemoryFitRequest:
    """A question about memory from its message. Raises InvalidArgumentError with every violation."""
    has = message.HasField
    return MemoryFitRequest(
        model=resource_id(MODELS, message.model),
        model_config_json=message.model_config_json,
        layout=parallel_layout_from_proto(message.layout),
        hardware=resource_id(HARDWARE, message.hardware),
        context_tokens=message.context_tokens,
        request_count=message.request_count if has("request_count") else _DEFAULT_REQUEST_COUNT,
        gpu_memory_utilization_fraction=(
            message.gpu_memory_utilization_fraction
            if has("gpu_memory_utilization_fraction")
            else DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION
        ),
        cache_value_bytes=message.cache_value_bytes if has("cache_value_bytes") else DEFAULT_CACHE_VALUE_BYTES,
        max_num_batched_tokens=(
            message.max_num_batched_tokens if has("max_num_batched_tokens") else DEFAULT_MAX_NUM_BATCHED_TOKENS
        ),
        weight_bits_per_parameter=(message.weight_bits_per_parameter if has("weight_bits_per_parameter") else None),
        draft_token_count=message.draft_token_count,
    )


def memory_need_to_proto(value: MemoryNeed) -> memory_pb2.MemoryNeed:
    """What a rank needs as a message."""
    return memory_pb2.MemoryNeed(
        sliced_weight_bytes=value.sliced_weight_bytes,
        replicated_weight_bytes=value.replicated_weight_bytes,
        kv_cache_bytes=value.kv_cache_bytes,
        activation_bytes=value.activation_bytes,
        communication_buffer_bytes=value.communication_buffer_bytes,
        runtime_bytes=value.runtime_bytes,
        total_bytes=value.total_bytes,
        usable_bytes=value.usable_bytes,
        weight_format_source=weight_format_source_to_proto(value.weight_format_source),
    )


def memory_need_from_proto(message: memory_pb2.MemoryNeed) -> MemoryNeed:
    """What a rank needs from its message."""
    return MemoryNeed(
        sliced_weight_bytes=message.sliced_weight_bytes,
        replicated_weight_bytes=message.replicated_weight_bytes,
        kv_cache_bytes=message.kv_cache_bytes,
        activation_bytes=message.activation_bytes,
        communication_buffer_bytes=message.communication_buffer_bytes,
        runtime_bytes=message.runtime_bytes,
        total_bytes=message.total_bytes,
        usable_bytes=message.usable_bytes,
        weight_format_source=weight_format_source_from_proto(message.weight_format_source),
    )


def memory_fit_to_proto(value: MemoryFit) -> memory_pb2.CheckMemoryFitResponse:
    """Whether everything fits as a message."""
    return memory_pb2.CheckMemoryFitResponse(
        fits=value.fits,
        weight_bytes=value.weight_bytes,
        kv_cache_bytes=value.kv_cache_bytes,
        headroom_bytes=value.headroom_bytes,
        smallest_tp_that_fits=value.smallest_tp_that_fits,
        need=memory_need_to_proto(value.need),
        largest_request_count=value.largest_request_count,
        layout=parallel_layout_to_proto(value.layout),
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )


def memory_fit_from_proto(message: memory_pb2.CheckMemoryFitResponse) -> MemoryFit:
    """Whether everything fits from its message."""
    return MemoryFit(
        fits=message.fits,
        weight_bytes=message.weight_bytes,
        kv_cache_bytes=message.kv_cache_bytes,
        headroom_bytes=message.headroom_bytes,
        smallest_tp_that_fits=message.smallest_tp_that_fits if message.HasField("smallest_tp_that_fits") else None,
        need=memory_need_from_proto(message.need),
        largest_request_count=message.largest_request_count,
        layout=parallel_layout_from_proto(message.layout),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
