"""Whether a model and its requests fit, how many requests would, and on how many ranks it would."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from estimator_service.core import assumptions
from estimator_service.core.elementwise import smaller
from estimator_service.core.layouts.feasibility import layout_reasons, layout_violations
from estimator_service.core.memory.need import MemorySettings, memory_need, memory_violations, stage_needs
from estimator_service.core.memory.overheads import (
    activation_bytes,
    communication_buffer_bytes,
    runtime_bytes,
    usable_bytes,
)
from estimator_service.core.memory.weights import stored_at, weights_of_rank
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.layout import LARGEST_PARALLEL_SIZE, ParallelLayout
from linkbound.domain.memory import MemoryFit, MemoryFitRequest
from linkbound.domain.workload import LARGEST_REQUEST_COUNT


def check_memory_fit(request: MemoryFitRequest, model: Model, hardware: Hardware) -> MemoryFit:
    """What is needed of the memory of `hardware`, and what would fit (`docs/formulas.md`, Memory).

    Raises InvalidArgumentError where the model cannot be cut over the ranks, where nothing is known about how much its
    weights or its caches are, and where no answer could count them.
    """
    stored = stored_at(model, request.weight_bits_per_parameter)
    settings = MemorySettings(
        gpu_memory_utilization_fraction=request.gpu_memory_utilization_fraction,
        cache_value_bytes=request.cache_value_bytes,
        max_num_batched_tokens=request.max_num_batched_tokens,
        draft_token_count=request.draft_token_count,
    )
    need = memory_need(stored, request.layout, hardware, request.context_tokens, request.request_count, settings)
    violations = (
        *layout_violations(model, request.layout, "layout."),
        *_unknown(request, stored),
        *memory_violations(0 if need is None else need.total_bytes, "request_count"),
    )
    if violations or need is None:
        raise InvalidArgumentError(violations)
    return MemoryFit(
        fits=need.total_bytes <= need.usable_bytes,
        weight_bytes=need.sliced_weight_bytes + need.replicated_weight_bytes,
        kv_cache_bytes=need.kv_cache_bytes,
        headroom_bytes=need.usable_bytes - need.total_bytes,
        smallest_tp_that_fits=smallest_tp_that_fits(request, stored, hardware, settings),
        need=need,
        largest_request_count=largest_request_count(request, stored, hardware, settings),
        layout=request.layout,
        assumptions=assumptions.of_memory(request, stored),
        estimator_version=ESTIMATOR_VERSION,
    )


def smallest_tp_that_fits(
    request: MemoryFitRequest, model: Model, hardware: Hardware, settings: MemorySettings
) -> int | None:
    """The smallest size that the model can be cut to and fits at, all else alike (`docs/formulas.md`, Memory)."""
    for layout in _smaller_and_larger(model, request.layout):
        need = memory_need(model, layout, hardware, request.context_tokens, request.request_count, settings)
        if need is not None and need.total_bytes <= need.usable_bytes:
            return layout.tensor_parallel_size
    return None


def largest_request_count(request: MemoryFitRequest, model: Model, hardware: Hardware, settings: MemorySettings) -> int:
    """Requests of this length that fit, at most 100000: D times what the fullest stage has room for.

    (`docs/formulas.md`, Memory)
    """
    layout = request.layout
    free_bytes = (
        usable_bytes(hardware, settings.gpu_memory_utilization_fraction)
        - activation_bytes(model, layout, settings.max_num_batched_tokens)
        - communication_buffer_bytes(layout)
        - runtime_bytes()
    )
    largest = LARGEST_REQUEST_COUNT
    for stage in stage_needs(model, layout, request.context_tokens, settings) or ():
        left_bytes = free_bytes - stage.weights.total_bytes
        if left_bytes < 0:
            return 0
        if stage.request_cache_bytes:
            largest = smaller(largest, left_bytes // stage.request_cache_bytes * layout.data_parallel_size)
    return largest


def _smaller_and_larger(model: Model, layout: ParallelLayout) -> Iterator[ParallelLayout]:
    """The layout at every tensor-parallel size that the model can be cut to, rising; nodes may be filled in part."""
    heads = model.attention_head_count
    for size in range(1, smaller(heads, LARGEST_PARALLEL_SIZE) + 1):
        if heads % size == 0:
            resized = evolve(layout, tensor_parallel_size=size, ranks_per_node=1)
            if not layout_reasons(model, resized):
                yield resized


def _unknown(request: MemoryFitRequest, model: Model) -> Iterator[Violation]:
    name = model.model_id
    if weights_of_rank(model, request.layout, draft_token_count=request.draft_token_count) is None:
        if model.parameter_groups or model.total_parameters is not None:
            yield Violation("weight_bits_per_parameter", f"is missing; no source states how {name} is stored")
        else:
            yield Violation("model", f"no source states how many parameters {name} has")
    if not model.cache_groups:
        yield Violation("model", f"no source states what {name} keeps in memory for a request")
