"""Everything that the fullest rank needs, by purpose."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from estimator_service.core.memory.cache import request_cache_bytes_of_stage, requests_of_rank
from estimator_service.core.memory.overheads import (
    activation_bytes,
    communication_buffer_bytes,
    runtime_bytes,
    usable_bytes,
)
from estimator_service.core.memory.shares import Stage, fullest_stages
from estimator_service.core.memory.weights import RankWeights, weights_of_stage
from linkbound.domain.catalog import Hardware, Model, WeightFormatSource
from linkbound.domain.errors import Violation
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.memory import (
    DEFAULT_CACHE_VALUE_BYTES,
    DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION,
    DEFAULT_MAX_NUM_BATCHED_TOKENS,
    MemoryNeed,
)
from linkbound.domain.words import IF_OF_THE_DATA_TYPE

LARGEST_MEMORY_BYTES = 7 * 10**18
"""What a rank needs or reads at most, so that sums and differences of such numbers stay within 64 bits."""


@frozen(kw_only=True)
class MemorySettings:
    """How the engine is set; the defaults are vLLM's."""

    gpu_memory_utilization_fraction: float = DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION
    cache_value_bytes: int = DEFAULT_CACHE_VALUE_BYTES
    max_num_batched_tokens: int = DEFAULT_MAX_NUM_BATCHED_TOKENS
    draft_token_count: int = 0


DEFAULT_SETTINGS = MemorySettings()


@frozen(kw_only=True)
class StageNeed:
    """What one rank of a stage holds: weights, and the cache of each request."""

    weights: RankWeights
    request_cache_bytes: int


def memory_need(
    model: Model,
    layout: ParallelLayout,
    hardware: Hardware,
    context_tokens: int,
    request_count: int,
    settings: MemorySettings = DEFAULT_SETTINGS,
) -> MemoryNeed | None:
    """Memory of the fullest rank: weights, caches, activations, buffers, runtime (`docs/formulas.md`, Memory).

    None where the model does not say how much its weights or its caches are.
    """
    stages = stage_needs(model, layout, context_tokens, settings)
    if stages is None:
        return None
    held_requests = requests_of_rank(request_count, layout)
    fullest = max(stages, key=lambda stage: stage.weights.total_bytes + held_requests * stage.request_cache_bytes)
    return _need(fullest, model, layout, hardware, held_requests, settings)


def stage_needs(
    model: Model, layout: ParallelLayout, context_tokens: int, settings: MemorySettings
) -> tuple[StageNeed, ...] | None:
    """What each kind of stage holds; None where the model does not say (`docs/formulas.md`, Memory)."""
    if not model.cache_groups:
        return None
    needs = []
    for stage in fullest_stages(model.layer_count, layout.pipeline_parallel_size):
        need = _stage_need(model, layout, stage, context_tokens, settings)
        if need is None:
            return None
        needs.append(need)
    return tuple(needs)


def memory_reasons(need: MemoryNeed | None) -> tuple[str, ...]:
    """Why it does not fit, in a sentence; nothing where it does or nobody knows (`docs/formulas.md`, Memory)."""
    if need is None or need.total_bytes <= need.usable_bytes:
        return ()
    needed, usable = _gigabytes(need.total_bytes), _gigabytes(need.usable_bytes)
    missing = _gigabytes(need.total_bytes - need.usable_bytes)
    if_stored_so = f", {IF_OF_THE_DATA_TYPE}" if need.weight_format_source is WeightFormatSource.DATA_TYPE else ""
    return (f"a rank needs {needed} of memory and may use {usable}: {missing} are missing{if_stored_so}",)


def memory_violations(needed_bytes: float, field: str) -> Iterator[Violation]:
    """The violation of `field`, what multiplies the cache of a request, where no answer could count the bytes.

    (`docs/formulas.md`, Memory)
    """
    if needed_bytes > LARGEST_MEMORY_BYTES:
        yield Violation(field, f"{needed_bytes:.3g} bytes in a rank are above {LARGEST_MEMORY_BYTES:.3g}")


def countable_need(need: MemoryNeed | None) -> MemoryNeed | None:
    """`need`, or None where no answer could count its bytes (`docs/formulas.md`, Memory)."""
    return None if need is None or need.total_bytes > LARGEST_MEMORY_BYTES else need


def _stage_need(
    model: Model, layout: ParallelLayout, stage: Stage, context_tokens: int, settings: MemorySettings
) -> StageNeed | None:
    drafts = settings.draft_token_count
    weights = weights_of_stage(model, layout, stage, draft_token_count=drafts)
    if weights is None:
        return None
    return StageNeed(
        weights=weights,
        request_cache_bytes=request_cache_bytes_of_stage(
            model, layout, stage, context_tokens, settings.cache_value_bytes, draft_token_count=drafts
        ),
    )


def _need(
    stage: StageNeed,
    model: Model,
    layout: ParallelLayout,
    hardware: Hardware,
    held_request_count: int,
    settings: MemorySettings,
) -> MemoryNeed:
    cached = held_request_count * stage.request_cache_bytes
    activations = activation_bytes(model, layout, settings.max_num_batched_tokens)
    buffers, runtime = communication_buffer_bytes(layout), runtime_bytes()
    return MemoryNeed(
        sliced_weight_bytes=stage.weights.sliced_bytes,
        replicated_weight_bytes=stage.weights.replicated_bytes,
        kv_cache_bytes=cached,
        activation_bytes=activations,
        communication_buffer_bytes=buffers,
        runtime_bytes=runtime,
        total_bytes=stage.weights.total_bytes + cached + activations + buffers + runtime,
        usable_bytes=usable_bytes(hardware, settings.gpu_memory_utilization_fraction),
        weight_format_source=model.weight_format_source,
    )


def _gigabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"
