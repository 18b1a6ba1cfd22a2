"""Laws 7 and 8 of `docs/invariants.md`: one rank sends nothing, and eight send 7/6 of what four do."""

from __future__ import annotations

from typing import TypeVar

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from estimator_service.core.feasibility import infeasible_reasons
from estimator_service.core.memory import memory_need
from linkbound.domain.catalog import Model
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import LinkComparisonRequest
from linkbound.domain.planning import SlowestLinkRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.property.estimator_strategies import (
    ESTIMATOR,
    LINKS,
    MODELS,
    TRAINING_REQUESTS,
    projection_requests,
)
from tests.property.layout_strategies import (
    comparison_requests,
    cuts,
    decode_requests,
    prefill_requests,
    recommendation_requests,
)

Workload = TypeVar("Workload", PrefillWorkload, DecodeWorkload)


def alone(workload: Workload) -> Workload:
    """The same work on one rank."""
    return attrs.evolve(
        workload,
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        data_parallel_size=1,
        expert_parallelism=ExpertParallelism.UNSPECIFIED,
        ranks_per_node=1,
    )


def nothing(*estimates: Estimate | None) -> None:
    for estimate in estimates:
        assert estimate is not None
        assert (estimate.lower, estimate.upper) == (0, 0)
        assert estimate.expected in (None, 0)


@given(prefill_requests(), LINKS)
def test_prompts(request: PrefillRequest, to_link: Link) -> None:
    workload = alone(request.workload)
    answer = ESTIMATOR.estimate_prefill(attrs.evolve(request, workload=workload, to_link=to_link, rank_links=()))
    assert answer.sent_bytes_per_prompt_token == answer.sent_bytes_per_rank == answer.counter_bytes_per_rank == 0
    assert answer.logits_gather_bytes_per_rank == 0
    assert answer.traffic == ()
    nothing(answer.network_seconds, answer.extra_ttft_seconds)
    if answer.nominal_extra_ttft_seconds is not None:
        nothing(answer.nominal_extra_ttft_seconds)
    if answer.largest_pass is not None:
        assert answer.largest_pass.sent_bytes_per_all_reduce == answer.largest_pass.sent_bytes_per_ring_step == 0
        assert answer.largest_pass.ring_step_count == answer.largest_pass.send_seconds_per_all_reduce == 0
    if request.baseline_ttft_seconds is not None:
        assert answer.ttft_seconds.lower == answer.ttft_seconds.upper == request.baseline_ttft_seconds
        assert answer.network_share_fraction == 0


@given(decode_requests(), LINKS)
def test_passes(request: DecodeRequest, to_link: Link) -> None:
    workload = alone(request.workload)
    answer = ESTIMATOR.estimate_decode(attrs.evolve(request, workload=workload, to_link=to_link, rank_links=()))
    assert answer.sent_bytes_per_pass == answer.sent_bytes_per_all_reduce == answer.logits_gather_bytes_per_rank == 0
    assert answer.traffic == ()
    nothing(answer.network_seconds, answer.extra_pass_seconds, answer.traffic_bits_per_second)


@given(prefill_requests(), LINKS, LINKS)
def test_a_comparison_of_links(request: PrefillRequest, old_link: Link, new_link: Link) -> None:
    workload = alone(request.workload)
    answer = ESTIMATOR.compare_links(LinkComparisonRequest(prefill=workload, old_link=old_link, new_link=new_link))
    assert answer.sent_bytes_per_rank == 0
    nothing(answer.old_network_seconds, answer.new_network_seconds, answer.extra_seconds)
    assert (answer.speedup_ratio.lower, answer.speedup_ratio.upper) == (1, 1)


@given(projection_requests())
def test_a_projection(request: TpProjectionRequest) -> None:
    asked = attrs.evolve(request, tensor_parallel_sizes=(1,))
    (projection,) = ESTIMATOR.project_tp_sizes(asked).projections
    assert projection.sent_bytes_per_rank == 0
    nothing(projection.extra_ttft_seconds, projection.extra_ttft_fraction)


@given(comparison_requests())
def test_layouts_of_one_node(request: LayoutComparisonRequest) -> None:
    workload = attrs.evolve(request.workload, node_count=1, ranks_per_node=1)
    (layout,) = ESTIMATOR.compare_layouts(attrs.evolve(request, workload=workload)).layouts
    assert layout.sent_bytes_per_rank == layout.inner_sent_bytes_per_rank == 0
    nothing(layout.network_seconds, layout.single_network_seconds)
    assert layout.bubble_fraction == 0


@given(recommendation_requests())
def test_instances_of_one_rank(request: LayoutRecommendationRequest) -> None:
    options = ESTIMATOR.recommend_layout(request).options
    (single,) = [option for option in options if option.layout.rank_count == 1]
    assert single.sent_bytes_per_rank == 0
    nothing(single.extra_ttft_seconds)


@given(TRAINING_REQUESTS)
def test_a_training_step(request: TrainingStepRequest) -> None:
    answer = ESTIMATOR.estimate_training_step(attrs.evolve(request, rank_count=1))
    assert answer.sent_bytes_per_rank == 0
    nothing(answer.sync_seconds)
    assert answer.step_seconds.lower == answer.step_seconds.upper == request.compute_step_seconds
    assert answer.scaling_efficiency_fraction.lower == answer.scaling_efficiency_fraction.upper == 1


@given(prefill_requests(), st.floats(1e-3, 1e3))
def test_every_link_keeps_a_target(request: PrefillRequest, target_seconds: float) -> None:
    workload = alone(request.workload)
    answer = ESTIMATOR.find_slowest_link(SlowestLinkRequest(workload=workload, target_ttft_seconds=target_seconds))
    assert answer.slowest_bits_per_second.lower == 0


@given(cuts(), st.integers(1, 10**6), st.integers(1, 1000))
def test_memory_of_one_rank(cut: tuple[Model, ParallelLayout], context_tokens: int, request_count: int) -> None:
    """It keeps no buffers of a collective library."""
    model, _ = cut
    layout = ParallelLayout(tensor_parallel_size=1)
    hardware = ESTIMATOR.get_hardware("dgx-spark")
    need = memory_need(model, layout, hardware, context_tokens, request_count)
    assert need is None or need.communication_buffer_bytes == 0


def sent_at(model: Model, size: int) -> tuple[int, int]:
    """Bytes of prompts and of a pass whose payload a rank's share divides."""
    link = Link(line_rate_bits_per_second=10**11)
    prompts = PrefillWorkload(model=model.model_id, tensor_parallel_size=size, prompt_tokens=8000, request_count=3)
    passes = DecodeWorkload(model=model.model_id, tensor_parallel_size=size, request_count=8)
    prefill = ESTIMATOR.estimate_prefill(PrefillRequest(workload=prompts, link=link))
    decode = ESTIMATOR.estimate_decode(DecodeRequest(workload=passes, link=link))
    return prefill.sent_bytes_per_rank, decode.sent_bytes_per_pass


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.model_id)
def test_four_ranks_send_three_halves_of_two(model: Model) -> None:
    for at_four, at_two in zip(sent_at(model, 4), sent_at(model, 2), strict=True):
        assert 0 < at_four * 2 == at_two * 3


@pytest.mark.parametrize(
    "model", [model for model in MODELS if not infeasible_reasons(model, 8)], ids=lambda model: model.model_id
)
def test_eight_ranks_send_seven_sixths_of_four(model: Model) -> None:
    for at_eight, at_four in zip(sent_at(model, 8), sent_at(model, 4), strict=True):
        assert 0 < at_eight * 6 == at_four * 7


@given(st.sampled_from(MODELS), st.integers(1, 10**9), LINKS)
def test_a_projection_keeps_the_ratio_for_models_that_cannot_be_cut_too(
    model: Model, prompt_tokens: int, link: Link
) -> None:
    workload = PrefillWorkload(model=model.model_id, tensor_parallel_size=4, prompt_tokens=prompt_tokens)
    needed = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=link)).network_seconds.lower
    assume(needed < 1e8)
    four, eight = ESTIMATOR.project_tp_sizes(
        TpProjectionRequest(
            workload=workload,
            baseline_ttft_seconds=max(needed * 2, 1e-6),
            link=link,
            to_link=link,
            tensor_parallel_sizes=(4, 8),
        )
    ).projections
    assert four.sent_bytes_ratio == 1
    assert eight.sent_bytes_ratio == pytest.approx(7 / 6, rel=1e-15)
