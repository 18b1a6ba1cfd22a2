"""One workload over two links, and what a measurement over an emulated link says of the real one."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from estimator_service.core import assumptions
from estimator_service.core.elementwise import larger, quotient, smaller
from estimator_service.core.intervals import between, mapped, upper_end
from estimator_service.core.layouts.fabric import fabric_baseline_violations, fabric_seconds, resolve_fabric
from estimator_service.core.layouts.feasibility import layout_violations
from estimator_service.core.layouts.load import FabricLoad, decode_rows, fabric_load, load_violations, prefill_rows
from estimator_service.core.layouts.rows import stage_kinds
from estimator_service.core.links import resolve
from estimator_service.core.prefill import prefill_effects
from estimator_service.core.transfers import (
    baseline_violations,
    extra_fraction,
    extra_seconds,
    seconds_after_change,
)
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.catalog import Model
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.estimate import Basis, Effect, Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import ResolvedLink
from linkbound.domain.link_comparison import EmulatedLink, EmulationResult, LinkComparison, LinkComparisonRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload


@frozen(kw_only=True)
class _Load:
    """A workload as a comparison needs it: layout, bytes, and the effects and assumptions it brings.

    `prefix` is the path of the workload in the request.
    """

    layout: ParallelLayout
    prefix: str
    carried: FabricLoad
    effects: tuple[Effect, ...]
    assumptions: tuple[str, ...]

    @property
    def least_bytes(self) -> float:
        """What the link between nodes carries before anything can be ready."""
        return self.carried.outer.pipelined_bytes

    @property
    def sequential_bytes(self) -> float:
        """What the link between nodes carries of every stage, one after another."""
        return self.carried.outer.sequential_bytes


def compare_links(request: LinkComparisonRequest, model: Model) -> LinkComparison:
    """What the workload gains or loses from the old to the new link (`docs/formulas.md`, Link comparison).

    Raises InvalidArgumentError where the model cannot be cut as the layout says, and where a measured time is below
    what its link needs for the bytes.
    """
    load = _load_of(request.workload, model)
    old, new = (
        resolve_fabric(link, (), request.inner_link, load.layout) for link in (request.old_link, request.new_link)
    )
    violations = (
        *layout_violations(model, load.layout, load.prefix),
        *load_violations(load.carried, f"{load.prefix}request_count"),
        *fabric_baseline_violations("baseline_seconds", request.baseline_seconds, load.carried, old),
        *_emulation_violations(request.emulation, load),
    )
    if violations:
        raise InvalidArgumentError(violations)

    baseline = request.baseline_seconds
    old_network, new_network = (fabric_seconds(load.carried, fabric, load.effects) for fabric in (old, new))
    extra = extra_seconds(load.sequential_bytes, old.outer, new.outer, load.effects)
    emulation = _emulation_of(request, load, new.outer)
    return LinkComparison(
        sent_bytes_per_rank=round(load.carried.outer.busiest_bytes),
        old_link=old.outer,
        new_link=new.outer,
        old_network_seconds=old_network,
        new_network_seconds=new_network,
        extra_seconds=extra,
        extra_fraction=None if baseline is None else extra_fraction(extra, baseline),
        speedup_ratio=network_speedup_ratio(old_network, new_network, extra)
        if baseline is None
        else whole_speedup_ratio(baseline, seconds_after_change(extra, baseline, new_network.lower)),
        emulation=emulation,
        assumptions=(
            *assumptions.of_fabric(load.layout, (*old.links, *new.links), None),
            *assumptions.of_inner_link(request.inner_link, load.layout.ranks_per_node),
            *load.assumptions,
            *assumptions.of_layout(load.layout),
            *_emulation_assumptions(request.emulation),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def network_speedup_ratio(old_network: Estimate, new_network: Estimate, extra: Estimate) -> Estimate:
    """Old over new network time at each end, the less one first; 1 where nothing is sent.

    (`docs/formulas.md`, Link comparison)
    """
    at_ends = (
        quotient(old_network.lower, new_network.lower, if_zero=1.0),
        quotient(upper_end(old_network), upper_end(new_network), if_zero=1.0),
    )
    return between(
        smaller(*at_ends),
        larger(*at_ends),
        extra.lower_basis,
        constraint=extra.binding_constraint,
        effects=extra.effects_left_out,
    )


def whole_speedup_ratio(baseline_seconds: float, new_seconds: Estimate) -> Estimate:
    """T / (T + d) over the ends of T + d (`docs/formulas.md`, Link comparison)."""
    return mapped(
        new_seconds,
        baseline_seconds / upper_end(new_seconds),
        baseline_seconds / new_seconds.lower,
        Basis.MEASURED,
    )


def emulation_result(baseline_seconds: float, emulated_seconds: float, real_link_extra: Estimate) -> EmulationResult:
    """A measured increase x carried over to the real link: from x / T to (x + d) / T (`docs/formulas.md`, Emulation).

    d is what the real link adds to the emulated one; where the real link is faster, d is negative and the lower end.
    """
    measured_seconds = emulated_seconds - baseline_seconds
    measured_fraction = measured_seconds / baseline_seconds
    return EmulationResult(
        measured_extra_seconds=measured_seconds,
        measured_extra_fraction=measured_fraction,
        real_link_extra_seconds=real_link_extra,
        real_link_extra_fraction=mapped(
            real_link_extra,
            measured_fraction + real_link_extra.lower / baseline_seconds,
            measured_fraction + upper_end(real_link_extra) / baseline_seconds,
            Basis.MEASURED,
        ),
    )


def _load_of(workload: PrefillWorkload | DecodeWorkload, model: Model) -> _Load:
    layout = workload.layout
    kinds = stage_kinds(model, layout)
    if isinstance(workload, PrefillWorkload):
        return _Load(
            layout=layout,
            prefix="prefill.",
            carried=fabric_load(kinds, prefill_rows(workload, logits_rows=0)),
            effects=prefill_effects(workload),
            assumptions=(assumptions.NO_CACHED_PREFIX,),
        )
    return _Load(
        layout=layout,
        prefix="decode.",
        carried=fabric_load(kinds, decode_rows(workload)),
        effects=(),
        assumptions=assumptions.of_decode(workload),
    )


def _emulation_of(request: LinkComparisonRequest, load: _Load, new_link: ResolvedLink) -> EmulationResult | None:
    emulation, baseline, workload = request.emulation, request.baseline_seconds, request.prefill
    if emulation is None or baseline is None or workload is None:
        return None
    carried = load.sequential_bytes
    if emulation.counter_bytes_per_prompt_token is not None:
        carried = float(emulation.counter_bytes_per_prompt_token * workload.total_prompt_tokens)
    real_link_extra = extra_seconds(carried, resolve(emulation.link), new_link, load.effects)
    return emulation_result(baseline, emulation.ttft_seconds, real_link_extra)


def _emulation_violations(emulation: EmulatedLink | None, load: _Load) -> Iterator[Violation]:
    if emulation is not None:
        link = resolve(emulation.link)
        yield from baseline_violations("emulation.ttft_seconds", emulation.ttft_seconds, load.least_bytes, link)


def _emulation_assumptions(emulation: EmulatedLink | None) -> tuple[str, ...]:
    if emulation is None:
        return ()
    measured = emulation.counter_bytes_per_prompt_token is not None
    return (assumptions.ALIKE_OTHERWISE, assumptions.COUNTED_BYTES if measured else assumptions.FORMULA_BYTES)
