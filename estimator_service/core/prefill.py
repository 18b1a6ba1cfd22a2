"""Prompts: what they put on the network, and what a link adds to the time to first token."""

from __future__ import annotations

import math

from estimator_service.core import assumptions
from estimator_service.core.collectives import ring_step_bytes, ring_step_count, sent_bytes
from estimator_service.core.elementwise import ceil_quotient, smaller
from estimator_service.core.feasibility import size_violations
from estimator_service.core.intervals import at_least, exactly
from estimator_service.core.inventory import (
    message_bytes_per_all_reduce,
    sent_bytes_per_logits_row,
    sent_bytes_per_token,
)
from estimator_service.core.links import counter_bytes, resolve, send_seconds
from estimator_service.core.transfers import (
    baseline_violations,
    extra_fraction,
    extra_seconds,
    network_seconds,
    nominal_extra_seconds,
    seconds_after_change,
)
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.catalog import Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Effect, Estimate
from linkbound.domain.link import ResolvedLink
from linkbound.domain.prefill import PassTransfers, PrefillEstimate, PrefillRequest
from linkbound.domain.workload import PrefillWorkload


def prefill_sent_bytes(workload: PrefillWorkload, model: Model, rank_count: int) -> float:
    """Bytes one of `rank_count` ranks sends for all prompts: S = R T s (`docs/formulas.md`, Prefill)."""
    return workload.total_prompt_tokens * sent_bytes_per_token(model, rank_count)


def logits_row_count(workload: PrefillWorkload) -> int:
    """Rows whose logits are gathered: one for each prompt in each pass that it takes part in.

    Prompts fill passes of M tokens back to back, so a row ends wherever a prompt or a pass ends:
    R + ceil(R T / M) - ceil(R T / lcm(M, T)); R where M is not known (`docs/formulas.md`, Prefill).
    """
    pass_tokens = workload.max_num_batched_tokens
    if pass_tokens is None:
        return workload.request_count
    tokens = workload.total_prompt_tokens
    both_end_every = math.lcm(pass_tokens, workload.prompt_tokens)
    return workload.request_count + ceil_quotient(tokens, pass_tokens) - ceil_quotient(tokens, both_end_every)


def pass_transfers(model: Model, rank_count: int, tokens: int, link: ResolvedLink) -> PassTransfers:
    """What one pass of `tokens` tokens puts on the network (`docs/formulas.md`, Prefill)."""
    message_bytes = message_bytes_per_all_reduce(model, tokens)
    sent = sent_bytes(CollectiveKind.ALL_REDUCE, rank_count, message_bytes)
    return PassTransfers(
        tokens=tokens,
        message_bytes_per_all_reduce=message_bytes,
        sent_bytes_per_all_reduce=round(sent),
        ring_step_count=ring_step_count(CollectiveKind.ALL_REDUCE, rank_count),
        sent_bytes_per_ring_step=round(ring_step_bytes(rank_count, message_bytes)),
        send_seconds_per_all_reduce=send_seconds(sent, link.effective_bits_per_second),
    )


def prefill_effects(workload: PrefillWorkload) -> tuple[Effect, ...]:
    """LOGITS_GATHER, and ENGINE_SCHEDULE where several prompts share the engine (`docs/formulas.md`, Prefill)."""
    return (Effect.LOGITS_GATHER, *((Effect.ENGINE_SCHEDULE,) if workload.request_count > 1 else ()))


def estimate_prefill(request: PrefillRequest, model: Model) -> PrefillEstimate:
    """Bytes on the wire and time bounds of prompts (`docs/formulas.md`, Prefill).

    Raises InvalidArgumentError where the model cannot be cut over the ranks, and where the baseline is below the time
    that the link needs for the bytes.
    """
    workload = request.workload
    rank_count = workload.tensor_parallel_size
    link = resolve(request.link)
    to_link = None if request.to_link is None else resolve(request.to_link)
    links = (link,) if to_link is None else (link, to_link)
    sent = prefill_sent_bytes(workload, model, rank_count)
    violations = (
        *size_violations(model, rank_count, "workload.tensor_parallel_size"),
        *baseline_violations("baseline_ttft_seconds", request.baseline_ttft_seconds, sent, link),
    )
    if violations:
        raise InvalidArgumentError(violations)

    baseline = request.baseline_ttft_seconds
    network = network_seconds(sent, link, prefill_effects(workload))
    extra = None if to_link is None else extra_seconds(sent, link, to_link, prefill_effects(workload))
    pass_tokens = workload.max_num_batched_tokens
    return PrefillEstimate(
        model=model.model_id,
        tensor_parallel_size=rank_count,
        prompt_tokens=workload.prompt_tokens,
        request_count=workload.request_count,
        all_reduce_count=model.all_reduce_count,
        sent_bytes_per_prompt_token=round(sent_bytes_per_token(model, rank_count)),
        sent_bytes_per_rank=round(sent),
        counter_bytes_per_rank=round(counter_bytes(sent, link.roce_mtu_bytes)),
        logits_gather_bytes_per_rank=round(logits_row_count(workload) * sent_bytes_per_logits_row(model, rank_count)),
        link=link,
        to_link=to_link,
        network_seconds=network,
        ttft_seconds=_ttft_seconds(workload, sent, baseline, link, to_link),
        extra_ttft_seconds=extra,
        extra_ttft_fraction=None if extra is None or baseline is None else extra_fraction(extra, baseline),
        network_share_fraction=None if baseline is None else network.lower / baseline,
        nominal_extra_ttft_seconds=None if to_link is None else nominal_extra_seconds(sent, link, to_link),
        largest_pass=None
        if pass_tokens is None
        else pass_transfers(model, rank_count, smaller(workload.total_prompt_tokens, pass_tokens), link),
        assumptions=(
            *assumptions.of_links(*links),
            *assumptions.of_counters(link),
            *assumptions.of_prefill(workload),
        ),
        baseline_ttft_seconds=baseline,
        estimator_version=ESTIMATOR_VERSION,
    )


def _ttft_seconds(
    workload: PrefillWorkload,
    sent: float,
    baseline_seconds: float | None,
    link: ResolvedLink,
    to_link: ResolvedLink | None,
) -> Estimate:
    """TTFT over `to_link`, or over `link` without one; the baseline is measured over `link`."""
    if baseline_seconds is None:
        network = network_seconds(sent, to_link or link, prefill_effects(workload))
        return at_least(
            network.lower,
            network.lower_basis,
            constraint=network.binding_constraint,
            effects=(
                Effect.COMPUTE_TIME,
                Effect.FIXED_OVERHEAD,
                *network.effects_left_out,
            ),
        )
    if to_link is None:
        return exactly(baseline_seconds, Basis.MEASURED)
    extra = extra_seconds(sent, link, to_link, prefill_effects(workload))
    return seconds_after_change(extra, baseline_seconds, network_seconds(sent, to_link).lower)
