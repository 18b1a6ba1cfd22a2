"""How to run a model on the nodes at hand: one large instance, or several smaller ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from estimator_service.core import assumptions
from estimator_service.core.elementwise import ceil_quotient, larger, quotient
from estimator_service.core.intervals import between, combined_basis, mapped, upper_end
from estimator_service.core.layouts.calibrated import calibrated_transfers, with_calibrated_change
from estimator_service.core.layouts.comparison import divisors, fits_nodes, prompt_seconds
from estimator_service.core.layouts.fabric import Fabric, fabric_baseline_violations, resolve_fabric
from estimator_service.core.layouts.feasibility import layout_reasons, layout_violations
from estimator_service.core.layouts.load import FabricLoad, fabric_load, prefill_rows
from estimator_service.core.layouts.rows import stage_kinds
from estimator_service.core.layouts.words import in_seconds
from estimator_service.core.memory import MemorySettings, countable_need, memory_need, memory_reasons
from estimator_service.core.prefill import prefill_effects, prefill_passes
from estimator_service.core.transfers import extra_seconds, seconds_after_change
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.calibration import Calibration
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.layout import ParallelLayout, layout_name
from linkbound.domain.layout_recommendation import (
    LayoutOption,
    LayoutRecommendation,
    LayoutRecommendationRequest,
)
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
    """Instances of every size that fill the ranks, best first (`docs/formulas.md`, Recommendation).

    Best is what prefills most prompts a second on all nodes together, among what can be cut and fits; a size below that
    of the baseline comes behind where no hardware says whether it fits. Raises InvalidArgumentError where the model
    cannot be cut to the baseline's size, and where the baseline is below the time that its link needs for the bytes.
    """
    case = _Case(request=request, model=model, hardware=hardware, calibration=calibration)
    case = evolve(case, compute_seconds=_baseline_compute_seconds(case))
    rank_count = request.node_count * request.ranks_per_node
    sizes = [size for size in divisors(rank_count) if fits_nodes(size, request.ranks_per_node)]
    options = sorted((_option(case, size) for size in sizes), key=lambda option: _rank(case, option))
    links = (*_fabric(case, options[0].layout).links, *_reference(case, options[0].layout).links)
    return LayoutRecommendation(
        options=tuple(options),
        reasons=tuple(_reasons(case, options)),
        assumptions=(
            *assumptions.of_fabric(options[0].layout, links, None),
            assumptions.NO_CACHED_PREFIX,
            assumptions.EVEN_INSTANCES,
            *((assumptions.EVEN_COMPUTE, assumptions.NO_OVERLAP) if request.baseline_ttft_seconds is not None else ()),
            *(
                (assumptions.NO_MEMORY_RATE,)
                if hardware is None
                else assumptions.of_memory_check(model, is_known=any(option.memory is not None for option in options))
            ),
            *(() if calibration is None else calibration.assumptions),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def instance_layout(size: int, ranks_per_node: int) -> ParallelLayout:
    """One instance of `size` ranks, which fills nodes or a part of one (`docs/formulas.md`, Recommendation)."""
    return ParallelLayout(tensor_parallel_size=size, ranks_per_node=min(size, ranks_per_node))


def _baseline_compute_seconds(case: _Case) -> float | None:
    """T - t_0, nothing overlapped; None without a baseline. Raises InvalidArgumentError where it cannot have been."""
    seconds, size = case.request.baseline_ttft_seconds, case.request.baseline_tensor_parallel_size
    if seconds is None:
        return None
    layout = instance_layout(size, case.request.ranks_per_node)
    reference = _reference(case, layout)
    violations = (
        *layout_violations(case.model, layout, "baseline_"),
        *fabric_baseline_violations("baseline_ttft_seconds", seconds, _load(case, layout), reference),
    )
    if violations:
        raise InvalidArgumentError(violations)
    return larger(seconds - _prompt_seconds(case, layout, reference).lower, 0.0)


def _option(case: _Case, size: int) -> LayoutOption:
    request, model = case.request, case.model
    layout = instance_layout(size, request.ranks_per_node)
    count = request.node_count * request.ranks_per_node // size
    old, new = _reference(case, layout), _fabric(case, layout)
    load = _load(case, layout)
    kinds, passes = stage_kinds(model, layout), prefill_passes(_prompt(case, layout))
    need = None
    if case.hardware is not None:
        settings = MemorySettings(max_num_batched_tokens=request.max_num_batched_tokens)
        held = ceil_quotient(request.request_count, count)
        need = memory_need(model, layout, case.hardware, request.prompt_tokens, held, settings)
    extra = with_calibrated_change(
        extra_seconds(
            load.outer.sequential_bytes, old.outer, new.outer, _left_out(case, layout, is_checked=bool(need))
        ),
        calibrated_transfers(kinds, passes, case.calibration, old),
        calibrated_transfers(kinds, passes, case.calibration, new),
    )
    ttft = _ttft_seconds(case, layout, extra)
    reasons = (*layout_reasons(model, layout), *memory_reasons(need))
    return LayoutOption(
        instance_count=count,
        layout=layout,
        sent_bytes_per_rank=round(load.outer.busiest_bytes),
        extra_ttft_seconds=extra,
        extra_ttft_fraction=_fraction(case, layout, extra),
        ttft_seconds=ttft,
        last_ttft_seconds=None if ttft is None else _times(ttft, ceil_quotient(request.request_count, count)),
        memory=countable_need(need),
        feasible=not reasons,
        reasons=reasons,
    )


def _compute_at(case: _Case, layout: ParallelLayout) -> float | None:
    """Arithmetic of one rank: c N_0 / N."""
    if case.compute_seconds is None:
        return None
    return case.compute_seconds * case.request.baseline_tensor_parallel_size / layout.tensor_parallel_size


def _fraction(case: _Case, layout: ParallelLayout, extra: Estimate) -> Estimate | None:
    """The loss d over t_N + c N_0 / N, over the reference link."""
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
    """Over the link: at the baseline's size the baseline and the loss, else [max(t_N, c N_0/N), t_N + T N_0/N]."""
    compute_seconds, seconds = _compute_at(case, layout), case.request.baseline_ttft_seconds
    if compute_seconds is None or seconds is None:
        return None
    network = _prompt_seconds(case, layout, _fabric(case, layout))
    if layout.tensor_parallel_size == case.request.baseline_tensor_parallel_size:
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


def _times(seconds: Estimate, count: int) -> Estimate:
    """`count` prompts one after another."""
    return evolve(
        seconds,
        lower=seconds.lower * count,
        expected=None if seconds.expected is None else seconds.expected * count,
        upper=upper_end(seconds) * count,
    )


def _rank(case: _Case, option: LayoutOption) -> tuple[bool, bool, float]:
    size = option.layout.tensor_parallel_size
    is_untried = option.memory is None and size < case.request.baseline_tensor_parallel_size
    return (not option.feasible, is_untried, _seconds_of_one_prompt(case, option) / option.instance_count)


def _seconds_of_one_prompt(case: _Case, option: LayoutOption) -> float:
    """Transfers and arithmetic of one prompt over the link, nothing overlapped."""
    network = _prompt_seconds(case, option.layout, _fabric(case, option.layout)).lower
    return network + (_compute_at(case, option.layout) or 0.0)


def _reasons(case: _Case, options: Sequence[LayoutOption]) -> Iterator[str]:
    best = options[0]
    if not best.feasible:
        yield "No size can be run on these nodes."
        return
    yield _line(case, best)
    yield from (_line(case, other) for other in options[1:] if other.feasible)
    larger_ones = [one for one in options if one.feasible and one.instance_count < best.instance_count]
    if larger_ones:
        yield (
            "A larger group computes a prompt sooner and sends about as much for it, so the link takes a larger share"
            " of its time; smaller groups side by side share the arithmetic of many prompts without that."
        )
    if any(_rank(case, one)[1] for one in options):
        yield (
            f"Sizes below TP{case.request.baseline_tensor_parallel_size} come behind: the baseline was measured at that"
            " one, and nothing says that the model fits fewer ranks."
        )
    elif all(option.memory is None for option in options):
        yield "Whether the model fits was not checked; the best size is the smallest one into which it does."


def _line(case: _Case, option: LayoutOption) -> str:
    name = f"{option.instance_count} x {layout_name(option.layout)}"
    lost = upper_end(option.extra_ttft_seconds)
    loss = f"at most {in_seconds(lost)} of a prompt" if lost else "nothing"
    if lost and option.extra_ttft_fraction is not None:
        loss = f"at most {100 * upper_end(option.extra_ttft_fraction):.1f} % of the TTFT"
    every = in_seconds(_seconds_of_one_prompt(case, option) / option.instance_count)
    what = "transfers and arithmetic" if case.compute_seconds is not None else "transfers alone"
    return f"{name}: loses {loss}; all nodes together take a prompt every {every}, counting {what}."


def _left_out(case: _Case, layout: ParallelLayout, *, is_checked: bool) -> tuple[Effect, ...]:
    unchecked = () if is_checked else (Effect.MEMORY_FIT,)
    return (*unchecked, Effect.FIXED_OVERHEAD, *prefill_effects(_prompt(case, layout)))


def _prompt(case: _Case, layout: ParallelLayout) -> PrefillWorkload:
    return PrefillWorkload(
        model=case.request.model,
        model_config_json=case.request.model_config_json,
        prompt_tokens=case.request.prompt_tokens,
        max_num_batched_tokens=case.request.max_num_batched_tokens,
        tensor_parallel_size=layout.tensor_parallel_size,
        ranks_per_node=layout.ranks_per_node,
    )


def _load(case: _Case, layout: ParallelLayout) -> FabricLoad:
    return fabric_load(stage_kinds(case.model, layout), prefill_rows(_prompt(case, layout), logits_rows=0))


def _prompt_seconds(case: _Case, layout: ParallelLayout, fabric: Fabric) -> Estimate:
    return prompt_seconds(_prompt(case, layout), case.model, fabric, None)


def _fabric(case: _Case, layout: ParallelLayout) -> Fabric:
    return resolve_fabric(case.request.link, (), case.request.inner_link, layout)


def _reference(case: _Case, layout: ParallelLayout) -> Fabric:
    return resolve_fabric(case.request.reference_link, (), case.request.inner_link, layout)
