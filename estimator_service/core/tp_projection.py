"""How the loss from a slower link changes with the tensor-parallel size."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve, frozen

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
from estimator_service.core.memory import MemorySettings, countable_need, feasibility_of, memory_need
from estimator_service.core.prefill import prefill_effects, prefill_sent_bytes
from estimator_service.core.transfers import baseline_violations, extra_seconds
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import ResolvedLink
from linkbound.domain.memory import DEFAULT_MAX_NUM_BATCHED_TOKENS, MemoryNeed
from linkbound.domain.tp_projection import TpProjection, TpProjectionRequest, TpSizeProjection
from linkbound.domain.workload import PrefillWorkload


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


@frozen(kw_only=True)
class _Case:
    # What is the same at every size.
    workload: PrefillWorkload
    model: Model
    hardware: Hardware | None
    baseline: SplitBaseline
    links: tuple[ResolvedLink, ResolvedLink]


def project_tp_sizes(request: TpProjectionRequest, model: Model, hardware: Hardware | None = None) -> TpProjection:
    """The loss at each size asked, infeasible ones included (`docs/formulas.md`, TP projection).

    With `hardware`, a size is feasible only where weights and the caches of the prompts fit into its memory. Raises
    InvalidArgumentError where the model cannot be cut over the ranks of the baseline, and where the baseline is below
    the time that its link needs for the bytes.
    """
    workload = request.workload
    link, to_link = resolve(request.link), resolve(request.to_link)
    baseline = split_baseline(workload, model, link, request.baseline_ttft_seconds)
    violations = (
        *_layout_violations(workload.layout),
        *size_violations(model, workload.tensor_parallel_size, "workload.tensor_parallel_size"),
        *baseline_violations("baseline_ttft_seconds", baseline.ttft_seconds, baseline.sent_bytes, link),
    )
    if violations:
        raise InvalidArgumentError(violations)
    case = _Case(workload=workload, model=model, hardware=hardware, baseline=baseline, links=(link, to_link))
    needs = [_memory_need(case, size) for size in request.tensor_parallel_sizes]
    return TpProjection(
        projections=tuple(
            _projection(case, need, size) for size, need in zip(request.tensor_parallel_sizes, needs, strict=True)
        ),
        assumptions=(
            *assumptions.of_links(link, to_link),
            assumptions.NO_CACHED_PREFIX,
            assumptions.EVEN_COMPUTE,
            assumptions.NO_OVERLAP,
            *(assumptions.of_memory_check(model, is_known=None not in needs) if hardware is not None else ()),
            *(assumptions.of_weight_format(model) if hardware is not None else ()),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def _layout_violations(layout: ParallelLayout) -> Iterator[Violation]:
    """What a baseline is projected from and to is one tensor-parallel group."""
    if layout != ParallelLayout(tensor_parallel_size=layout.tensor_parallel_size):
        yield Violation("workload", "is cut otherwise than over one tensor-parallel group of one rank per node")


def projected_ttft_seconds(baseline: SplitBaseline, network_seconds: float, rank_count: int) -> tuple[float, float]:
    """TTFT at another size, from everything hidden to nothing: [max(t_N, c N_0/N), t_N + T N_0/N].

    The arithmetic within the baseline T lies between c = T - t_0, if no transfer was hidden, and T, if all were
    (`docs/formulas.md`, TP projection).
    """
    scale = baseline.rank_count / rank_count
    return larger(network_seconds, baseline.compute_seconds * scale), network_seconds + baseline.ttft_seconds * scale


def _memory_need(case: _Case, rank_count: int) -> MemoryNeed | None:
    if case.hardware is None:
        return None
    workload = case.workload
    batched_tokens = workload.max_num_batched_tokens or DEFAULT_MAX_NUM_BATCHED_TOKENS
    return memory_need(
        case.model,
        evolve(workload.layout, tensor_parallel_size=rank_count),
        case.hardware,
        workload.prompt_tokens,
        workload.request_count,
        MemorySettings(max_num_batched_tokens=batched_tokens),
    )


def _projection(case: _Case, need: MemoryNeed | None, rank_count: int) -> TpSizeProjection:
    workload, model, baseline, links = case.workload, case.model, case.baseline, case.links
    sent = prefill_sent_bytes(workload, model, rank_count)
    network_seconds = send_seconds(sent, links[0].effective_bits_per_second)
    unhidden_seconds = network_seconds + projected_compute_seconds(baseline, rank_count)
    unchecked = (Effect.MEMORY_FIT,) if need is None else ()
    left_out = (*unchecked, Effect.FIXED_OVERHEAD, *prefill_effects(workload))
    extra = extra_seconds(sent, *links, left_out)
    verdict = feasibility_of(infeasible_reasons(model, rank_count), need, case.hardware)
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
        feasible=verdict.feasible,
        reasons=verdict.reasons,
        memory=countable_need(need),
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
