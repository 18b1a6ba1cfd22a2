"""One collective by itself, and the gradients of a training step."""

import pytest

from estimator_service.core import assumptions
from estimator_service.core.single_collective import estimate_collective
from estimator_service.core.training import estimate_training_step
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.estimate import Basis, Constraint, Effect
from linkbound.domain.link import Link
from linkbound.domain.training import TrainingStepEstimate, TrainingStepRequest

LINK = Link(line_rate_bits_per_second=80)
MEASURED = Link(line_rate_bits_per_second=800, measured_bits_per_second=80)


@pytest.mark.parametrize(
    ("kind", "sent", "steps", "algorithm_bandwidth"),
    [
        (CollectiveKind.ALL_REDUCE, 600, 6, 10 / 1.5),
        (CollectiveKind.ALL_GATHER, 300, 3, 10 / 0.75),
        (CollectiveKind.REDUCE_SCATTER, 300, 3, 10 / 0.75),
        (CollectiveKind.ALL_TO_ALL, 300, 3, 10 / 0.75),
    ],
)
def test_four_ranks(kind: CollectiveKind, sent: int, steps: int, algorithm_bandwidth: float) -> None:
    answer = estimate_collective(CollectiveRequest(kind=kind, rank_count=4, message_bytes=400, link=LINK))
    assert answer.sent_bytes_per_rank == sent
    assert answer.ring_step_count == steps
    assert answer.seconds is not None
    assert answer.seconds.lower == sent / 10
    assert answer.seconds.upper is None
    assert Effect.COLLECTIVE_LATENCY in answer.seconds.effects_left_out
    assert answer.bus_bandwidth_bytes_per_second.lower == 0
    assert answer.bus_bandwidth_bytes_per_second.upper == 10
    assert answer.algorithm_bandwidth_bytes_per_second.upper == pytest.approx(algorithm_bandwidth)
    assert answer.assumptions == (
        assumptions.RING,
        assumptions.ONE_RANK_PER_LINK,
        assumptions.BARE_RATE,
        assumptions.LIBRARY_MODEL,
    )


def test_without_a_size_only_rates_are_answered() -> None:
    answer = estimate_collective(CollectiveRequest(kind=CollectiveKind.ALL_REDUCE, rank_count=2, link=MEASURED))
    assert answer.sent_bytes_per_rank is None
    assert answer.seconds is None
    assert answer.bus_bandwidth_bytes_per_second.upper == 10
    assert answer.bus_bandwidth_bytes_per_second.upper_basis is Basis.MEASURED
    assert assumptions.BARE_RATE not in answer.assumptions


def step(rank_count: int, compute_seconds: float, link: Link = LINK) -> TrainingStepEstimate:
    return estimate_training_step(
        TrainingStepRequest(gradient_bytes=1000, rank_count=rank_count, link=link, compute_step_seconds=compute_seconds)
    )


def test_a_short_exchange_hides_behind_arithmetic() -> None:
    answer = step(2, 400)
    assert answer.sent_bytes_per_rank == 1000
    assert answer.sync_seconds.lower == answer.sync_seconds.upper == 100
    assert (answer.step_seconds.lower, answer.step_seconds.upper) == (400, 500)
    assert answer.step_seconds.binding_constraint is Constraint.COMPUTE
    assert answer.step_seconds.upper_basis is Basis.MIXED
    assert (answer.scaling_efficiency_fraction.lower, answer.scaling_efficiency_fraction.upper) == (0.8, 1)


def test_a_long_exchange_is_the_floor_of_the_step() -> None:
    answer = step(4, 50, MEASURED)
    assert answer.sent_bytes_per_rank == 1500
    assert (answer.step_seconds.lower, answer.step_seconds.upper) == (150, 200)
    assert answer.step_seconds.binding_constraint is Constraint.NETWORK_BANDWIDTH
    assert answer.step_seconds.upper_basis is Basis.MEASURED
    assert answer.scaling_efficiency_fraction.lower == 0.25
    assert answer.scaling_efficiency_fraction.upper == pytest.approx(1 / 3)
    assert answer.compute_step_seconds == 50
    assert answer.assumptions == (
        assumptions.RING,
        assumptions.ONE_RANK_PER_LINK,
        assumptions.ONE_EXCHANGE_PER_STEP,
    )


def test_one_node_exchanges_nothing() -> None:
    answer = step(1, 50)
    assert answer.sent_bytes_per_rank == 0
    assert answer.sync_seconds.lower == answer.sync_seconds.upper == 0
    assert answer.step_seconds.lower == answer.step_seconds.upper == 50
    assert answer.step_seconds.upper_basis is Basis.MEASURED
    assert answer.step_seconds.effects_left_out == ()
    assert answer.scaling_efficiency_fraction.lower == answer.scaling_efficiency_fraction.upper == 1
