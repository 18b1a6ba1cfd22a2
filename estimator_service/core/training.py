"""Data-parallel training: the gradients that every rank exchanges in each step."""

from __future__ import annotations

from estimator_service.core import assumptions
from estimator_service.core.collectives import sent_bytes
from estimator_service.core.elementwise import larger
from estimator_service.core.intervals import between, combined_basis, link_effects
from estimator_service.core.links import resolve
from estimator_service.core.transfers import network_seconds
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.estimate import Basis, Constraint, Effect
from linkbound.domain.training import TrainingStepEstimate, TrainingStepRequest


def estimate_training_step(request: TrainingStepRequest) -> TrainingStepEstimate:
    """Bytes, exchange and step time of DDP (`docs/formulas.md`, Training).

    The gradients go around once per step as one ring all-reduce. Step: max(compute, exchange) if the exchange is hidden
    behind the backward pass in full, compute + exchange if none of it is. Efficiency: compute over step.
    """
    link = resolve(request.link)
    compute_seconds = request.compute_step_seconds
    sent = sent_bytes(CollectiveKind.ALL_REDUCE, request.rank_count, request.gradient_bytes)
    sync = network_seconds(sent, link)
    fastest_seconds = larger(compute_seconds, sync.lower)
    slowest_seconds = compute_seconds + sync.lower
    basis = combined_basis(Basis.MEASURED, sync.lower_basis) if sent else Basis.MEASURED
    constraint = Constraint.NETWORK_BANDWIDTH if sync.lower > compute_seconds else Constraint.COMPUTE
    left_out = (Effect.STRAGGLERS, *link_effects(link)) if sent else ()
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
        assumptions=(*assumptions.of_links(link), assumptions.ONE_EXCHANGE_PER_STEP),
        estimator_version=ESTIMATOR_VERSION,
    )
