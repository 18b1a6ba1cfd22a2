"""Prompts: what they put on the network, and what a link adds to the time to first token."""

from __future__ import annotations

import math

from attrs import evolve

from estimator_service.core import assumptions
from estimator_service.core.collectives import ring_step_bytes, ring_step_count, sent_bytes
from estimator_service.core.elementwise import Real, ceil_quotient, smaller
from estimator_service.core.intervals import at_least, exactly
from estimator_service.core.inventory import message_bytes_per_all_reduce, sent_bytes_per_token
from estimator_service.core.layouts.calibrated import (
    Passes,
    calibrated_transfers,
    with_calibrated_change,
    with_calibration,
)
from estimator_service.core.layouts.cut import model_cut
from estimator_service.core.layouts.fabric import fabric_baseline_violations, fabric_seconds, resolve_fabric
from estimator_service.core.layouts.load import (
    RowCounts,
    busiest_group_requests,
    busiest_kind,
    bytes_of_one_token,
    fabric_load,
    load_violations,
    logits_bytes,
    prefill_rows,
    traffic_rows,
)
from estimator_service.core.links import send_seconds
from estimator_service.core.packets import link_counter_bytes
from estimator_service.core.transfers import (
    extra_fraction,
    extra_seconds,
    nominal_extra_seconds,
    seconds_after_change,
)
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.calibration import Calibration
from linkbound.domain.catalog import Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Effect, Estimate
from linkbound.domain.link import ResolvedLink
from linkbound.domain.prefill import PassTransfers, PrefillEstimate, PrefillRequest
from linkbound.domain.workload import PrefillWorkload


def sent_bytes_of_tokens(token_count: Real, sent_bytes_of_one: Real) -> Real:
    """Bytes one rank sends for `token_count` prompt tokens, of numbers or arrays (`docs/formulas.md`, Prefill)."""
    return token_count * sent_bytes_of_one


def prefill_sent_bytes(workload: PrefillWorkload, model: Model, rank_count: int) -> float:
    """Bytes one of `rank_count` ranks sends for all prompts: S = R T s (`docs/formulas.md`, Prefill)."""
    return sent_bytes_of_tokens(workload.total_prompt_tokens, sent_bytes_per_token(model, rank_count))


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


def group_workload(workload: PrefillWorkload) -> PrefillWorkload:
    """The prompts of the attention group that has most of them (`docs/formulas.md`, Prefill)."""
    if workload.data_parallel_size == 1:
        return workload
    return evolve(workload, request_count=busiest_group_requests(workload.request_count, workload.layout))


def prefill_passes(workload: PrefillWorkload) -> tuple[Passes, ...]:
    """Full passes, then the last one where it is shorter; without max_num_batched_tokens one for each prompt.

    (`docs/formulas.md`, Prefill)
    """
    whole = prefill_rows(workload, logits_rows=0)
    tokens = group_workload(workload).total_prompt_tokens
    largest = smaller(tokens, workload.max_num_batched_tokens or workload.prompt_tokens)
    full_count, left_over = divmod(tokens, largest)
    sizes = ((largest, full_count), *(((left_over, 1),) if left_over else ()))
    return tuple(
        Passes(
            counts=RowCounts(group_tokens=size, any_tokens=size * whole.any_tokens / whole.group_tokens, logits_rows=0),
            repeat_count=count,
        )
        for size, count in sizes
    )


def estimate_prefill(request: PrefillRequest, model: Model, calibration: Calibration | None = None) -> PrefillEstimate:
    """Bytes on the wire and time bounds of prompts (`docs/formulas.md`, Prefill).

    Raises InvalidArgumentError where the model cannot be cut as the layout says, and where the baseline is below the
    time that the links need for the bytes.
    """
    workload = request.workload
    layout = workload.layout
    fabric = resolve_fabric(request.link, request.rank_links, request.inner_link, layout)
    to_fabric = None
    if request.to_link is not None:
        to_fabric = resolve_fabric(request.to_link, request.rank_links, request.inner_link, layout)
    cut = model_cut(model, layout)
    kinds = cut.kinds
    logits_rows = logits_row_count(group_workload(workload))
    counts = prefill_rows(workload, logits_rows)
    tokens = counts.without_logits
    load = fabric_load(kinds, tokens)
    baseline = request.baseline_ttft_seconds
    violations = (
        *cut.violations_at("workload."),
        *load_violations(load, "workload.prompt_tokens"),
        *fabric_baseline_violations("baseline_ttft_seconds", baseline, load, fabric),
    )
    if violations:
        raise InvalidArgumentError(violations)

    passes = () if calibration is None else prefill_passes(workload)
    calibrated = calibrated_transfers(kinds, passes, calibration, fabric)
    effects = prefill_effects(workload)
    network = with_calibration(fabric_seconds(load, fabric, effects), calibrated)
    new_network, extra = network, None
    if to_fabric is not None:
        to_calibrated = calibrated_transfers(kinds, passes, calibration, to_fabric)
        new_network = with_calibration(fabric_seconds(load, to_fabric, effects), to_calibrated)
        extra = with_calibrated_change(
            extra_seconds(load.outer.sequential_bytes, fabric.kindest, to_fabric.kindest, effects),
            calibrated,
            to_calibrated,
        )
    busiest = busiest_kind(kinds, tokens)
    pass_tokens = workload.max_num_batched_tokens
    per_token = bytes_of_one_token(busiest.outer, counts)
    sent = load.outer.busiest_bytes
    return PrefillEstimate(
        model=model.model_id,
        tensor_parallel_size=layout.tensor_parallel_size,
        prompt_tokens=workload.prompt_tokens,
        request_count=workload.request_count,
        all_reduce_count=cut.all_reduce_count,
        sent_bytes_per_prompt_token=round(per_token),
        sent_bytes_per_rank=round(sent),
        counter_bytes_per_rank=round(link_counter_bytes(sent, fabric.outer)),
        logits_gather_bytes_per_rank=round(logits_bytes(kinds, logits_rows)),
        link=fabric.outer,
        to_link=None if to_fabric is None else to_fabric.outer,
        network_seconds=network,
        ttft_seconds=_ttft_seconds(baseline, new_network, extra),
        extra_ttft_seconds=extra,
        extra_ttft_fraction=None if extra is None or baseline is None else extra_fraction(extra, baseline),
        network_share_fraction=None if baseline is None else network.lower / baseline,
        nominal_extra_ttft_seconds=None
        if to_fabric is None
        else nominal_extra_seconds(load.outer.sequential_bytes, fabric.kindest, to_fabric.kindest),
        largest_pass=None
        if pass_tokens is None
        else pass_transfers(
            model,
            layout.tensor_parallel_size,
            smaller(group_workload(workload).total_prompt_tokens, pass_tokens),
            fabric.outer,
        ),
        layout=layout,
        inner_link=fabric.inner,
        traffic=traffic_rows(busiest.rows, counts),
        assumptions=(
            *assumptions.of_fabric(
                layout, (*fabric.links, *(to_fabric.links if to_fabric else ())), fabric.slowest_index
            ),
            *assumptions.of_inner_link(request.inner_link, layout.ranks_per_node),
            *assumptions.of_counters(fabric.outer),
            *assumptions.of_prefill(workload),
            *cut.assumptions,
            *assumptions.of_calibrated_layout(calibration, is_covering=calibrated is not None),
        ),
        baseline_ttft_seconds=baseline,
        estimator_version=ESTIMATOR_VERSION,
    )


def _ttft_seconds(baseline_seconds: float | None, new_network: Estimate, extra: Estimate | None) -> Estimate:
    """TTFT over the link to change to, or over the link without one; the baseline is measured over the link."""
    if baseline_seconds is None:
        return at_least(
            new_network.lower,
            new_network.lower_basis,
            constraint=new_network.binding_constraint,
            effects=(
                Effect.COMPUTE_TIME,
                Effect.FIXED_OVERHEAD,
                *new_network.effects_left_out,
            ),
        )
    if extra is None:
        return exactly(baseline_seconds, Basis.MEASURED)
    return seconds_after_change(extra, baseline_seconds, new_network.lower)
