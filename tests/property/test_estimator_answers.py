"""What holds for every answer to every question: ordered ends, whole numbers of 64 bits, nothing infinite."""

import math
import re
from typing import Any

import attrs
from hypothesis import example, given, reject, settings

from linkbound.domain.calibration import FitCalibrationRequest
from linkbound.domain.collective import CollectiveAlgorithm
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import LARGEST_QUANTITY, Basis, Effect, Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link_comparison import LinkComparisonRequest
from linkbound.domain.memory import MemoryFitRequest
from linkbound.domain.planning import PlanRequest, SlowestLinkRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.rules import violations_of
from linkbound.domain.sizing import SizeClusterRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.training import TrainingStepRequest
from tests.property.estimator_strategies import (
    COLLECTIVE_REQUESTS,
    DECODE_REQUESTS,
    ESTIMATOR,
    TRAINING_REQUESTS,
    comparison_requests,
    parts_of,
    prefill_requests,
    projection_requests,
)
from tests.property.question_strategies import (
    LARGEST_CACHE,
    PLAN_REQUESTS,
    SIZE_REQUESTS,
    collective_requests,
    fit_requests,
    memory_requests,
    slowest_link_requests,
    training_requests,
)


def check(answer: attrs.AttrsInstance) -> None:
    assert list(violations_of(answer)) == []
    for part in parts_of(answer):
        if isinstance(part, Estimate):
            check_estimate(part)
        elif isinstance(part, int):
            assert -(2**63) <= part < 2**63
        elif isinstance(part, float):
            assert math.isfinite(part)


def check_estimate(estimate: Estimate) -> None:
    assert abs(estimate.lower) <= LARGEST_QUANTITY
    assert estimate.lower_basis is not Basis.UNSPECIFIED
    assert (estimate.upper is None) == (estimate.upper_basis is Basis.UNSPECIFIED)
    if estimate.upper is not None:
        assert estimate.lower <= estimate.upper <= LARGEST_QUANTITY
    order = list(Effect)
    positions = [order.index(effect) for effect in estimate.effects_left_out]
    assert positions == sorted(set(positions))


def always_bounded(*estimates: Estimate | None) -> bool:
    return all(estimate is None or estimate.upper is not None for estimate in estimates)


@given(prefill_requests())
def test_prefill(request: PrefillRequest) -> None:
    answer = ESTIMATOR.estimate_prefill(request)
    check(answer)
    assert always_bounded(answer.network_seconds, answer.extra_ttft_seconds, answer.extra_ttft_fraction)
    assert (answer.extra_ttft_seconds is None) == (request.to_link is None)
    assert answer.ttft_seconds.lower >= 0
    assert answer.counter_bytes_per_rank >= answer.sent_bytes_per_rank
    if answer.network_share_fraction is not None:
        assert 0 <= answer.network_share_fraction <= 1


@given(DECODE_REQUESTS)
def test_decode(request: DecodeRequest) -> None:
    answer = ESTIMATOR.estimate_decode(request)
    check(answer)
    assert always_bounded(answer.traffic_bits_per_second, answer.extra_pass_seconds)
    assert answer.traffic_bits_per_second.upper is not None
    assert answer.traffic_bits_per_second.upper <= answer.link.effective_bits_per_second
    if request.workload.draft_token_count and request.workload.acceptance_length_tokens is None:
        assert answer.output_tokens_per_second is None


@given(COLLECTIVE_REQUESTS)
def test_collective(request: CollectiveRequest) -> None:
    answer = ESTIMATOR.estimate_collective(request)
    check(answer)
    assert always_bounded(answer.bus_bandwidth_bytes_per_second, answer.algorithm_bandwidth_bytes_per_second)
    assert (answer.seconds is None) == (request.message_bytes is None) == (answer.sent_bytes_per_rank is None)


def check_training_step(request: TrainingStepRequest) -> None:
    answer = ESTIMATOR.estimate_training_step(request)
    check(answer)
    assert always_bounded(answer.sync_seconds, answer.step_seconds, answer.scaling_efficiency_fraction)
    assert answer.step_seconds.lower >= request.compute_step_seconds
    assert answer.scaling_efficiency_fraction.upper is not None
    assert 0 <= answer.scaling_efficiency_fraction.lower <= answer.scaling_efficiency_fraction.upper <= 1


@given(TRAINING_REQUESTS)
def test_training_step(request: TrainingStepRequest) -> None:
    check_training_step(request)


@given(training_requests())
def test_training_step_of_any_kind(request: TrainingStepRequest) -> None:
    check_training_step(request)


@given(comparison_requests())
def test_link_comparison(request: LinkComparisonRequest) -> None:
    answer = ESTIMATOR.compare_links(request)
    check(answer)
    assert always_bounded(answer.extra_seconds, answer.extra_fraction, answer.speedup_ratio)
    assert answer.speedup_ratio.lower > 0
    assert (answer.emulation is None) == (request.emulation is None)


@given(projection_requests())
def test_projection(request: TpProjectionRequest) -> None:
    answer = ESTIMATOR.project_tp_sizes(request)
    check(answer)
    assert [p.tensor_parallel_size for p in answer.projections] == list(request.tensor_parallel_sizes)
    for projection in answer.projections:
        assert (projection.feasible is True) == (not projection.reasons)
        assert always_bounded(projection.ttft_seconds, projection.extra_ttft_seconds, projection.extra_ttft_fraction)


# What a table of measured times is about: it was taken with what the library chose.
LIBRARY_CHOICES = (CollectiveAlgorithm.UNSPECIFIED, CollectiveAlgorithm.RING, CollectiveAlgorithm.AUTO)


@given(collective_requests())
def test_collective_among_nodes(request: CollectiveRequest) -> None:
    answer = ESTIMATOR.estimate_collective(request)
    check(answer)
    assert always_bounded(answer.bus_bandwidth_bytes_per_second, answer.algorithm_bandwidth_bytes_per_second)
    assert [choice.chosen for choice in answer.choices].count(True) == (request.message_bytes is not None)
    assert [choice.seconds for choice in answer.choices] == sorted(choice.seconds for choice in answer.choices)
    if answer.seconds is not None:
        assert answer.seconds.lower > 0
        if request.collective_table is None:
            assert answer.seconds.expected is None
        elif request.algorithm in LIBRARY_CHOICES:
            assert answer.seconds.expected is not None


@given(fit_requests())
def test_calibration(request: FitCalibrationRequest) -> None:
    answer = ESTIMATOR.fit_calibration(request)
    check(answer)
    assert answer.fixed_seconds > 0
    assert 0 < answer.bus_bandwidth_bytes_per_second <= LARGEST_QUANTITY
    assert answer.interval_fraction > 0
    sizes = [point.message_bytes for point in answer.table.points]
    assert sizes == sorted({point.message_bytes for point in request.table.points})
    assert all(residual.error_ratio >= -1 for residual in answer.residuals)


@given(memory_requests())
@example(
    MemoryFitRequest(
        model_config_json=LARGEST_CACHE,
        layout=ParallelLayout(tensor_parallel_size=1),
        hardware="dgx-spark",
        context_tokens=10**6,
        request_count=10**5,
    )
)
@example(
    MemoryFitRequest(
        model="llama-3.1-405b",
        layout=ParallelLayout(tensor_parallel_size=1),
        hardware="dgx-spark",
        context_tokens=10**6,
        request_count=10**5,
    )
)
def test_memory_fit(request: MemoryFitRequest) -> None:
    try:
        answer = ESTIMATOR.check_memory_fit(request)
    except InvalidArgumentError:
        reject()
    check(answer)
    assert answer.fits == (answer.headroom_bytes >= 0)


@given(slowest_link_requests())
@settings(max_examples=20)
def test_slowest_link(request: SlowestLinkRequest) -> None:
    check(ESTIMATOR.find_slowest_link(request))


@given(SIZE_REQUESTS)
def test_cluster_sizing(request: SizeClusterRequest) -> None:
    answer = ESTIMATOR.size_cluster(request)
    check(answer)
    for option in answer.options:
        assert option.switch_count == option.leaf_switch_count + option.spine_switch_count
        assert (option.worst_case_bits_per_second > 0) == (request.node_count > 1)


@given(PLAN_REQUESTS)
@settings(max_examples=20)
def test_plan(request: PlanRequest) -> None:
    try:
        answer = ESTIMATOR.check_plan(request)
    except InvalidArgumentError:
        reject()
    check(answer)
    text = " ".join(sentence for item in answer.items for sentence in (*item.answers, *item.advice))
    assert not re.search(r"\b(nan|inf|None)\b", text)


def test_the_walk_reaches_nested_values() -> None:
    """Guards the checks above: a walk that stops early would find nothing wrong."""

    @attrs.frozen
    class Nest:
        inner: Any

    assert 7 in list(parts_of(Nest((Nest(None), Nest((7,))))))
