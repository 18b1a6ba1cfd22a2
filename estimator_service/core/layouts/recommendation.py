"""How to run a model on the nodes at hand: one large instance, or several smaller ones."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from estimator_service.core import assumptions
from estimator_service.core.elementwise import ceil_quotient, larger, quotient
from estimator_service.core.intervals import between, combined_basis, mapped, upper_end
from estimator_service.core.layouts import advice
from estimator_service.core.layouts.advice import Ranked
from estimator_service.core.layouts.calibrated import calibrated_transfers, with_calibrated_change
from estimator_service.core.layouts.comparison import prompt_seconds, prompts_on
from estimator_service.core.layouts.fabric import Fabric, fabric_baseline_violations, resolve_fabric
from estimator_service.core.layouts.feasibility import layout_reasons, layout_violations
from estimator_service.core.layouts.instances import (
    Instances,
    cuttable_sizes,
    instance_layout,
    instances_on,
    pipelines_that_fit,
    sizes_to_show,
)
from estimator_service.core.layouts.load import FabricLoad, fabric_load, prefill_rows
from estimator_service.core.layouts.rows import stage_kinds
from estimator_service.core.links import send_seconds
from estimator_service.core.memory import (
    MemorySettings,
    countable_need,
    feasibility_of,
    memory_need,
    memory_reasons,
)
from estimator_service.core.prefill import prefill_effects, prefill_passes
from estimator_service.core.transfers import extra_seconds, seconds_after_change
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.calibration import Calibration
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.layout import LARGEST_PARALLEL_SIZE, ParallelLayout
from linkbound.domain.layout_recommendation import (
    LayoutOption,
    LayoutRecommendation,
    LayoutRecommendationRequest,
)
from linkbound.domain.memory import MemoryNeed
from linkbound.domain.workload import PrefillWorkload


@frozen(kw_only=True)
class _Case:
    """What all options share. `compute_seconds`: of one rank at the baseline's size, if nothing overlapped."""

    request: LayoutRecommendationRequest
    model: Model
    hardware: Hardware | None
    calibration: Calibration | None
    compute_seconds: float | None = None


def recommend_layout(
    request: LayoutRecommendationRequest,
    model: Model,
    hardware: Hardware | None,
    calibration: Calibration | None = None,
) -> LayoutRecommendation:
    """As many instances of each size as the nodes have room for, best first (`docs/formulas.md`, Recommendation).

    Best is what prefills most prompts a second on all nodes together, among what can be cut and fits; a size below that
    of the baseline comes behind where no hardware says whether it fits. Instances of several stages are offered where
    no tensor-parallel size alone can be run. Raises InvalidArgumentError where the model cannot be cut to the
    baseline's size, and where the baseline is below the time that its link needs for the bytes.
    """
    case = _Case(request=request, model=model, hardware=hardware, calibration=calibration)
    case = evolve(case, compute_seconds=_baseline_compute_seconds(case))
    nodes, in_node = request.workload.node_count, request.workload.ranks_per_node
    groups = [instance_layout(size, in_node) for size in sizes_to_show(model, nodes, in_node)]
    options = [_ranked(case, layout) for layout in groups]
    if not any(one.is_runnable for one in options):
        options += [
            _ranked(case, layout)
            for layout in pipelines_that_fit(model, nodes * in_node, in_node, lambda layout: _fits(case, layout))
        ]
    options.sort(key=lambda one: _order(case, one))
    return LayoutRecommendation(
        options=tuple(one.option for one in options),
        reasons=tuple(advice.reasons(request, options, None if options[0].is_runnable else _beyond(case))),
        assumptions=_assumptions(case, [one.option for one in options]),
        estimator_version=ESTIMATOR_VERSION,
    )


def _baseline_compute_seconds(case: _Case) -> float | None:
    """T - t_0, nothing overlapped; None without a baseline. Raises InvalidArgumentError where it cannot have been."""
    seconds, size = case.request.baseline_ttft_seconds, case.request.baseline_tensor_parallel_size
    if seconds is None:
        return None
    layout = instance_layout(size, case.request.workload.ranks_per_node)
    reference = _reference(case, layout)
    violations = (
        *layout_violations(case.model, layout, "baseline_"),
        *fabric_baseline_violations("baseline_ttft_seconds", seconds, _load(case, layout), reference),
    )
    if violations:
        raise InvalidArgumentError(violations)
    return larger(seconds - _prompt_seconds(case, layout, reference).lower, 0.0)


def _ranked(case: _Case, layout: ParallelLayout) -> Ranked:
    workload = case.request.workload
    instances = instances_on(workload.node_count, workload.ranks_per_node, layout)
    option = _option(case, instances)
    return Ranked(
        option=option,
        seconds_per_prompt=_busy_seconds(case, layout) / instances.count,
        is_untried=option.memory is None and layout.rank_count < case.request.baseline_tensor_parallel_size,
    )


def _option(case: _Case, instances: Instances) -> LayoutOption:
    layout, load = instances.layout, _load(case, instances.layout)
    old, new = _reference(case, layout), _fabric(case, layout)
    kinds, passes = stage_kinds(case.model, layout), prefill_passes(_prompts(case, layout, 1))
    share = ceil_quotient(case.request.workload.request_count, instances.count)
    need = _need(case, layout, share)
    extra = with_calibrated_change(
        extra_seconds(
            load.outer.sequential_bytes, old.outer, new.outer, _left_out(case, layout, is_checked=bool(need))
        ),
        calibrated_transfers(kinds, passes, case.calibration, old),
        calibrated_transfers(kinds, passes, case.calibration, new),
    )
    ttft = _ttft_seconds(case, layout, extra)
    verdict = feasibility_of(layout_reasons(case.model, layout), need, case.hardware)
    return LayoutOption(
        instance_count=instances.count,
        idle_node_count=instances.idle_node_count,
        layout=layout,
        sent_bytes_per_rank=round(load.outer.busiest_bytes),
        extra_ttft_seconds=extra,
        extra_ttft_fraction=_fraction(case, layout, extra),
        ttft_seconds=ttft,
        last_ttft_seconds=None if ttft is None else _last_ttft_seconds(case, layout, ttft, share),
        memory=countable_need(need),
        feasible=verdict.feasible,
        reasons=verdict.reasons,
    )


def _need(case: _Case, layout: ParallelLayout, request_count: int) -> MemoryNeed | None:
    """What one instance with so many prompts needs; None without hardware, and where the model does not say."""
    if case.hardware is None:
        return None
    workload = case.request.workload
    settings = MemorySettings(max_num_batched_tokens=workload.max_num_batched_tokens)
    return memory_need(case.model, layout, case.hardware, workload.prompt_tokens, request_count, settings)


def _fits(case: _Case, layout: ParallelLayout) -> bool:
    """Whether an instance can be run on the nodes at hand."""
    workload = case.request.workload
    instances = instances_on(workload.node_count, workload.ranks_per_node, layout)
    share = ceil_quotient(workload.request_count, instances.count)
    need = _need(case, layout, share)
    return not layout_reasons(case.model, layout) and need is not None and not memory_reasons(need)


def _beyond(case: _Case) -> ParallelLayout | None:
    """The smallest instance that fits all prompts, on however many nodes; one group before stages of as many ranks."""
    workload, model = case.request.workload, case.model
    in_node = workload.ranks_per_node

    def fits(layout: ParallelLayout) -> bool:
        need = _need(case, layout, workload.request_count)
        return need is not None and not memory_reasons(need)

    groups = (instance_layout(size, in_node) for size in cuttable_sizes(model, LARGEST_PARALLEL_SIZE, in_node))
    one_group = [layout for layout in groups if fits(layout)][:1]
    pipelines = pipelines_that_fit(model, LARGEST_PARALLEL_SIZE, in_node, fits)
    return min((*one_group, *pipelines), key=lambda layout: layout.rank_count, default=None)


def _compute_at(case: _Case, layout: ParallelLayout) -> float | None:
    """Arithmetic of one rank: c N_0 / (N Q)."""
    if case.compute_seconds is None:
        return None
    return case.compute_seconds * case.request.baseline_tensor_parallel_size / layout.rank_count


def _fraction(case: _Case, layout: ParallelLayout, extra: Estimate) -> Estimate | None:
    """The loss d over t + c N_0 / (N Q), over the reference link."""
    compute_seconds = _compute_at(case, layout)
    if compute_seconds is None:
        return None
    unhidden_seconds = _prompt_seconds(case, layout, _reference(case, layout)).lower + compute_seconds
    fraction = mapped(
        extra,
        quotient(extra.lower, unhidden_seconds, if_zero=0.0),
        quotient(upper_end(extra), unhidden_seconds, if_zero=0.0),
        Basis.MEASURED,
    )
    if extra.expected is None:
        return fraction
    return evolve(fraction, expected=quotient(extra.expected, unhidden_seconds, if_zero=0.0))


def _ttft_seconds(case: _Case, layout: ParallelLayout, extra: Estimate) -> Estimate | None:
    """Over the link: at the baseline's size the baseline and the loss, else [max(t, c N_0/(N Q)), t + T N_0/N].

    The stages of a pipeline compute one prompt one after another at most.
    """
    compute_seconds, seconds = _compute_at(case, layout), case.request.baseline_ttft_seconds
    if compute_seconds is None or seconds is None:
        return None
    network = _prompt_seconds(case, layout, _fabric(case, layout))
    if layout.tensor_parallel_size == layout.rank_count == case.request.baseline_tensor_parallel_size:
        return seconds_after_change(extra, seconds, network.lower)
    scale = case.request.baseline_tensor_parallel_size / layout.tensor_parallel_size
    lower = larger(network.lower, compute_seconds)
    return between(
        lower,
        upper_end(network) + seconds * scale,
        combined_basis(Basis.MEASURED, network.lower_basis),
        constraint=Constraint.NETWORK_BANDWIDTH if lower == network.lower else Constraint.COMPUTE,
        effects=extra.effects_left_out,
    )


def _last_ttft_seconds(case: _Case, layout: ParallelLayout, ttft: Estimate, count: int) -> Estimate:
    """`count` prompts one after another; of a pipeline at the least with one in every stage."""
    in_turn = evolve(
        ttft,
        lower=ttft.lower * count,
        expected=None if ttft.expected is None else ttft.expected * count,
        upper=upper_end(ttft) * count,
    )
    if layout.pipeline_parallel_size == 1:
        return in_turn
    network = prompt_seconds(_prompts(case, layout, count), case.model, _fabric(case, layout), None)
    return evolve(in_turn, lower=larger(network.lower, (_compute_at(case, layout) or 0.0) * count), expected=None)


def _order(case: _Case, one: Ranked) -> tuple[bool, bool, int, float]:
    """What comes first; without a baseline what leaves fewer nodes idle, since arithmetic outweighs transfers."""
    idle = one.option.idle_node_count if case.compute_seconds is None else 0
    return not one.is_runnable, one.is_untried, idle, one.seconds_per_prompt


def _busy_seconds(case: _Case, layout: ParallelLayout) -> float:
    """Transfers and arithmetic of one prompt in the busiest stage over the link, nothing overlapped."""
    load, fabric = _load(case, layout), _fabric(case, layout)
    seconds = send_seconds(load.outer.busiest_bytes, fabric.outer.effective_bits_per_second)
    if fabric.inner is not None:
        within = send_seconds(load.inner.busiest_bytes, fabric.inner.effective_bits_per_second)
        seconds = larger(seconds, within)
    return seconds + (_compute_at(case, layout) or 0.0)


def _assumptions(case: _Case, options: Sequence[LayoutOption]) -> tuple[str, ...]:
    request = case.request
    one_node = ParallelLayout(tensor_parallel_size=1, ranks_per_node=request.workload.ranks_per_node)
    links = (*_fabric(case, one_node).links, *_reference(case, one_node).links)
    pipelines = [option.layout for option in options if option.layout.pipeline_parallel_size > 1]
    is_known = any(option.memory is not None for option in options)
    return (
        *assumptions.of_fabric(one_node, links, None),
        *assumptions.of_inner_link(request.inner_link, request.workload.ranks_per_node),
        assumptions.NO_CACHED_PREFIX,
        assumptions.EVEN_INSTANCES,
        *((assumptions.PROMPT_IN_EVERY_STAGE, *assumptions.of_layout(pipelines[0])) if pipelines else ()),
        *((assumptions.EVEN_COMPUTE, assumptions.NO_OVERLAP) if request.baseline_ttft_seconds is not None else ()),
        *(
            (assumptions.NO_MEMORY_RATE,)
            if case.hardware is None
            else (
                *assumptions.of_memory_check(case.model, is_known=is_known),
                *assumptions.of_weight_format(case.model),
            )
        ),
        *(() if case.calibration is None else case.calibration.assumptions),
    )


def _left_out(case: _Case, layout: ParallelLayout, *, is_checked: bool) -> tuple[Effect, ...]:
    unchecked = () if is_checked else (Effect.MEMORY_FIT,)
    return (*unchecked, Effect.FIXED_OVERHEAD, *prefill_effects(_prompts(case, layout, 1)))


def _prompts(case: _Case, layout: ParallelLayout, request_count: int) -> PrefillWorkload:
    return prompts_on(layout, case.request.workload, request_count)


def _load(case: _Case, layout: ParallelLayout) -> FabricLoad:
    return fabric_load(stage_kinds(case.model, layout), prefill_rows(_prompts(case, layout, 1), logits_rows=0))


def _prompt_seconds(case: _Case, layout: ParallelLayout, fabric: Fabric) -> Estimate:
    return prompt_seconds(_prompts(case, layout, 1), case.model, fabric, None)


def _fabric(case: _Case, layout: ParallelLayout) -> Fabric:
    return resolve_fabric(case.request.link, (), case.request.inner_link, layout)


def _reference(case: _Case, layout: ParallelLayout) -> Fabric:
    return resolve_fabric(case.request.reference_link, (), case.request.inner_link, layout)
