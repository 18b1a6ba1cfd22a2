"""What holds for every answer about a layout, as `test_estimator_answers` holds it for the others."""

from __future__ import annotations

from hypothesis import example, given, reject

from linkbound.domain.decode import DecodeRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.link import Link
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.workload import DecodeWorkload
from tests.property.estimator_strategies import ESTIMATOR
from tests.property.layout_strategies import (
    comparison_requests,
    decode_requests,
    prefill_requests,
    recommendation_requests,
)
from tests.property.question_strategies import LARGEST_CACHE
from tests.property.test_estimator_answers import always_bounded, check


@given(prefill_requests())
def test_prefill_of_a_layout(request: PrefillRequest) -> None:
    answer = ESTIMATOR.estimate_prefill(request)
    check(answer)
    assert always_bounded(answer.network_seconds, answer.extra_ttft_seconds, answer.extra_ttft_fraction)
    assert 0 <= answer.network_seconds.lower <= answer.ttft_seconds.lower or request.to_link is not None
    assert answer.counter_bytes_per_rank >= answer.sent_bytes_per_rank
    assert (answer.inner_link is None) == (request.workload.ranks_per_node == 1)
    if answer.network_share_fraction is not None:
        assert 0 <= answer.network_share_fraction <= 1
    is_calibrated = answer.network_seconds.expected is not None
    assert is_calibrated == (answer.network_seconds.expected_basis is not Basis.UNSPECIFIED)
    for changed in (answer.extra_ttft_seconds, answer.extra_ttft_fraction):
        assert changed is None or (changed.expected is not None) == is_calibrated


@given(decode_requests())
@example(
    DecodeRequest(
        workload=DecodeWorkload(
            model_config_json=LARGEST_CACHE,
            tensor_parallel_size=1,
            request_count=10**5,
            context_tokens=10**6,
            hardware="dgx-spark",
        ),
        link=Link(line_rate_bits_per_second=10**11),
    )
)
@example(
    DecodeRequest(
        workload=DecodeWorkload(
            model="llama-3.1-405b",
            tensor_parallel_size=1,
            request_count=10**5,
            context_tokens=10**6,
            hardware="dgx-spark",
        ),
        link=Link(line_rate_bits_per_second=10**11),
    )
)
def test_decode_of_a_layout(request: DecodeRequest) -> None:
    try:
        answer = ESTIMATOR.estimate_decode(request)
    except InvalidArgumentError:
        # More bytes of cache than an answer can count are refused.
        reject()
    check(answer)
    assert always_bounded(answer.network_seconds, answer.traffic_bits_per_second, answer.extra_pass_seconds)
    assert answer.traffic_bits_per_second.upper is not None
    assert answer.traffic_bits_per_second.upper <= answer.link.effective_bits_per_second
    fraction, extra = answer.extra_pass_fraction, answer.extra_pass_seconds
    assert (fraction is None) == (extra is None)
    if fraction is not None and extra is not None:
        assert always_bounded(fraction)
        assert (fraction.expected is None) == (extra.expected is None)
        assert -1 <= fraction.lower <= 0 <= (fraction.upper or 0)
    assert answer.memory_seconds is None or answer.memory_seconds.lower <= answer.pass_seconds.lower
    assert answer.network_seconds.lower <= answer.pass_seconds.lower


@given(comparison_requests())
def test_layout_comparison(request: LayoutComparisonRequest) -> None:
    answer = ESTIMATOR.compare_layouts(request)
    check(answer)
    for layout in answer.layouts:
        assert (layout.feasible is True) == (not layout.reasons)
        assert always_bounded(layout.network_seconds, layout.single_network_seconds)
        assert 0 <= layout.bubble_fraction < 1
    for choice in (answer.single_stream, answer.batched):
        chosen = () if choice is None else (choice.index, *choice.undecided_indices)
        assert all(answer.layouts[index].feasible is not False for index in chosen)


@given(comparison_requests())
def test_floors_of_a_comparison_are_those_of_single_estimates(request: LayoutComparisonRequest) -> None:
    asked = request.workload
    for one in ESTIMATOR.compare_layouts(request).layouts:
        layout = one.layout
        together = -(-asked.request_count // one.passes_in_flight)
        for compared, request_count in ((one.pass_seconds, together), (one.single_pass_seconds, 1)):
            workload = DecodeWorkload(
                model=asked.model,
                hardware=asked.hardware,
                request_count=request_count,
                draft_token_count=request.draft_token_count,
                context_tokens=asked.prompt_tokens,
                tensor_parallel_size=layout.tensor_parallel_size,
                pipeline_parallel_size=layout.pipeline_parallel_size,
                data_parallel_size=layout.data_parallel_size,
                expert_parallelism=layout.expert_parallelism,
                ranks_per_node=layout.ranks_per_node,
            )
            single = DecodeRequest(
                workload=workload,
                link=request.link,
                inner_link=request.inner_link if layout.ranks_per_node > 1 else None,
                collective_table=request.collective_table,
                calibration=request.calibration,
            )
            try:
                alone = ESTIMATOR.estimate_decode(single).pass_seconds
            except InvalidArgumentError:
                # A layout that the model cannot be cut to is compared, and says why it cannot be run.
                assert one.feasible is False
                continue
            assert compared == alone


@given(recommendation_requests())
def test_recommendation(request: LayoutRecommendationRequest) -> None:
    answer = ESTIMATOR.recommend_layout(request)
    check(answer)
    for option in answer.options:
        assert (option.feasible is True) == (not option.reasons)
        with_baseline = (option.ttft_seconds, option.last_ttft_seconds, option.extra_ttft_fraction)
        assert always_bounded(option.extra_ttft_seconds, *with_baseline)
        assert [one is None for one in with_baseline] == [request.baseline_ttft_seconds is None] * 3
