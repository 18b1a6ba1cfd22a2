"""Law 2 of `docs/invariants.md`: more bytes or a slower link never take less time."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linkbound.domain.calibration import CollectivePoint, CollectiveTable
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.link import Link
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.property.estimator_strategies import ESTIMATOR, RATES, TRAINING_REQUESTS
from tests.property.layout_strategies import comparison_requests, decode_requests, prefill_requests, tables

FLOAT = 1 + 1e-12
ALGORITHMS = [
    CollectiveAlgorithm.RING,
    CollectiveAlgorithm.DOUBLE_BINARY_TREE,
    CollectiveAlgorithm.ONE_SHOT,
    CollectiveAlgorithm.AUTO,
]


def bare(bits_per_second: int) -> Link:
    return Link(line_rate_bits_per_second=bits_per_second)


def no_less(before: Estimate | None, after: Estimate | None) -> None:
    """Each end of `after`, and the expectation, is no less than that of `before`."""
    assert (before is None) == (after is None)
    if before is None or after is None:
        return
    ends = (before.lower, after.lower), (before.expected, after.expected), (before.upper, after.upper)
    for first, second in ends:
        assert (first is None) == (second is None)
        if first is not None and second is not None:
            assert first <= second * FLOAT


@given(prefill_requests(), st.integers(1, 10**6) | st.integers(1, 9))
def test_more_tokens_of_a_prompt(request: PrefillRequest, added_tokens: int) -> None:
    alone = attrs.evolve(request, baseline_ttft_seconds=None, workload=attrs.evolve(request.workload, request_count=1))
    longer = attrs.evolve(alone.workload, prompt_tokens=alone.workload.prompt_tokens + added_tokens)
    fewer, more = (ESTIMATOR.estimate_prefill(attrs.evolve(alone, workload=w)) for w in (alone.workload, longer))
    assert fewer.sent_bytes_per_rank <= more.sent_bytes_per_rank
    assert fewer.counter_bytes_per_rank <= more.counter_bytes_per_rank
    assert fewer.logits_gather_bytes_per_rank <= more.logits_gather_bytes_per_rank
    no_less(fewer.network_seconds, more.network_seconds)


@given(prefill_requests(), st.integers(1, 9))
@example(
    # The fourth prompt makes passes of one group alone follow those of three.
    PrefillRequest(
        workload=PrefillWorkload(
            model="deepseek-r1",
            tensor_parallel_size=1,
            pipeline_parallel_size=2,
            data_parallel_size=3,
            prompt_tokens=6,
            request_count=3,
            max_num_batched_tokens=5,
        ),
        link=bare(10**11),
    ),
    1,
)
def test_more_prompts(request: PrefillRequest, added_requests: int) -> None:
    few = attrs.evolve(request.workload, request_count=min(request.workload.request_count, 10**4))
    many = attrs.evolve(few, request_count=few.request_count + added_requests)
    asked = attrs.evolve(request, baseline_ttft_seconds=None)
    fewer, more = (ESTIMATOR.estimate_prefill(attrs.evolve(asked, workload=w)) for w in (few, many))
    assert fewer.sent_bytes_per_rank <= more.sent_bytes_per_rank
    no_less(fewer.network_seconds, more.network_seconds)


@given(decode_requests(), st.integers(1, 64), st.integers(1, 10**6))
@example(
    # A link faster than the measured one saves more with each request than the lower end of the measured times gains.
    DecodeRequest(
        workload=DecodeWorkload(
            model="deepseek-r1",
            tensor_parallel_size=4,
            pipeline_parallel_size=5,
            data_parallel_size=2,
            ranks_per_node=2,
            request_count=2,
        ),
        link=bare(418 * 10**9),
        inner_link=bare(66 * 10**9),
        collective_table=CollectiveTable(
            kind=CollectiveKind.ALL_GATHER,
            rank_count=4,
            ranks_per_node=2,
            points=(CollectivePoint(message_bytes=1, seconds=1), CollectivePoint(message_bytes=43_684, seconds=7)),
        ),
    ),
    1,
    1,
)
def test_more_requests_and_longer_ones(request: DecodeRequest, added_requests: int, added_tokens: int) -> None:
    few = attrs.evolve(request.workload, request_count=min(request.workload.request_count, 10**4))
    more = attrs.evolve(few, request_count=few.request_count + added_requests)
    tokens = None if few.context_tokens is None else min(few.context_tokens + added_tokens, 10**9)
    longer = attrs.evolve(few, context_tokens=tokens)
    before = ESTIMATOR.estimate_decode(attrs.evolve(request, workload=few))
    for workload in (more, longer):
        after = ESTIMATOR.estimate_decode(attrs.evolve(request, workload=workload))
        assert before.sent_bytes_per_pass <= after.sent_bytes_per_pass
        no_less(before.network_seconds, after.network_seconds)
        no_less(before.pass_seconds, after.pass_seconds)


@given(prefill_requests(), RATES, RATES)
def test_slower_links_under_prompts(request: PrefillRequest, first: int, second: int) -> None:
    slow, fast = sorted((first, second))
    alone = attrs.evolve(request, baseline_ttft_seconds=None, to_link=None)
    answers = [
        [ESTIMATOR.estimate_prefill(attrs.evolve(alone, **changed)) for changed in changes]
        for changes in (
            ({"link": bare(fast)}, {"link": bare(slow)}),
            ({"inner_link": bare(fast)}, {"inner_link": bare(slow)}),
            ({"rank_links": (bare(fast),)}, {"rank_links": (bare(slow),)}),
        )
    ]
    for faster, slower in answers:
        assert faster.sent_bytes_per_rank == slower.sent_bytes_per_rank
        no_less(faster.network_seconds, slower.network_seconds)
        no_less(faster.ttft_seconds, slower.ttft_seconds)


@given(decode_requests(), RATES, RATES)
def test_slower_links_under_a_pass(request: DecodeRequest, first: int, second: int) -> None:
    slow, fast = sorted((first, second))
    alone = attrs.evolve(request, to_link=None)
    changes: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
        ({"link": bare(fast)}, {"link": bare(slow)}),
        ({"inner_link": bare(fast)}, {"inner_link": bare(slow)}),
    )
    for faster, slower in changes:
        before = ESTIMATOR.estimate_decode(attrs.evolve(alone, **faster))
        after = ESTIMATOR.estimate_decode(attrs.evolve(alone, **slower))
        no_less(before.network_seconds, after.network_seconds)
        no_less(before.pass_seconds, after.pass_seconds)


@given(comparison_requests(), RATES, RATES)
def test_slower_links_under_every_layout(request: LayoutComparisonRequest, first: int, second: int) -> None:
    slow, fast = sorted((first, second))
    by_layout = [
        {one.layout: one for one in ESTIMATOR.compare_layouts(attrs.evolve(request, link=bare(rate))).layouts}
        for rate in (fast, slow)
    ]
    assert by_layout[0].keys() == by_layout[1].keys()
    for layout, before in by_layout[0].items():
        after = by_layout[1][layout]
        assert before.sent_bytes_per_rank == after.sent_bytes_per_rank
        no_less(before.network_seconds, after.network_seconds)
        no_less(before.single_pass_seconds, after.single_pass_seconds)
        no_less(before.pass_seconds, after.pass_seconds)


@st.composite
def collective_requests(draw: st.DrawFn) -> CollectiveRequest:
    """One collective by any algorithm; links within nodes are no slower than between them."""
    in_node, node_count = draw(st.integers(1, 16)), draw(st.integers(1, 64))
    rank_count = max(in_node * node_count, 2)
    kind = draw(st.sampled_from([kind for kind in CollectiveKind if kind.name not in {"UNSPECIFIED", "UNKNOWN"}]))
    those = [algorithm for algorithm in ALGORITHMS if kind is CollectiveKind.ALL_REDUCE or "TREE" not in algorithm.name]
    rates = sorted(draw(st.lists(RATES, min_size=2, max_size=2)))
    table: CollectiveTable | None = None
    if kind is CollectiveKind.ALL_REDUCE:
        table = draw(st.none() | tables(rank_count, in_node))
    return CollectiveRequest(
        kind=kind,
        rank_count=rank_count,
        ranks_per_node=in_node,
        message_bytes=draw(st.integers(1, 10**11) | st.integers(1, 10**7)),
        link=bare(rates[0]),
        inner_link=bare(rates[1]) if in_node > 1 else None,
        algorithm=draw(st.sampled_from(those)),
        collective_table=table,
    )


def seconds_and_bytes(request: CollectiveRequest) -> tuple[Estimate, int, dict[Any, float]]:
    answer = ESTIMATOR.estimate_collective(request)
    assert answer.seconds is not None
    assert answer.sent_bytes_per_rank is not None
    choices = {(choice.algorithm, choice.protocol): choice.seconds for choice in answer.choices}
    chosen = next(choice.seconds for choice in answer.choices if choice.chosen)
    return answer.seconds, answer.sent_bytes_per_rank, {**choices, "chosen": chosen}


def never_less(before: CollectiveRequest, after: CollectiveRequest) -> None:
    first_seconds, first_bytes, first_choices = seconds_and_bytes(before)
    second_seconds, second_bytes, second_choices = seconds_and_bytes(after)
    no_less(first_seconds, second_seconds)
    assert first_bytes <= second_bytes
    for choice in first_choices.keys() & second_choices.keys():
        assert first_choices[choice] <= second_choices[choice] * FLOAT


@given(collective_requests(), st.integers(1, 10**11) | st.integers(1, 9))
@example(
    # The library goes over from a ring to trees, which send less between nodes.
    CollectiveRequest(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=8,
        ranks_per_node=4,
        message_bytes=262_144,
        link=bare(200 * 10**9),
        inner_link=bare(3600 * 10**9),
        algorithm=CollectiveAlgorithm.AUTO,
    ),
    65_536,
)
def test_a_larger_payload_of_one_collective(request: CollectiveRequest, added_bytes: int) -> None:
    never_less(request, attrs.evolve(request, message_bytes=(request.message_bytes or 0) + added_bytes))


@given(collective_requests(), st.integers(1, 64))
def test_more_nodes_for_one_collective(request: CollectiveRequest, added_nodes: int) -> None:
    """A calibration stands for one number of ranks, so there is none here."""
    alone = attrs.evolve(request, collective_table=None)
    never_less(alone, attrs.evolve(alone, rank_count=alone.rank_count + added_nodes * alone.ranks_per_node))


@given(collective_requests(), RATES, RATES)
def test_a_slower_link_under_one_collective(request: CollectiveRequest, first: int, second: int) -> None:
    slow, fast = (bare(rate) for rate in sorted((first, second)))
    never_less(attrs.evolve(request, link=fast), attrs.evolve(request, link=slow))
    if request.inner_link is not None:
        never_less(attrs.evolve(request, inner_link=fast), attrs.evolve(request, inner_link=slow))


@given(TRAINING_REQUESTS, st.integers(1, 1000), RATES)
def test_a_training_step(request: TrainingStepRequest, added: int, rate: int) -> None:
    before = ESTIMATOR.estimate_training_step(request)
    larger = [
        attrs.evolve(request, rank_count=min(request.rank_count + added, 65_536)),
        attrs.evolve(request, link=bare(min(rate, before.link.effective_bits_per_second))),
    ]
    for after in map(ESTIMATOR.estimate_training_step, larger):
        assert before.sent_bytes_per_rank <= after.sent_bytes_per_rank
        no_less(before.sync_seconds, after.sync_seconds)
        no_less(before.step_seconds, after.step_seconds)


@pytest.mark.parametrize("kind", [CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER])
def test_a_check_of_ends_finds_what_falls(kind: CollectiveKind) -> None:
    """Guards the checks above: turned round, they fail."""
    request = CollectiveRequest(kind=kind, rank_count=8, message_bytes=10**6, link=bare(10**11))
    with pytest.raises(AssertionError):
        never_less(attrs.evolve(request, message_bytes=10**9), request)
