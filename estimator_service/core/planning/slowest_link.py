"""The slowest link that keeps a TTFT target: the TTFT over a link, solved for its rate."""

from __future__ import annotations

from attrs import frozen

from estimator_service.core import assumptions
from estimator_service.core.elementwise import larger, smaller
from estimator_service.core.intervals import combined_basis, link_basis, ordered_effects
from estimator_service.core.layouts.load import FabricLoad, fabric_load, prefill_rows
from estimator_service.core.layouts.rows import stage_kinds
from estimator_service.core.links import resolve, send_seconds
from estimator_service.core.prefill import estimate_prefill
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.catalog import Model
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.link import BITS_PER_BYTE, LARGEST_RATE_BITS_PER_SECOND, Link
from linkbound.domain.link_presets import LINK_PRESETS, LinkPreset
from linkbound.domain.planning import LinkVerdict, SlowestLink, SlowestLinkRequest, Verdict
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.workload import PrefillWorkload

NO_LINK_KEEPS_IT = (
    "No link keeps it: what is not network in the baseline, at least {arithmetic:.3g} s, takes longer than the target."
)
NOT_BY_A_LINK_ALONE = (
    "The target is below the baseline: a faster link shortens TTFT by what of the {network:.3g} s on the network was"
    " not hidden behind arithmetic, and nobody measured how much that is."
)
ONLY_THE_NETWORK = "Without a baseline only the time on the network is known; arithmetic comes on top."
NOTHING_IS_SENT = "Nothing is sent between nodes: every link keeps it."
NO_LINK_MATTERS = "Nothing is sent between nodes: every link is fast enough."
TOO_SLOW_WITHIN_NODES = "No link between nodes keeps it: those within nodes need {inner:.3g} s."

_ANY_LINK = Link(line_rate_bits_per_second=LARGEST_RATE_BITS_PER_SECOND)


@frozen(kw_only=True)
class Target:
    """A TTFT to keep, the bytes in the way, and the baseline with the time that its link needed; None without one.

    `sent_bytes` follow one another where nothing overlaps, and `floor_bytes` of them keep the link busy however the
    stages of a pipeline overlap. Without a pipeline both are the same. `inner_seconds` are those that links within
    nodes need, whatever lies between these.
    """

    ttft_seconds: float
    floor_bytes: float
    sent_bytes: float
    baseline_seconds: float | None = None
    baseline_network_seconds: float = 0.0
    inner_seconds: float = 0.0


def needed_bits_per_second(sent_bytes: float, seconds: float) -> float:
    """Rate that carries the bytes in time: B = 8 S / t, at most 10^15, the fastest link there can be; 0 for no bytes.

    (`docs/formulas.md`, Slowest link)
    """
    fastest = float(LARGEST_RATE_BITS_PER_SECOND)
    if not sent_bytes:
        return 0.0
    return smaller(sent_bytes * BITS_PER_BYTE / seconds, fastest) if seconds > 0 else fastest


def slack_seconds(target: Target) -> float:
    """Time left for the network if nothing overlaps: T* - (T - t_0) (`docs/formulas.md`, Slowest link)."""
    if target.baseline_seconds is None:
        return target.ttft_seconds
    return target.ttft_seconds - (target.baseline_seconds - target.baseline_network_seconds)


def least_bits_per_second(target: Target) -> float:
    """Rate below which the target cannot be kept; 10^15 where no link keeps it (`docs/formulas.md`, Slowest link).

    8 S_f / T*: even if every transfer is hidden, the link has to carry the bytes in T*. Where T* is below the baseline
    T, also 8 S / (T* - (T - t_0)): arithmetic takes at least T - t_0. None keeps what links within nodes do not.
    """
    if target.ttft_seconds < target.inner_seconds:
        return float(LARGEST_RATE_BITS_PER_SECOND)
    floor_rate = needed_bits_per_second(target.floor_bytes, target.ttft_seconds)
    if target.baseline_seconds is None or target.ttft_seconds >= target.baseline_seconds:
        return floor_rate
    if slack_seconds(target) <= 0:
        return float(LARGEST_RATE_BITS_PER_SECOND)
    return larger(floor_rate, needed_bits_per_second(target.sent_bytes, slack_seconds(target)))


def enough_bits_per_second(target: Target) -> float | None:
    """Rate from which on the target is kept: 8 S / (T* - T + t_0), nothing overlapped; None where none is known to.

    There is none without a baseline, and none below it (`docs/formulas.md`, Slowest link).
    """
    if target.baseline_seconds is None or target.ttft_seconds < target.baseline_seconds:
        return None
    return needed_bits_per_second(target.sent_bytes, slack_seconds(target))


def find_slowest_link(request: SlowestLinkRequest, model: Model) -> SlowestLink:
    """The slowest effective rate that keeps a TTFT target, as an interval, and links with a name beside it.

    Raises InvalidArgumentError as `estimate_prefill` does (`docs/formulas.md`, Slowest link).
    """
    baseline, target = _baseline_and_target(request, model)
    inner = () if baseline.inner_link is None else (baseline.inner_link,)
    verdicts = sorted(
        (_verdict(request, model, preset) for preset in LINK_PRESETS),
        key=lambda verdict: verdict.link.effective_bits_per_second,
    )
    return SlowestLink(
        slowest_bits_per_second=_slowest(target, baseline),
        presets=tuple(verdicts),
        reasons=_reasons(target),
        assumptions=(
            *assumptions.of_fabric(request.workload.layout, (baseline.link, *inner), None),
            *assumptions.of_inner_link(request.inner_link, request.workload.ranks_per_node),
            *assumptions.of_prefill(request.workload),
            *assumptions.of_layout(request.workload.layout),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def slowest_rate(request: SlowestLinkRequest, model: Model) -> tuple[Estimate, tuple[str, ...]]:
    """The rate alone, without links that have a name, and why its ends are there (`docs/formulas.md`, Slowest link)."""
    baseline, target = _baseline_and_target(request, model)
    return _slowest(target, baseline), _reasons(target)


def prefill_load(workload: PrefillWorkload, model: Model) -> FabricLoad:
    """The bytes of prompts over the links of their layout, logits apart (`docs/formulas.md`, Slowest link)."""
    counts = prefill_rows(workload, logits_rows=0)
    return fabric_load(stage_kinds(model, workload.layout), counts)


def verdict_on(ttft_seconds: Estimate, target_seconds: float) -> Verdict:
    """YES if the upper end keeps it, NO if the lower end does not, else MAYBE (`docs/formulas.md`, Slowest link)."""
    if ttft_seconds.lower > target_seconds:
        return Verdict.NO
    kept = ttft_seconds.upper is not None and ttft_seconds.upper <= target_seconds
    return Verdict.YES if kept else Verdict.MAYBE


def _baseline_and_target(request: SlowestLinkRequest, model: Model) -> tuple[PrefillEstimate, Target]:
    baseline = _over(request, model, None)
    fabric = prefill_load(request.workload, model)
    load, inner_seconds = fabric.outer, 0.0
    if baseline.inner_link is not None:
        inner_rate = baseline.inner_link.effective_bits_per_second
        inner_seconds = send_seconds(fabric.inner.pipelined_bytes, inner_rate)
    return baseline, Target(
        ttft_seconds=request.target_ttft_seconds,
        floor_bytes=load.pipelined_bytes,
        sent_bytes=load.sequential_bytes,
        baseline_seconds=request.baseline_ttft_seconds,
        baseline_network_seconds=send_seconds(load.sequential_bytes, baseline.link.effective_bits_per_second),
        inner_seconds=inner_seconds,
    )


def _over(request: SlowestLinkRequest, model: Model, to_link: Link | None) -> PrefillEstimate:
    """The prompts over the baseline link, and what `to_link` changes; without a baseline, over `to_link` alone."""
    if request.baseline_link is None:
        return estimate_prefill(
            PrefillRequest(workload=request.workload, link=to_link or _ANY_LINK, inner_link=request.inner_link), model
        )
    return estimate_prefill(
        PrefillRequest(
            workload=request.workload,
            link=request.baseline_link,
            to_link=to_link,
            baseline_ttft_seconds=request.baseline_ttft_seconds,
            inner_link=request.inner_link,
        ),
        model,
    )


def _verdict(request: SlowestLinkRequest, model: Model, preset: LinkPreset) -> LinkVerdict:
    ttft = _over(request, model, preset.link).ttft_seconds
    return LinkVerdict(
        preset=preset.name,
        link=resolve(preset.link),
        ttft_seconds=ttft,
        verdict=verdict_on(ttft, request.target_ttft_seconds),
    )


def _slowest(target: Target, baseline: PrefillEstimate) -> Estimate:
    lower, upper = least_bits_per_second(target), enough_bits_per_second(target)
    measured = () if target.baseline_seconds is None else (Basis.MEASURED, link_basis(baseline.link))
    below_the_baseline = target.baseline_seconds is not None and target.ttft_seconds < target.baseline_seconds
    is_hopeless = below_the_baseline and slack_seconds(target) <= 0 and target.ttft_seconds >= target.inner_seconds
    of_arithmetic = (Effect.COMPUTE_TIME, Effect.FIXED_OVERHEAD) if target.baseline_seconds is None else ()
    return Estimate(
        lower=lower,
        upper=upper,
        lower_basis=combined_basis(*measured) if below_the_baseline else Basis.FORMULA,
        upper_basis=Basis.UNSPECIFIED if upper is None else combined_basis(*measured),
        binding_constraint=Constraint.COMPUTE if is_hopeless else baseline.network_seconds.binding_constraint,
        effects_left_out=ordered_effects(
            Effect.COMPUTE_OVERLAP, *of_arithmetic, *baseline.network_seconds.effects_left_out
        ),
    )


def _reasons(target: Target) -> tuple[str, ...]:
    baseline = target.baseline_seconds
    if target.ttft_seconds < target.inner_seconds:
        return (TOO_SLOW_WITHIN_NODES.format(inner=target.inner_seconds),)
    if baseline is None:
        return (ONLY_THE_NETWORK,) if target.sent_bytes else (NO_LINK_MATTERS, ONLY_THE_NETWORK)
    if target.ttft_seconds >= baseline:
        return () if target.sent_bytes else (NOTHING_IS_SENT,)
    if slack_seconds(target) <= 0:
        arithmetic = larger(0.0, baseline - target.baseline_network_seconds)
        return (NO_LINK_KEEPS_IT.format(arithmetic=arithmetic),)
    return (NOT_BY_A_LINK_ALONE.format(network=target.baseline_network_seconds),)
