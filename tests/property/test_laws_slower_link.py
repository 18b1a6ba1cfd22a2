"""Law 3 of `docs/invariants.md`: a slower link costs at most the bandwidth term, and the fixed part keeps its value."""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from estimator_service.core.layouts.comparison import prompts_on
from estimator_service.core.layouts.load import FabricLoad, decode_rows, fabric_load, prefill_rows
from estimator_service.core.layouts.rows import stage_kinds
from linkbound.domain.calibration import CollectivePoint, CollectiveTable
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind, CollectiveProtocol
from linkbound.domain.collective_estimate import CollectiveChoice, CollectiveEstimate, CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import LinkComparisonRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.property.estimator_strategies import ESTIMATOR, RATES, TRAINING_REQUESTS, baselines_over
from tests.property.layout_strategies import (
    decode_requests,
    prefill_requests,
    recommendation_requests,
    tables,
)

FLOAT = 1e-12
RATE_PAIRS = st.lists(RATES, min_size=2, max_size=2).map(sorted)
LL_BYTES_RATIO = 2
HALF_BYTE = 0.5
"""Answers count whole bytes."""


def bare(bits_per_second: int) -> Link:
    return Link(line_rate_bits_per_second=bits_per_second)


def term_seconds(sent_bytes: float, slow: float, fast: float) -> float:
    return sent_bytes * 8 * (1 / slow - 1 / fast)


def load_of(workload: PrefillWorkload | DecodeWorkload) -> FabricLoad:
    kinds = stage_kinds(ESTIMATOR.get_model(workload.model), workload.layout)
    if isinstance(workload, PrefillWorkload):
        return fabric_load(kinds, prefill_rows(workload, logits_rows=0))
    return fabric_load(kinds, decode_rows(workload))


def pairs(before: Estimate, after: Estimate) -> Iterable[tuple[float, float]]:
    ends = (before.lower, after.lower), (before.expected, after.expected), (before.upper, after.upper)
    for first, second in ends:
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            yield first, second


def adds_at_most(before: Estimate, after: Estimate, term: float) -> None:
    """At the upper end of measured times flags may have been on the wire, with LL as many as bytes of the payload."""
    for first, second in pairs(before, after):
        is_measured_upper = before.expected is not None and second == after.upper
        most = LL_BYTES_RATIO * term if is_measured_upper else term
        assert second - first <= most + FLOAT * (abs(first) + abs(second))


@given(prefill_requests(), RATE_PAIRS)
def test_prompts(request: PrefillRequest, rates: list[int]) -> None:
    slow, fast = rates
    # Nodes with links of their own keep them.
    alone = attrs.evolve(request, baseline_ttft_seconds=None, rank_links=(), link=bare(fast), to_link=bare(slow))
    before = ESTIMATOR.estimate_prefill(alone)
    after = ESTIMATOR.estimate_prefill(attrs.evolve(alone, link=bare(slow), to_link=None))
    term = term_seconds(load_of(request.workload).outer.sequential_bytes, slow, fast)
    adds_at_most(before.network_seconds, after.network_seconds, term)
    extra = before.extra_ttft_seconds
    assert extra is not None
    assert extra.upper is not None
    assert extra.lower == 0
    assert abs(extra.upper - term) <= FLOAT * (term + after.network_seconds.lower)


@given(prefill_requests(), RATE_PAIRS, st.data())
def test_a_measured_ttft(request: PrefillRequest, rates: list[int], data: st.DataObject) -> None:
    slow, fast = rates
    asked = attrs.evolve(request, baseline_ttft_seconds=None, rank_links=(), link=bare(fast), to_link=bare(slow))
    needed_seconds = ESTIMATOR.estimate_prefill(asked).network_seconds.lower
    baseline_seconds = data.draw(baselines_over(needed_seconds))
    assume(baseline_seconds is not None)
    assert baseline_seconds is not None
    ttft = ESTIMATOR.estimate_prefill(attrs.evolve(asked, baseline_ttft_seconds=baseline_seconds)).ttft_seconds
    term = term_seconds(load_of(request.workload).outer.sequential_bytes, slow, fast)
    for _, after in pairs(ttft, ttft):
        assert baseline_seconds * (1 - FLOAT) <= after
        assert after - baseline_seconds <= term + FLOAT * (after + baseline_seconds)


@given(prefill_requests(), RATE_PAIRS)
def test_a_link_within_nodes(request: PrefillRequest, rates: list[int]) -> None:
    slow, fast = rates
    alone = attrs.evolve(request, baseline_ttft_seconds=None, to_link=None)
    before = ESTIMATOR.estimate_prefill(attrs.evolve(alone, inner_link=bare(fast)))
    after = ESTIMATOR.estimate_prefill(attrs.evolve(alone, inner_link=bare(slow)))
    term = term_seconds(load_of(request.workload).inner.sequential_bytes, slow, fast)
    adds_at_most(before.network_seconds, after.network_seconds, term)


@given(decode_requests(), RATE_PAIRS)
def test_passes(request: DecodeRequest, rates: list[int]) -> None:
    slow, fast = rates
    alone = attrs.evolve(request, rank_links=(), link=bare(fast), to_link=bare(slow))
    before = ESTIMATOR.estimate_decode(alone)
    after = ESTIMATOR.estimate_decode(attrs.evolve(alone, link=bare(slow), to_link=None))
    term = term_seconds(load_of(request.workload).outer.sequential_bytes, slow, fast)
    adds_at_most(before.network_seconds, after.network_seconds, term)
    adds_at_most(before.pass_seconds, after.pass_seconds, term)
    extra = before.extra_pass_seconds
    assert extra is not None
    assert extra.upper is not None
    assert abs(extra.upper - term) <= FLOAT * (term + after.network_seconds.lower)


@given(TRAINING_REQUESTS, RATE_PAIRS)
def test_a_training_step(request: TrainingStepRequest, rates: list[int]) -> None:
    slow, fast = rates
    before, after = (ESTIMATOR.estimate_training_step(attrs.evolve(request, link=bare(rate))) for rate in (fast, slow))
    term = term_seconds(before.sent_bytes_per_rank + HALF_BYTE, slow, fast)
    adds_at_most(before.sync_seconds, after.sync_seconds, term)
    adds_at_most(before.step_seconds, after.step_seconds, term)


@st.composite
def collective_requests(draw: st.DrawFn) -> CollectiveRequest:
    """One rank in each node, so that there is one link; as a ring, with or without measured times."""
    rank_count = draw(st.integers(2, 512))
    kind = draw(st.sampled_from([CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER, CollectiveKind.ALL_TO_ALL]))
    table = draw(st.none() | tables(rank_count, 1)) if kind is CollectiveKind.ALL_REDUCE else None
    return CollectiveRequest(
        kind=kind,
        rank_count=rank_count,
        message_bytes=draw(st.integers(1, 10**15) | st.integers(1, 10**7)),
        link=bare(1),
        collective_table=table,
    )


def taken(choices: Iterable[CollectiveChoice]) -> CollectiveChoice:
    return next(choice for choice in choices if choice.chosen)


def over_both(request: CollectiveRequest, slow: int, fast: int) -> tuple[CollectiveEstimate, CollectiveEstimate]:
    """The collective over the faster link and over the slower one, which adds at most the term of the bytes."""
    before, after = (ESTIMATOR.estimate_collective(attrs.evolve(request, link=bare(rate))) for rate in (fast, slow))
    assert before.seconds is not None
    assert after.seconds is not None
    assert before.sent_bytes_per_rank is not None
    adds_at_most(before.seconds, after.seconds, term_seconds(before.sent_bytes_per_rank + HALF_BYTE, slow, fast))
    return before, after


@given(collective_requests(), RATE_PAIRS)
def test_one_collective(request: CollectiveRequest, rates: list[int]) -> None:
    """The term is that of the wire bytes of what ran over the faster link: LL sends 8 bytes of flags with 8 of data."""
    slow, fast = rates
    before, after = over_both(request, slow, fast)
    at_fast, at_slow = taken(before.choices), taken(after.choices)
    term = term_seconds(at_fast.wire_bytes_per_rank + HALF_BYTE, slow, fast)
    assert at_slow.seconds - at_fast.seconds <= term + FLOAT * at_slow.seconds


@st.composite
def requests_of_nodes(draw: st.DrawFn) -> CollectiveRequest:
    """An all-reduce among nodes of several ranks by a named algorithm, with or without measured times."""
    in_node = draw(st.integers(1, 16))
    rank_count = in_node * draw(st.integers(2, 64))
    return CollectiveRequest(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=rank_count,
        ranks_per_node=in_node,
        message_bytes=draw(st.integers(1, 10**12) | st.integers(1, 10**7)),
        link=bare(1),
        inner_link=bare(draw(RATES)),
        algorithm=draw(st.sampled_from([CollectiveAlgorithm.RING, CollectiveAlgorithm.DOUBLE_BINARY_TREE])),
        collective_table=draw(st.none() | tables(rank_count, in_node)),
    )


@given(requests_of_nodes(), RATE_PAIRS)
def test_one_collective_among_nodes_by_a_named_algorithm(request: CollectiveRequest, rates: list[int]) -> None:
    over_both(request, *rates)


@given(collective_requests(), RATE_PAIRS)
def test_the_fixed_part_knows_no_rate(request: CollectiveRequest, rates: list[int]) -> None:
    fixed = [
        {(choice.algorithm, choice.protocol): choice.fixed_seconds for choice in answer.choices}
        for answer in (ESTIMATOR.estimate_collective(attrs.evolve(request, link=bare(rate))) for rate in rates)
    ]
    assert fixed[0] == fixed[1]
    assert all(seconds > 0 for seconds in fixed[0].values())


def test_flags_double_what_a_small_all_reduce_adds() -> None:
    """Guards the wire bytes above: by the bytes of the payload alone, the law would be broken where LL runs."""
    slow, fast = 10**11, 2 * 10**11
    request = CollectiveRequest(kind=CollectiveKind.ALL_REDUCE, rank_count=8, message_bytes=10_240, link=bare(fast))
    before = ESTIMATOR.estimate_collective(request)
    at_fast = taken(before.choices)
    at_slow = taken(ESTIMATOR.estimate_collective(attrs.evolve(request, link=bare(slow))).choices)
    assert (at_fast.protocol, at_fast.wire_bytes_per_rank) == (CollectiveProtocol.LL, 2 * 2 * 10_240)
    added_seconds = at_slow.seconds - at_fast.seconds
    assert term_seconds(before.sent_bytes_per_rank or 0, slow, fast) < added_seconds
    assert added_seconds <= term_seconds(at_fast.wire_bytes_per_rank, slow, fast) * (1 + 1e-9)


def test_the_upper_end_of_a_measured_time_has_the_flags_that_were_measured() -> None:
    """10 KiB among 8 ranks, measured near 100 Gb/s, where the library takes LL: the wire carried 2 x 17,920 bytes."""
    table = CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=8,
        points=(
            CollectivePoint(message_bytes=10_240, seconds=39e-6),
            CollectivePoint(message_bytes=2**30, seconds=0.16),
        ),
    )
    asked = CollectiveRequest(
        kind=CollectiveKind.ALL_REDUCE, rank_count=8, message_bytes=10_240, link=bare(10**9), collective_table=table
    )
    over_slow = ESTIMATOR.estimate_collective(asked)
    over_measured = ESTIMATOR.estimate_collective(attrs.evolve(asked, link=bare(10**11)))
    assert over_slow.seconds is not None
    assert over_slow.seconds.upper is not None
    assert over_measured.seconds is not None
    assert over_measured.seconds.upper is not None
    assert taken(over_measured.choices).protocol is CollectiveProtocol.LL
    assert taken(over_slow.choices).seconds <= over_slow.seconds.upper
    added_seconds = over_slow.seconds.upper - over_measured.seconds.upper
    assert added_seconds == pytest.approx(term_seconds(2 * 17_920, 10**9, 10**11), rel=0.01)
    # Far above the sizes of LL its flags are no share of the whole.
    large = attrs.evolve(asked, message_bytes=2**28)
    before, after = (ESTIMATOR.estimate_collective(attrs.evolve(large, link=bare(b))).seconds for b in (10**11, 10**9))
    assert before is not None
    assert after is not None
    assert (after.upper or 0) - (before.upper or 0) <= 1.07 * term_seconds(1.75 * 2**28, 10**9, 10**11)


@given(prefill_requests(), RATE_PAIRS)
def test_a_comparison_of_links(request: PrefillRequest, rates: list[int]) -> None:
    slow, fast = rates
    answer = ESTIMATOR.compare_links(
        LinkComparisonRequest(
            prefill=request.workload, old_link=bare(fast), new_link=bare(slow), inner_link=request.inner_link
        )
    )
    term = term_seconds(load_of(request.workload).outer.sequential_bytes, slow, fast)
    adds_at_most(answer.old_network_seconds, answer.new_network_seconds, term)
    assert answer.speedup_ratio.upper is not None
    assert slow / fast * (1 - FLOAT) <= answer.speedup_ratio.lower
    assert answer.speedup_ratio.upper <= 1 + FLOAT


@given(recommendation_requests(), RATE_PAIRS)
def test_every_option(request: LayoutRecommendationRequest, rates: list[int]) -> None:
    slow, fast = rates
    asked = attrs.evolve(
        request,
        link=bare(slow),
        reference_link=bare(fast),
        baseline_ttft_seconds=None,
        baseline_tensor_parallel_size=0,
    )
    for option in ESTIMATOR.recommend_layout(asked).options:
        assert option.extra_ttft_seconds.lower == 0
        assert option.extra_ttft_seconds.upper is not None
        load = load_of(prompts_on(option.layout, asked.workload, 1)).outer
        assert option.extra_ttft_seconds.upper == pytest.approx(term_seconds(load.sequential_bytes, slow, fast))
        # An instance of one stage sends what its rank does, and no stage of a pipeline more than the busiest.
        assert abs(load.busiest_bytes - option.sent_bytes_per_rank) <= HALF_BYTE
        assert load.sequential_bytes <= option.layout.pipeline_parallel_size * load.busiest_bytes * (1 + FLOAT)
