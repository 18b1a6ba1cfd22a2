"""Generation: what one pass puts on the network, and the floors under its time."""

from __future__ import annotations

from attrs import frozen

from estimator_service.core import assumptions
from estimator_service.core.collectives import sent_bytes
from estimator_service.core.elementwise import larger, quotient, smaller
from estimator_service.core.feasibility import size_violations
from estimator_service.core.intervals import at_least, between, link_basis, link_effects, network_constraint
from estimator_service.core.inventory import (
    message_bytes_per_all_reduce,
    sent_bytes_per_logits_row,
    sent_bytes_per_token,
)
from estimator_service.core.links import resolve, send_seconds
from estimator_service.core.transfers import extra_seconds
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.link import BITS_PER_BYTE, ResolvedLink
from linkbound.domain.workload import DecodeWorkload


def rows_per_pass(workload: DecodeWorkload) -> int:
    """Token rows of one pass: n = R (1 + D) (`docs/formulas.md`, Decode)."""
    return workload.request_count * workload.rows_per_request


def logits_gather_bytes(workload: DecodeWorkload, model: Model) -> float:
    """Bytes one rank sends to gather the logits of each row of a pass (`docs/formulas.md`, Decode)."""
    return rows_per_pass(workload) * sent_bytes_per_logits_row(model, workload.tensor_parallel_size)


def pass_sent_bytes(workload: DecodeWorkload, model: Model) -> float:
    """Bytes one rank sends in one pass, logits gather included: S = n (s + s_logits) (`docs/formulas.md`, Decode)."""
    per_token = sent_bytes_per_token(model, workload.tensor_parallel_size)
    return rows_per_pass(workload) * per_token + logits_gather_bytes(workload, model)


def active_weight_bytes(model: Model, rank_count: int) -> float | None:
    """Weight bytes one rank reads in a pass, at least: W = A q / (8 N); None where the model does not say.

    Several tokens may use other experts, and weights that every rank holds whole count as cut: both add to it
    (`docs/formulas.md`, Decode).
    """
    if model.active_parameters is None or model.weight_bits_per_parameter is None:
        return None
    return model.active_parameters * model.weight_bits_per_parameter / BITS_PER_BYTE / rank_count


@frozen(kw_only=True)
class PassFloor:
    """The time that no pass goes below, what sets it, and where the number comes from."""

    seconds: float
    constraint: Constraint
    basis: Basis


def pass_floor(sent: float, link: ResolvedLink, weight_bytes: float | None, hardware: Hardware | None) -> PassFloor:
    """Floor of a pass: max(W / M, 8 S / B), and 8 S / B where W or M is not known (`docs/formulas.md`, Decode)."""
    network_seconds = send_seconds(sent, link.effective_bits_per_second)
    weight_seconds = 0.0
    if weight_bytes is not None and hardware is not None:
        weight_seconds = weight_bytes / hardware.memory_bandwidth_bytes_per_second
    memory_bound = weight_seconds > network_seconds
    return PassFloor(
        seconds=larger(weight_seconds, network_seconds),
        constraint=Constraint.MEMORY_BANDWIDTH if memory_bound else network_constraint(sent),
        basis=Basis.FORMULA if memory_bound else link_basis(link),
    )


def estimate_decode(request: DecodeRequest, model: Model, hardware: Hardware | None) -> DecodeEstimate:
    """Bytes, floor and traffic of generation; `hardware` None: no memory rate (`docs/formulas.md`, Decode).

    Raises InvalidArgumentError where the model cannot be cut over the ranks.
    """
    workload = request.workload
    rank_count = workload.tensor_parallel_size
    violations = tuple(size_violations(model, rank_count, "workload.tensor_parallel_size"))
    if violations:
        raise InvalidArgumentError(violations)

    link = resolve(request.link)
    to_link = None if request.to_link is None else resolve(request.to_link)
    sent = pass_sent_bytes(workload, model)
    message_bytes = message_bytes_per_all_reduce(model, rows_per_pass(workload))
    sent_per_all_reduce = sent_bytes(CollectiveKind.ALL_REDUCE, rank_count, message_bytes)
    weight_bytes = None if hardware is None else active_weight_bytes(model, rank_count)
    floor = pass_floor(sent, link, weight_bytes, hardware)
    left_out = _effects(link, weight_bytes)
    return DecodeEstimate(
        model=model.model_id,
        tensor_parallel_size=rank_count,
        request_count=workload.request_count,
        rows_per_pass=rows_per_pass(workload),
        all_reduce_count=model.all_reduce_count,
        message_bytes_per_all_reduce=message_bytes,
        sent_bytes_per_all_reduce=round(sent_per_all_reduce),
        logits_gather_bytes_per_rank=round(logits_gather_bytes(workload, model)),
        sent_bytes_per_pass=round(sent),
        send_seconds_per_all_reduce=send_seconds(sent_per_all_reduce, link.effective_bits_per_second),
        active_weight_bytes_per_rank=None if weight_bytes is None else round(weight_bytes),
        pass_seconds=at_least(floor.seconds, floor.basis, constraint=floor.constraint, effects=left_out),
        traffic_bits_per_second=_traffic(sent, link, floor, left_out),
        extra_pass_seconds=None if to_link is None else extra_seconds(sent, link, to_link),
        output_tokens_per_second=_output(workload, floor, left_out),
        link=link,
        to_link=to_link,
        assumptions=(
            *assumptions.of_links(*((link,) if to_link is None else (link, to_link))),
            *assumptions.of_decode(workload),
            *assumptions.of_weights(weight_bytes),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def _effects(link: ResolvedLink, weight_bytes: float | None) -> tuple[Effect, ...]:
    weights = (Effect.WEIGHT_READ,) if weight_bytes is None else ()
    return (Effect.COMPUTE_TIME, Effect.KV_CACHE_READ, Effect.FIXED_OVERHEAD, *weights, *link_effects(link))


def _traffic(sent: float, link: ResolvedLink, floor: PassFloor, effects: tuple[Effect, ...]) -> Estimate:
    """From nothing to the bytes of a pass over its floor, which no link exceeds: min(B, 8 S / floor)."""
    at_floor = quotient(sent * BITS_PER_BYTE, floor.seconds, if_zero=0.0)
    return between(
        0.0,
        smaller(link.effective_bits_per_second, at_floor),
        floor.basis,
        constraint=floor.constraint,
        effects=effects,
    )


def _output(workload: DecodeWorkload, floor: PassFloor, effects: tuple[Effect, ...]) -> Estimate | None:
    """From nothing to the accepted tokens of one request over the floor; None where either is not known."""
    accepted = workload.acceptance_length_tokens
    if accepted is None:
        if workload.draft_token_count:
            return None
        accepted = 1.0
    if not floor.seconds:
        return at_least(0.0, floor.basis, effects=effects)
    return between(0.0, accepted / floor.seconds, floor.basis, constraint=floor.constraint, effects=effects)
