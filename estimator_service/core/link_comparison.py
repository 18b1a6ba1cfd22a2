"""One workload over two links, and what a measurement over an emulated link says of the real one."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from estimator_service.core import assumptions
from estimator_service.core.decode import pass_sent_bytes
from estimator_service.core.elementwise import quotient
from estimator_service.core.feasibility import size_violations
from estimator_service.core.intervals import exactly, mapped, upper_end
from estimator_service.core.links import resolve
from estimator_service.core.prefill import prefill_effects, prefill_sent_bytes
from estimator_service.core.transfers import (
    baseline_violations,
    extra_fraction,
    extra_seconds,
    network_seconds,
    seconds_after_change,
)
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.catalog import Model
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.estimate import Basis, Effect, Estimate
from linkbound.domain.link import ResolvedLink
from linkbound.domain.link_comparison import EmulatedLink, EmulationResult, LinkComparison, LinkComparisonRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload


@frozen(kw_only=True)
class _Load:
    """A workload as a comparison needs it: ranks, bytes of one, and the effects and assumptions it brings.

    `size_field` is the path of its tensor-parallel size in the request.
    """

    rank_count: int
    size_field: str
    sent_bytes: float
    effects: tuple[Effect, ...]
    assumptions: tuple[str, ...]


def compare_links(request: LinkComparisonRequest, model: Model) -> LinkComparison:
    """What the workload gains or loses from the old to the new link (`docs/formulas.md`, Link comparison).

    Raises InvalidArgumentError where the model cannot be cut over the ranks, and where a measured time is below what
    its link needs for the bytes.
    """
    load = _load_of(request.workload, model)
    old_link, new_link = resolve(request.old_link), resolve(request.new_link)
    violations = (
        *size_violations(model, load.rank_count, load.size_field),
        *baseline_violations("baseline_seconds", request.baseline_seconds, load.sent_bytes, old_link),
        *_emulation_violations(request.emulation, load),
    )
    if violations:
        raise InvalidArgumentError(violations)

    baseline = request.baseline_seconds
    old_network, new_network = (network_seconds(load.sent_bytes, link, load.effects) for link in (old_link, new_link))
    extra = extra_seconds(load.sent_bytes, old_link, new_link, load.effects)
    emulation = _emulation_of(request, load, new_link)
    return LinkComparison(
        sent_bytes_per_rank=round(load.sent_bytes),
        old_link=old_link,
        new_link=new_link,
        old_network_seconds=old_network,
        new_network_seconds=new_network,
        extra_seconds=extra,
        extra_fraction=None if baseline is None else extra_fraction(extra, baseline),
        speedup_ratio=network_speedup_ratio(old_network, new_network, extra)
        if baseline is None
        else whole_speedup_ratio(baseline, seconds_after_change(extra, baseline, new_network.lower)),
        emulation=emulation,
        assumptions=(
            *assumptions.of_links(old_link, new_link),
            *load.assumptions,
            *_emulation_assumptions(request.emulation),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def network_speedup_ratio(old_network: Estimate, new_network: Estimate, extra: Estimate) -> Estimate:
    """Old over new network time, both ends; 1 where nothing is sent (`docs/formulas.md`, Link comparison)."""
    return exactly(
        quotient(old_network.lower, new_network.lower, if_zero=1.0),
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
    rank_count = workload.tensor_parallel_size
    if isinstance(workload, PrefillWorkload):
        return _Load(
            rank_count=rank_count,
            size_field="prefill.tensor_parallel_size",
            sent_bytes=prefill_sent_bytes(workload, model, rank_count),
            effects=prefill_effects(workload),
            assumptions=(assumptions.NO_CACHED_PREFIX,),
        )
    return _Load(
        rank_count=rank_count,
        size_field="decode.tensor_parallel_size",
        sent_bytes=pass_sent_bytes(workload, model),
        effects=(),
        assumptions=assumptions.of_decode(workload),
    )


def _emulation_of(request: LinkComparisonRequest, load: _Load, new_link: ResolvedLink) -> EmulationResult | None:
    emulation, baseline, workload = request.emulation, request.baseline_seconds, request.prefill
    if emulation is None or baseline is None or workload is None:
        return None
    carried = load.sent_bytes
    if emulation.counter_bytes_per_prompt_token is not None:
        carried = float(emulation.counter_bytes_per_prompt_token * workload.total_prompt_tokens)
    real_link_extra = extra_seconds(carried, resolve(emulation.link), new_link, load.effects)
    return emulation_result(baseline, emulation.ttft_seconds, real_link_extra)


def _emulation_violations(emulation: EmulatedLink | None, load: _Load) -> Iterator[Violation]:
    if emulation is not None:
        link = resolve(emulation.link)
        yield from baseline_violations("emulation.ttft_seconds", emulation.ttft_seconds, load.sent_bytes, link)


def _emulation_assumptions(emulation: EmulatedLink | None) -> tuple[str, ...]:
    if emulation is None:
        return ()
    measured = emulation.counter_bytes_per_prompt_token is not None
    return (assumptions.ALIKE_OTHERWISE, assumptions.COUNTED_BYTES if measured else assumptions.FORMULA_BYTES)
