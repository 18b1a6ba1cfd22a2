"""Every way to cut one instance of a model over the same nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from attrs import evolve, frozen

from estimator_service.core import assumptions
from estimator_service.core.decode import DecodePass, decode_pass
from estimator_service.core.elementwise import ceil_quotient, smaller
from estimator_service.core.layouts.calibrated import calibrated_transfers, with_calibration
from estimator_service.core.layouts.candidates import Candidate, CountedSeconds, ReadSeconds, Workings, counted_seconds
from estimator_service.core.layouts.choice import batched_choice, single_stream_choice
from estimator_service.core.layouts.fabric import Fabric, fabric_seconds, resolve_fabric
from estimator_service.core.layouts.feasibility import layout_reasons
from estimator_service.core.layouts.load import (
    LARGEST_SENT_BYTES,
    busiest_group_requests,
    fabric_load,
    load_violations,
    prefill_rows,
)
from estimator_service.core.layouts.rows import stage_kinds
from estimator_service.core.memory import MemorySettings, countable_need, feasibility_of, memory_need
from estimator_service.core.pass_reads import (
    NOTHING_COMPARED,
    compared_reads,
    compared_weight_bytes,
    seconds_to_read,
    stated_mean_is_lower,
)
from estimator_service.core.prefill import prefill_effects, prefill_passes
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.calibration import Calibration
from linkbound.domain.catalog import Hardware, Model, ModelPart
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import LARGEST_PARALLEL_SIZE, ExpertParallelism, ParallelLayout
from linkbound.domain.layout_comparison import LayoutComparison, LayoutComparisonRequest, LayoutEstimate
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

Cut = TypeVar("Cut", PrefillWorkload, DecodeWorkload)

_EXCHANGES = (ExpertParallelism.ALL_GATHER, ExpertParallelism.ALL_TO_ALL)


def compare_layouts(
    request: LayoutComparisonRequest, model: Model, hardware: Hardware | None, calibration: Calibration | None = None
) -> LayoutComparison:
    """Bytes, times, bubbles and memory of every layout, and what to take for what (`docs/formulas.md`, Layouts)."""
    workload = request.workload
    candidates = sorted(
        (
            _candidate(request, layout, model, hardware, calibration)
            for layout in layouts_of(workload.node_count, workload.ranks_per_node, model)
        ),
        key=lambda one: one.estimate.feasible is False,
    )
    layouts = tuple(one.estimate for one in candidates)
    one_node = ParallelLayout(tensor_parallel_size=1, ranks_per_node=workload.ranks_per_node)
    fabric = _fabric(request, one_node)
    return LayoutComparison(
        layouts=layouts,
        single_stream=single_stream_choice(candidates),
        batched=batched_choice(candidates, request, model),
        assumptions=(
            *assumptions.of_fabric(one_node, fabric.links, None),
            *assumptions.of_inner_link(request.inner_link, workload.ranks_per_node),
            *assumptions.of_prefill(prompts_on(one_node, workload, workload.request_count)),
            *assumptions.of_decode(_decode(request, one_node, workload.request_count)),
            *assumptions.of_layouts(model),
            *_weight_assumptions(model, hardware),
            *_memory_assumptions(request, model, hardware, layouts),
            *(() if calibration is None else (*calibration.assumptions, assumptions.UNCOVERED_COLLECTIVES)),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def layouts_of(node_count: int, ranks_per_node: int, model: Model) -> Iterator[ParallelLayout]:
    """TP x PP over all ranks, then the ways to spread experts over one stage (`docs/formulas.md`, Layouts).

    Q divides the ranks, in rising order, and is at most the layers; no group straddles nodes, and none is above 4096.
    Experts: whole ones in one group, then attention groups of one rank, and of the ranks of a node. There may be none.
    """
    rank_count = node_count * ranks_per_node
    for stage_count in divisors(rank_count):
        size = rank_count // stage_count
        if fits_nodes(size, ranks_per_node) and stage_count <= model.layer_count:
            yield ParallelLayout(
                tensor_parallel_size=size, pipeline_parallel_size=stage_count, ranks_per_node=ranks_per_node
            )
    if not any(collective.part is ModelPart.ROUTED_EXPERTS for collective in model.collectives) or rank_count == 1:
        return
    if rank_count <= LARGEST_PARALLEL_SIZE:
        yield ParallelLayout(
            tensor_parallel_size=rank_count,
            expert_parallelism=ExpertParallelism.ALL_REDUCE,
            ranks_per_node=ranks_per_node,
        )
    for size in sorted({1, ranks_per_node}):
        group_count = rank_count // size
        if 1 < group_count <= LARGEST_PARALLEL_SIZE:
            for exchange in _EXCHANGES:
                yield ParallelLayout(
                    tensor_parallel_size=size,
                    data_parallel_size=group_count,
                    expert_parallelism=exchange,
                    ranks_per_node=ranks_per_node,
                )


def divisors(number: int) -> tuple[int, ...]:
    """The divisors of `number`, in rising order (`docs/formulas.md`, Layouts)."""
    return tuple(divisor for divisor in range(1, number + 1) if number % divisor == 0)


def fits_nodes(size: int, ranks_per_node: int) -> bool:
    """Whether groups of `size` ranks, 4096 at most, fill nodes or nodes hold whole ones.

    (`docs/formulas.md`, Layouts)
    """
    return size <= LARGEST_PARALLEL_SIZE and not (size % ranks_per_node and ranks_per_node % size)


def passes_in_flight(request_count: int, layout: ParallelLayout) -> int:
    """Decode passes at once: min(Q, ceil(R / D)) (`docs/formulas.md`, Layouts)."""
    return smaller(layout.pipeline_parallel_size, busiest_group_requests(request_count, layout))


def bubble_fraction(request_count: int, layout: ParallelLayout) -> float:
    """Share of stages without a pass while requests generate: 1 - F / Q (`docs/formulas.md`, Layouts)."""
    return 1 - passes_in_flight(request_count, layout) / layout.pipeline_parallel_size


def _candidate(
    request: LayoutComparisonRequest,
    layout: ParallelLayout,
    model: Model,
    hardware: Hardware | None,
    calibration: Calibration | None,
) -> Candidate:
    workload = request.workload
    prompts = prompts_on(layout, workload, workload.request_count)
    load = fabric_load(stage_kinds(model, layout), prefill_rows(prompts, logits_rows=0))
    times = _times(request, layout, model, hardware, calibration)
    need = None
    if hardware is not None:
        need = memory_need(
            model,
            layout,
            hardware,
            workload.prompt_tokens + request.output_tokens,
            workload.request_count,
            MemorySettings(
                max_num_batched_tokens=workload.max_num_batched_tokens, draft_token_count=request.draft_token_count
            ),
        )
    too_much = (violation.description for violation in load_violations(load, "prompt_tokens"))
    verdict = feasibility_of((*layout_reasons(model, layout), *too_much), need, hardware)
    estimate = LayoutEstimate(
        layout=layout,
        sent_bytes_per_rank=round(smaller(load.outer.busiest_bytes, LARGEST_SENT_BYTES)),
        inner_sent_bytes_per_rank=round(smaller(load.inner.busiest_bytes, LARGEST_SENT_BYTES)),
        network_seconds=times.of_all,
        single_network_seconds=times.of_one,
        pass_seconds=times.together.seconds,
        single_pass_seconds=times.single.seconds,
        bubble_fraction=bubble_fraction(workload.request_count, layout),
        passes_in_flight=passes_in_flight(workload.request_count, layout),
        memory=countable_need(need),
        feasible=verdict.feasible,
        reasons=verdict.reasons,
    )
    if times.together.calibrated is None:
        return Candidate(estimate=estimate, bare=times.workings)
    bare = _times(request, layout, model, hardware, None)
    return Candidate(estimate=estimate, bare=bare.workings, calibrated=times.workings)


@frozen(kw_only=True)
class _Times:
    """Transfers of all prompts and of one alone, a pass of all requests and of one."""

    of_all: Estimate
    of_one: Estimate
    together: DecodePass
    single: DecodePass
    workings: Workings


def _times(
    request: LayoutComparisonRequest,
    layout: ParallelLayout,
    model: Model,
    hardware: Hardware | None,
    calibration: Calibration | None,
) -> _Times:
    fabric, count = _fabric(request, layout), request.workload.request_count
    of_all, of_one = (
        prompt_seconds(prompts_on(layout, request.workload, requests), model, fabric, calibration)
        for requests in (count, 1)
    )
    of_pass, of_token = (
        _decode(request, layout, requests) for requests in (ceil_quotient(count, passes_in_flight(count, layout)), 1)
    )
    together, single = (decode_pass(workload, model, hardware, fabric, calibration) for workload in (of_pass, of_token))
    return _Times(
        of_all=of_all,
        of_one=of_one,
        together=together,
        single=single,
        workings=Workings(
            together=_counted(of_pass, model, hardware, of_all, together),
            alone=_counted(of_token, model, hardware, of_one, single),
        ),
    )


def _counted(
    workload: DecodeWorkload, model: Model, hardware: Hardware | None, prompts: Estimate, one_pass: DecodePass
) -> CountedSeconds:
    reads = NOTHING_COMPARED if hardware is None else compared_reads(workload, model)
    return counted_seconds(
        workload.layout,
        prompts,
        one_pass,
        ReadSeconds(
            least_seconds=seconds_to_read(reads.least_bytes, hardware),
            most_seconds=seconds_to_read(reads.most_bytes, hardware),
            floor_seconds=one_pass.read_seconds,
        ),
    )


def prompts_on(layout: ParallelLayout, workload: ClusterWorkload, request_count: int) -> PrefillWorkload:
    """`request_count` of the prompts of a cluster, on one instance cut as `layout` (`docs/formulas.md`, Layouts)."""
    prompts = PrefillWorkload(
        model=workload.model,
        model_config_json=workload.model_config_json,
        prompt_tokens=workload.prompt_tokens,
        request_count=request_count,
        max_num_batched_tokens=workload.max_num_batched_tokens,
        tensor_parallel_size=layout.tensor_parallel_size,
    )
    return _cut(prompts, layout)


def prompt_seconds(
    workload: PrefillWorkload, model: Model, fabric: Fabric, calibration: Calibration | None
) -> Estimate:
    """Time that transfers add to prompts, from the first to the last stage (`docs/formulas.md`, Layouts)."""
    kinds = stage_kinds(model, workload.layout)
    load = fabric_load(kinds, prefill_rows(workload, logits_rows=0))
    calibrated = calibrated_transfers(kinds, prefill_passes(workload), calibration, fabric)
    return with_calibration(fabric_seconds(load, fabric, prefill_effects(workload)), calibrated)


def _fabric(request: LayoutComparisonRequest, layout: ParallelLayout) -> Fabric:
    return resolve_fabric(request.link, (), request.inner_link, layout)


def _decode(request: LayoutComparisonRequest, layout: ParallelLayout, request_count: int) -> DecodeWorkload:
    workload = DecodeWorkload(
        model=request.workload.model,
        model_config_json=request.workload.model_config_json,
        request_count=request_count,
        draft_token_count=request.draft_token_count,
        hardware=request.workload.hardware,
        context_tokens=request.workload.prompt_tokens,
        tensor_parallel_size=layout.tensor_parallel_size,
    )
    return _cut(workload, layout)


def _cut(workload: Cut, layout: ParallelLayout) -> Cut:
    """`workload` on the ranks of `layout`."""
    return evolve(
        workload,
        tensor_parallel_size=layout.tensor_parallel_size,
        pipeline_parallel_size=layout.pipeline_parallel_size,
        data_parallel_size=layout.data_parallel_size,
        expert_parallelism=layout.expert_parallelism,
        ranks_per_node=layout.ranks_per_node,
    )


def _weight_assumptions(model: Model, hardware: Hardware | None) -> tuple[str, ...]:
    """How the weights count that a pass reads, where anything is known of them."""
    if hardware is None or compared_weight_bytes(model, ParallelLayout(tensor_parallel_size=1)) is None:
        return ()
    return assumptions.of_compared_weights(model, is_scaled=stated_mean_is_lower(model))


def _memory_assumptions(
    request: LayoutComparisonRequest, model: Model, hardware: Hardware | None, layouts: tuple[LayoutEstimate, ...]
) -> tuple[str, ...]:
    if hardware is None:
        return (assumptions.NO_MEMORY_RATE,)
    is_known = any(one.memory is not None for one in layouts)
    return assumptions.of_memory_check(model, is_known=is_known, output_tokens=request.output_tokens)
