"""Data-parallel training: what every rank exchanges in each step."""

from __future__ import annotations

from attrs import evolve, frozen

from estimator_service.core import assumptions
from estimator_service.core.collective_time import calibrated_seconds, covers
from estimator_service.core.collectives import sent_bytes
from estimator_service.core.elementwise import ceil_quotient, larger
from estimator_service.core.intervals import between, combined_basis, upper_end
from estimator_service.core.links import resolve
from estimator_service.core.transfers import network_seconds
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.calibration import Calibration
from linkbound.domain.catalog import Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.link import ResolvedLink
from linkbound.domain.training import TrainingSharding, TrainingStepEstimate, TrainingStepRequest

BUCKET_BYTES = 25 * 2**20
"""What PyTorch DDP gathers of gradients before it starts an all-reduce (`bucket_cap_mb=25`)."""

_ANSWERED = Effect.COMPUTE_OVERLAP
"""The ends of a step are those of overlap."""


@frozen(kw_only=True)
class TrainedBytes:
    """What a step handles: gradients of all that is trained, and the parameters that a sharded step gathers."""

    gradient_bytes: int
    parameter_bytes: int


@frozen(kw_only=True)
class Exchange:
    """One kind of collective of a step, in all its parts together: how often it goes through all of `message_bytes`."""

    kind: CollectiveKind
    message_bytes: int
    count: int = 1


def trained_bytes(request: TrainingStepRequest, model: Model | None) -> TrainedBytes:
    """Gradients G and parameters P of a step, in bytes (`docs/formulas.md`, Training).

    G as given and P as much; else b for each parameter of the model (without MTP layers), or for each one of the
    adapters, which come on top of the frozen parameters in P. Raises InvalidArgumentError where nobody states how many
    parameters the model has.
    """
    if model is None:
        gradient_bytes = request.gradient_bytes or 0
        return TrainedBytes(gradient_bytes=gradient_bytes, parameter_bytes=gradient_bytes)
    if model.total_parameters is None:
        raise InvalidArgumentError([Violation("model", f"no source states how many parameters {model.model_id} has")])
    model_bytes = model.total_parameters * request.value_bytes
    if request.lora_parameters is None:
        return TrainedBytes(gradient_bytes=model_bytes, parameter_bytes=model_bytes)
    adapter_bytes = request.lora_parameters * request.value_bytes
    return TrainedBytes(gradient_bytes=adapter_bytes, parameter_bytes=model_bytes + adapter_bytes)


def exchanges(trained: TrainedBytes, sharding: TrainingSharding) -> tuple[Exchange, ...]:
    """The collectives of a step (`docs/formulas.md`, Training).

    DDP: an all-reduce of G. ZeRO-1, ZeRO-2: a reduce-scatter of G and an all-gather of what it updates, as much. FSDP
    and ZeRO-3: an all-gather of P before the forward and before the backward pass, and a reduce-scatter of G.
    """
    gradients = Exchange(kind=CollectiveKind.REDUCE_SCATTER, message_bytes=trained.gradient_bytes)
    match sharding:
        case TrainingSharding.OPTIMIZER:
            return (gradients, Exchange(kind=CollectiveKind.ALL_GATHER, message_bytes=trained.gradient_bytes))
        case TrainingSharding.FULL:
            gathers = Exchange(kind=CollectiveKind.ALL_GATHER, message_bytes=trained.parameter_bytes, count=2)
            return (gathers, gradients)
        case _:
            return (Exchange(kind=CollectiveKind.ALL_REDUCE, message_bytes=trained.gradient_bytes),)


def step_sent_bytes(step: tuple[Exchange, ...], rank_count: int) -> float:
    """Bytes one rank sends in a step, over all its collectives (`docs/formulas.md`, Training)."""
    return sum(exchange.count * sent_bytes(exchange.kind, rank_count, exchange.message_bytes) for exchange in step)


def exchange_seconds(
    step: tuple[Exchange, ...], rank_count: int, link: ResolvedLink, calibration: Calibration | None
) -> Estimate:
    """Time of the exchange over `link`: [t, t], t = 8 S / B (`docs/formulas.md`, Training).

    Where `calibration` covers every collective of the step: n times that of one bucket of G / n bytes, n = ceil(G / 25
    MiB), one bucket after another.
    """
    on_wire = network_seconds(step_sent_bytes(step, rank_count), link)
    if calibration is None or not is_covered(step, rank_count, calibration):
        return on_wire
    bucket_count = sum(_bucket_count(exchange) for exchange in step)
    bucket_bytes = sum(exchange.count * exchange.message_bytes for exchange in step) / bucket_count
    one = calibrated_seconds(calibration, bucket_bytes, link)
    return evolve(
        one,
        lower=larger(bucket_count * one.lower, on_wire.lower),
        expected=None if one.expected is None else larger(bucket_count * one.expected, on_wire.lower),
        upper=larger(bucket_count * upper_end(one), on_wire.lower),
    )


def is_covered(step: tuple[Exchange, ...], rank_count: int, calibration: Calibration) -> bool:
    """Whether `calibration` stands for every collective of a step (`docs/formulas.md`, Training)."""
    return all(covers(calibration, exchange.kind, rank_count) for exchange in step)


def estimate_training_step(
    request: TrainingStepRequest, model: Model | None = None, calibration: Calibration | None = None
) -> TrainingStepEstimate:
    """Bytes, exchange and step time; `model` and `calibration` where the request says them.

    (`docs/formulas.md`, Training)

    Step: max(compute, exchange) if the exchange is hidden behind arithmetic in full, compute + exchange if none of it
    is. Efficiency: compute over step.
    """
    link = resolve(request.link)
    compute_seconds = request.compute_step_seconds
    trained = trained_bytes(request, model)
    step = exchanges(trained, request.sharding)
    sent = step_sent_bytes(step, request.rank_count)
    sync = exchange_seconds(step, request.rank_count, link, calibration)
    fastest_seconds = larger(compute_seconds, sync.lower)
    slowest_seconds = compute_seconds + upper_end(sync)
    basis = combined_basis(Basis.MEASURED, sync.lower_basis, sync.upper_basis) if sent else Basis.MEASURED
    constraint = sync.binding_constraint if sync.lower > compute_seconds else Constraint.COMPUTE
    left_out = (
        (Effect.STRAGGLERS, *(effect for effect in sync.effects_left_out if effect is not _ANSWERED)) if sent else ()
    )
    return TrainingStepEstimate(
        sent_bytes_per_rank=round(sent),
        sync_seconds=sync,
        step_seconds=between(fastest_seconds, slowest_seconds, basis, constraint=constraint, effects=left_out),
        scaling_efficiency_fraction=between(
            compute_seconds / slowest_seconds,
            compute_seconds / fastest_seconds,
            basis,
            constraint=constraint,
            effects=left_out,
        ),
        link=link,
        compute_step_seconds=compute_seconds,
        gradient_bytes=trained.gradient_bytes,
        assumptions=(
            *assumptions.of_links(link),
            *assumptions.of_training(request),
            *_calibration_assumptions(step, request.rank_count, calibration),
        ),
        estimator_version=ESTIMATOR_VERSION,
    )


def _bucket_count(exchange: Exchange) -> int:
    return exchange.count * ceil_quotient(exchange.message_bytes, BUCKET_BYTES)


def _calibration_assumptions(
    step: tuple[Exchange, ...], rank_count: int, calibration: Calibration | None
) -> tuple[str, ...]:
    covered = calibration is not None and is_covered(step, rank_count, calibration)
    buckets = (assumptions.GRADIENT_BUCKETS,) if covered else ()
    return (*assumptions.of_collective_calibration(calibration, is_covered=covered), *buckets)
