"""How the loss from a slower link changes with the tensor-parallel size."""

from __future__ import annotations

from attrs import frozen

from estimator_service.core import assumptions
from estimator_service.core.elementwise import larger, quotient
from estimator_service.core.feasibility import infeasible_reasons, size_violations
from estimator_service.core.intervals import (
    between,
    combined_basis,
    exactly,
    link_basis,
    link_effects,
    mapped,
    upper_end,
)
from estimator_service.core.links import resolve, send_seconds
from estimator_service.core.prefill import prefill_effects, prefill_sent_bytes
from estimator_service.core.transfers import baseline_violations, extra_seconds
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.catalog import Model
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.link import ResolvedLink
from linkbound.domain.tp_projection import TpProjection, TpProjectionRequest, TpSizeProjection
from linkbound.domain.workload import PrefillWorkload

_LEFT_OUT = (Effect.MEMORY_FIT, Effect.FIXED_OVERHEAD)


@frozen(kw_only=True)
class SplitBaseline:
    """A measured TTFT, split into network and arithmetic at the size at which it was measured."""

    rank_count: int
    sent_bytes: float
    ttft_seconds: float
    compute_seconds: float


def split_baseline(workload: PrefillWorkload, model: Model, link: ResolvedLink, ttft_seconds: float) -> SplitBaseline:
    """Splits a TTFT measured over `link` without overlap: c = T - 8 S / B (`docs/formulas.md`, TP projection)."""
    rank_count = workload.tensor_parallel_size
    sent = prefill_sent_bytes(workload, model, rank_count)
    return SplitBaseline(
        rank_count=rank_count,
        sent_bytes=sent,
        ttft_seconds=ttft_seconds,
        compute_seconds=ttft_seconds - send_seconds(sent, link.effective_bits_per_second),
    )


def projected_compute_seconds(baseline: SplitBaseline, rank_count: int) -> float:
    """Arithmetic of one rank at another size: c N_0 / N (`docs/formulas.md`, TP projection)."""
    return baseline.compute_seconds * baseline.rank_count / rank_count


def project_tp_sizes(request: TpProjectionRequest, model: Model) -> TpProjection:
    """The loss at each size asked, infeasible ones included (`docs/formulas.md`, TP projection).

    Raises InvalidArgumentError where the model cannot be cut over the ranks of the baseline, and where the baseline is
    below the time that its link needs for the bytes.
    """
    workload = request.workload
    link, to_link = resolve(request.link), resolve(request.to_link)
    baseline = split_baseline(workload, model, link, request.baseline_ttft_seconds)
    violations = (
        *size_violations(model, workload.tensor_parallel_size, "workload.tensor_parallel_size"),
        *baseline_violations("baseline_ttft_seconds", baseline.ttft_seconds, baseline.sent_bytes, link),
    )
    if violations:
        raise InvalidArgumentError(violations)
    return TpProjection(
        projections=tuple(
            _projection(workload, model, baseline, (link, to_link), size) for size in request.tensor_parallel_sizes
        ),
        assumptions=(
            *assumptions.of_links(link, to_link),
            assumptions.NO_CACHED_PREFIX,
            assumptions.EVEN_COMPUTE,
            assumptions.NO_OVERLAP,
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def projected_ttft_seconds(baseline: SplitBaseline, network_seconds: float, rank_count: int) -> tuple[float, float]:
    """TTFT at another size, from everything hidden to nothing: [max(t_N, c N_0/N), t_N + T N_0/N].

    The arithmetic within the baseline T lies between c = T - t_0, if no transfer was hidden, and T, if all were
    (`docs/formulas.md`, TP projection).
    """
    scale = baseline.rank_count / rank_count
    return larger(network_seconds, baseline.compute_seconds * scale), network_seconds + baseline.ttft_seconds * scale


def _projection(
    workload: PrefillWorkload,
    model: Model,
    baseline: SplitBaseline,
    links: tuple[ResolvedLink, ResolvedLink],
    rank_count: int,
) -> TpSizeProjection:
    sent = prefill_sent_bytes(workload, model, rank_count)
    network_seconds = send_seconds(sent, links[0].effective_bits_per_second)
    unhidden_seconds = network_seconds + projected_compute_seconds(baseline, rank_count)
    left_out = (*_LEFT_OUT, *prefill_effects(workload))
    extra = extra_seconds(sent, *links, left_out)
    reasons = infeasible_reasons(model, rank_count)
    return TpSizeProjection(
        tensor_parallel_size=rank_count,
        sent_bytes_per_rank=round(sent),
        sent_bytes_ratio=sent / baseline.sent_bytes if baseline.sent_bytes else None,
        compute_ratio=baseline.rank_count / rank_count,
        ttft_seconds=_ttft_seconds(
            baseline, network_seconds, links[0], rank_count, (*link_effects(links[0]), *left_out)
        ),
        extra_ttft_seconds=extra,
        extra_ttft_fraction=mapped(
            extra,
            quotient(extra.lower, unhidden_seconds, if_zero=0.0),
            quotient(upper_end(extra), unhidden_seconds, if_zero=0.0),
            Basis.MEASURED,
        ),
        feasible=not reasons,
        reasons=reasons,
    )


def _ttft_seconds(
    baseline: SplitBaseline,
    network_seconds: float,
    link: ResolvedLink,
    rank_count: int,
    effects: tuple[Effect, ...],
) -> Estimate:
    """TTFT over `link` at `rank_count` ranks: the measured one at its own size, else the projected interval."""
    if rank_count == baseline.rank_count:
        return exactly(baseline.ttft_seconds, Basis.MEASURED)
    lower, upper = projected_ttft_seconds(baseline, network_seconds, rank_count)
    return between(
        lower,
        upper,
        combined_basis(Basis.MEASURED, link_basis(link)),
        constraint=Constraint.NETWORK_BANDWIDTH if lower == network_seconds else Constraint.COMPUTE,
        effects=effects,
    )
