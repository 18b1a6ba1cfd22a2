"""Projecting a measured TTFT to other tensor-parallel sizes."""

import pytest
from attrs import evolve

from estimator_service.core import assumptions
from estimator_service.core.memory import MEMORY_NOT_KNOWN
from estimator_service.core.tp_projection import project_tp_sizes
from linkbound.domain.catalog import ModelPart
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect
from linkbound.domain.link import Link
from linkbound.domain.tp_projection import TpProjectionRequest, TpSizeProjection
from linkbound.domain.workload import PrefillWorkload
from tests.unit.estimator.memory_models import HARDWARE, HEADS_CACHE, group
from tests.unit.estimator.models import small_model

# 100 tokens, 60 bytes each at TP2, 90 at TP4, over 80 bit/s: 600 and 900 s; 1,000 s of arithmetic at TP2.
LINK = Link(line_rate_bits_per_second=80)
TO_LINK = Link(line_rate_bits_per_second=40)


def project(*sizes: int, baseline_size: int = 2, baseline_seconds: float = 1600) -> tuple[TpSizeProjection, ...]:
    request = TpProjectionRequest(
        workload=PrefillWorkload(model="small", tensor_parallel_size=baseline_size, prompt_tokens=100),
        baseline_ttft_seconds=baseline_seconds,
        link=LINK,
        to_link=TO_LINK,
        tensor_parallel_sizes=sizes,
    )
    return project_tp_sizes(request, small_model()).projections


def test_the_size_of_the_baseline_is_as_measured() -> None:
    (same,) = project(2)
    assert same.ttft_seconds.lower == same.ttft_seconds.upper == 1600
    assert same.ttft_seconds.lower_basis is Basis.MEASURED
    assert (same.sent_bytes_ratio, same.compute_ratio) == (1, 1)
    assert same.extra_ttft_fraction.upper == pytest.approx(600 / 1600)


def test_bytes_grow_and_arithmetic_shrinks() -> None:
    (twice,) = project(4)
    assert twice.sent_bytes_per_rank == 9000
    assert (twice.sent_bytes_ratio, twice.compute_ratio) == (1.5, 0.5)
    # From all transfers hidden, then and now, to none of them: the arithmetic at TP2 took 1,000 to 1,600 s.
    assert twice.ttft_seconds.lower == 900
    assert twice.ttft_seconds.upper == pytest.approx(900 + 800)
    assert twice.ttft_seconds.binding_constraint is Constraint.NETWORK_BANDWIDTH
    assert twice.ttft_seconds.lower_basis is twice.ttft_seconds.upper_basis is Basis.MIXED
    assert twice.extra_ttft_seconds.lower == 0
    assert twice.extra_ttft_seconds.upper == pytest.approx(900)
    assert twice.extra_ttft_fraction.upper == pytest.approx(900 / 1400)
    for effect in (Effect.MEMORY_FIT, Effect.FIXED_OVERHEAD, Effect.LOGITS_GATHER, Effect.COLLECTIVE_LATENCY):
        assert effect in twice.ttft_seconds.effects_left_out
        assert effect in twice.extra_ttft_fraction.effects_left_out
    assert Effect.COMPUTE_OVERLAP in twice.extra_ttft_fraction.effects_left_out
    assert Effect.COMPUTE_OVERLAP not in twice.ttft_seconds.effects_left_out


def test_arithmetic_that_outlasts_the_transfers_is_the_floor() -> None:
    (twice,) = project(4, baseline_seconds=4600)
    assert twice.ttft_seconds.lower == pytest.approx(2000)
    assert twice.ttft_seconds.upper == pytest.approx(900 + 2300)
    assert twice.ttft_seconds.binding_constraint is Constraint.COMPUTE


def test_one_rank_sends_nothing_and_computes_all() -> None:
    (alone,) = project(1)
    assert alone.sent_bytes_per_rank == 0
    assert alone.sent_bytes_ratio == 0
    assert (alone.ttft_seconds.lower, alone.ttft_seconds.upper) == (2000, 3200)
    assert alone.extra_ttft_seconds.upper == alone.extra_ttft_fraction.upper == 0


def test_from_one_rank_there_is_no_ratio_of_bytes() -> None:
    (pair,) = project(2, baseline_size=1, baseline_seconds=2000)
    assert pair.sent_bytes_ratio is None
    assert pair.compute_ratio == 0.5
    # One rank sends nothing, so its TTFT is arithmetic alone: 1,000 s a rank at TP2.
    assert (pair.ttft_seconds.lower, pair.ttft_seconds.upper) == (1000, 1600)


def test_a_baseline_of_nothing_but_transfers_leaves_no_arithmetic() -> None:
    (alone,) = project(1, baseline_seconds=600)
    assert (alone.ttft_seconds.lower, alone.ttft_seconds.upper) == (0, 1200)
    assert alone.extra_ttft_fraction.lower == alone.extra_ttft_fraction.upper == 0


def test_infeasible_sizes_are_answered_with_their_reasons() -> None:
    fitting, odd = project(8, 3)
    assert fitting.feasible
    assert fitting.reasons == ()
    assert not odd.feasible
    assert odd.reasons[0] == "3 ranks do not divide 8 attention heads"
    assert odd.sent_bytes_per_rank == 8000
    assert [fitting.tensor_parallel_size, odd.tensor_parallel_size] == [8, 3]


def test_hardware_makes_memory_part_of_what_is_feasible() -> None:
    model = evolve(
        small_model(),
        parameter_groups=(group(ModelPart.ATTENTION, 8_000_000_000, layers=1),),
        cache_groups=(evolve(HEADS_CACHE, layer_count=1),),
    )
    request = TpProjectionRequest(
        workload=PrefillWorkload(model="small", tensor_parallel_size=4, prompt_tokens=100),
        baseline_ttft_seconds=1600,
        link=LINK,
        to_link=TO_LINK,
        tensor_parallel_sizes=(1, 4, 3),
        hardware="box",
    )
    answer = project_tp_sizes(request, model, HARDWARE)
    alone, four, odd = answer.projections
    assert not alone.feasible
    assert alone.reasons == ("a rank needs 11.8 GB of memory and may use 9.0 GB: 2.8 GB are missing",)
    assert (four.feasible, four.reasons) == (True, ())
    assert odd.reasons[0] == "3 ranks do not divide 8 attention heads"
    assert Effect.MEMORY_FIT not in four.extra_ttft_seconds.effects_left_out
    assert assumptions.MEMORY_CHECK in answer.assumptions


def test_what_a_model_does_not_say_of_its_memory_is_left_out_in_words() -> None:
    request = TpProjectionRequest(
        workload=PrefillWorkload(model="small", tensor_parallel_size=2, prompt_tokens=100),
        baseline_ttft_seconds=1600,
        link=LINK,
        to_link=TO_LINK,
        tensor_parallel_sizes=(2,),
        hardware="box",
    )
    answer = project_tp_sizes(request, small_model(), HARDWARE)
    assert answer.projections[0].feasible is None
    assert answer.projections[0].reasons == (MEMORY_NOT_KNOWN,)
    assert Effect.MEMORY_FIT in answer.projections[0].extra_ttft_seconds.effects_left_out
    assert assumptions.MEMORY_UNKNOWN.format("small") in answer.assumptions


def test_an_impossible_baseline_is_refused_with_every_reason() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        project(2, baseline_size=3, baseline_seconds=1)
    assert [violation.field for violation in raised.value.field_violations] == [
        "workload.tensor_parallel_size",
        "baseline_ttft_seconds",
    ]
