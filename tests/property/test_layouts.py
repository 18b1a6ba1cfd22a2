"""What holds for every layout: parts add up, ends are in order, slower links are never faster."""

from typing import Any

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from estimator_service.core.layouts.feasibility import layout_reasons
from linkbound.domain.catalog import Model
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.link import Link
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.rules import violations_of
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.property.estimator_strategies import ESTIMATOR, LINKS, MODELS, RATES
from tests.property.test_estimator_answers import always_bounded, check

CLOSE = 1e-9
POWERS = st.sampled_from([1, 2, 4])


def upper(estimate: Estimate | None) -> float:
    assert estimate is not None
    assert estimate.upper is not None
    return estimate.upper


@st.composite
def cuts(draw: st.DrawFn, model: Model) -> dict[str, Any]:
    """The fields of a layout that `model` can have."""
    size, stages = draw(POWERS), draw(POWERS)
    groups = draw(POWERS) if model.expert_count else 1
    exchanges = [ExpertParallelism.UNSPECIFIED, ExpertParallelism.ALL_GATHER, ExpertParallelism.ALL_TO_ALL]
    in_node = draw(st.sampled_from([1, 2, 4, 8]))
    cut: dict[str, Any] = {
        "tensor_parallel_size": size,
        "pipeline_parallel_size": stages,
        "data_parallel_size": groups,
        "expert_parallelism": draw(st.sampled_from(exchanges)) if groups > 1 else ExpertParallelism.UNSPECIFIED,
        "sequence_parallel": draw(st.booleans()),
        "ranks_per_node": in_node if size * stages * groups % in_node == 0 else 1,
    }
    layout = ParallelLayout(**cut)
    assume(not list(violations_of(layout)) and not layout_reasons(model, layout))
    return cut


@st.composite
def prefills(draw: st.DrawFn) -> PrefillRequest:
    model = draw(st.sampled_from(MODELS))
    workload = PrefillWorkload(
        model=model.model_id,
        prompt_tokens=draw(st.integers(1, 10**5)),
        request_count=draw(st.integers(1, 1000)),
        max_num_batched_tokens=draw(st.none() | st.integers(1, 10**6)),
        **draw(cuts(model)),
    )
    return PrefillRequest(
        workload=workload,
        link=draw(LINKS),
        to_link=draw(LINKS),
        inner_link=draw(LINKS),
        rank_links=draw(st.lists(LINKS, max_size=min(2, workload.layout.node_count)).map(tuple)),
    )


@st.composite
def decodes(draw: st.DrawFn) -> DecodeRequest:
    model = draw(st.sampled_from(MODELS))
    workload = DecodeWorkload(
        model=model.model_id,
        request_count=draw(st.integers(1, 1000)),
        draft_token_count=draw(st.integers(0, 8)),
        hardware=draw(st.sampled_from(["", "dgx-spark"])),
        context_tokens=draw(st.none() | st.integers(1, 10**5)),
        **draw(cuts(model)),
    )
    return DecodeRequest(workload=workload, link=draw(LINKS), to_link=draw(LINKS), inner_link=draw(LINKS))


@given(prefills())
def test_a_prefill_answers_in_order(request: PrefillRequest) -> None:
    # Of a node with a link of its own nobody knows the stage; `tests/property/test_laws_wire.py` replays each.
    request = attrs.evolve(request, rank_links=())
    answer = ESTIMATOR.estimate_prefill(request)
    check(answer)
    assert always_bounded(answer.network_seconds, answer.extra_ttft_seconds)
    assert answer.layout == request.workload.layout
    assert (answer.inner_link is None) == (request.workload.ranks_per_node == 1)
    # No stage sends for longer than all of them; of an all-to-all the lower end has what is sent in any case.
    network = answer.network_seconds
    is_sparse = any(row.kind is CollectiveKind.ALL_TO_ALL for row in answer.traffic)
    longest_seconds = upper(network) if is_sparse else network.lower
    busy_seconds = answer.sent_bytes_per_rank * 8 / answer.link.effective_bits_per_second
    rounding_seconds = 8 / answer.link.effective_bits_per_second
    assert busy_seconds <= longest_seconds * (1 + CLOSE) + rounding_seconds


@given(decodes())
def test_a_decode_answers_in_order(request: DecodeRequest) -> None:
    answer = ESTIMATOR.estimate_decode(request)
    check(answer)
    assert always_bounded(answer.network_seconds, answer.extra_pass_seconds, answer.traffic_bits_per_second)
    assert answer.pass_seconds.lower >= answer.network_seconds.lower
    assert upper(answer.traffic_bits_per_second) <= answer.link.effective_bits_per_second


def rows_add_up(answer: PrefillEstimate | DecodeEstimate, sent: int) -> None:
    rows = answer.traffic
    assert abs(sum(row.sent_bytes_per_rank for row in rows) - sent) <= len(rows) + 1
    assert all(row.count_per_pass > 0 for row in rows)


@given(prefills())
def test_the_collectives_of_prompts_add_up(request: PrefillRequest) -> None:
    answer = ESTIMATOR.estimate_prefill(request)
    of_tokens = [row for row in answer.traffic if not row.reason.startswith("LM head")]
    rows_add_up(attrs.evolve(answer, traffic=tuple(of_tokens)), answer.sent_bytes_per_rank)


@given(decodes())
def test_the_collectives_of_a_pass_add_up(request: DecodeRequest) -> None:
    answer = ESTIMATOR.estimate_decode(request)
    rows_add_up(answer, answer.sent_bytes_per_pass)


@given(prefills(), st.integers(2, 1000))
def test_scaling_all_rates_divides_every_time(request: PrefillRequest, factor: int) -> None:
    def scaled(rate: int) -> PrefillEstimate:
        link, inner = Link(line_rate_bits_per_second=10**9 * rate), Link(line_rate_bits_per_second=10**10 * rate)
        plain = attrs.evolve(request, link=link, to_link=None, inner_link=inner, rank_links=())
        return ESTIMATOR.estimate_prefill(plain)

    slow, fast = scaled(1).network_seconds, scaled(factor).network_seconds
    assert fast.lower * factor == pytest.approx(slow.lower, rel=CLOSE)
    assert upper(fast) * factor == pytest.approx(upper(slow), rel=CLOSE)


@given(prefills(), RATES, RATES)
def test_more_bandwidth_is_never_slower(request: PrefillRequest, first: int, second: int) -> None:
    slow, fast = (
        ESTIMATOR.estimate_prefill(attrs.evolve(request, link=Link(line_rate_bits_per_second=rate), rank_links=()))
        for rate in sorted((first, second))
    )
    assert fast.network_seconds.lower <= slow.network_seconds.lower
    assert upper(fast.network_seconds) <= upper(slow.network_seconds)


@given(prefills())
def test_the_slowest_link_of_all_nodes_is_that_of_every_node_of_one_group(request: PrefillRequest) -> None:
    assume(request.workload.pipeline_parallel_size == request.workload.data_parallel_size == 1)
    answer = ESTIMATOR.estimate_prefill(request)
    alone = ESTIMATOR.estimate_prefill(attrs.evolve(request, link=answer.link.link, rank_links=()))
    assert alone.network_seconds == answer.network_seconds


@given(prefills())
def test_sequence_parallelism_changes_no_bytes(request: PrefillRequest) -> None:
    with_it, without = (
        ESTIMATOR.estimate_prefill(
            attrs.evolve(request, workload=attrs.evolve(request.workload, sequence_parallel=swapped))
        )
        for swapped in (True, False)
    )
    assert with_it.sent_bytes_per_rank == pytest.approx(without.sent_bytes_per_rank, rel=CLOSE, abs=1)
    assert with_it.network_seconds.lower == pytest.approx(without.network_seconds.lower, rel=CLOSE)


@given(prefills())
def test_ranks_of_one_node_send_nothing_out_of_it(request: PrefillRequest) -> None:
    layout = request.workload.layout
    assume(1 < layout.rank_count <= 64)
    workload = attrs.evolve(request.workload, ranks_per_node=layout.rank_count)
    answer = ESTIMATOR.estimate_prefill(attrs.evolve(request, workload=workload, rank_links=()))
    assert answer.sent_bytes_per_rank == answer.logits_gather_bytes_per_rank == answer.counter_bytes_per_rank == 0
    assert upper(answer.extra_ttft_seconds) == 0


@given(st.sampled_from(MODELS), st.integers(2, 64), st.integers(1, 10**6))
def test_a_pipeline_of_single_ranks_sends_two_rows_a_token(model: Model, stages: int, tokens: int) -> None:
    assume(stages <= model.layer_count)
    workload = PrefillWorkload(
        model=model.model_id, tensor_parallel_size=1, pipeline_parallel_size=stages, prompt_tokens=tokens
    )
    link = Link(line_rate_bits_per_second=10**9)
    answer = ESTIMATOR.estimate_prefill(PrefillRequest(workload=workload, link=link))
    row = 2 * model.hidden_size * model.activation_value_bytes
    assert answer.sent_bytes_per_rank == tokens * row
    assert upper(answer.network_seconds) == pytest.approx((stages - 1) * tokens * row * 8 / 10**9)


NODES = st.sampled_from([1, 2, 3, 4, 6, 8, 16])


@given(
    st.sampled_from(MODELS),
    NODES,
    st.sampled_from([1, 2, 8]),
    LINKS,
    st.integers(1, 10**5),
    st.integers(1, 100),
    st.sampled_from(["", "dgx-spark"]),
)
def test_a_comparison_of_layouts(
    model: Model, nodes: int, in_node: int, link: Link, tokens: int, requests: int, hardware: str
) -> None:
    request = LayoutComparisonRequest(
        workload=ClusterWorkload(
            model=model.model_id,
            node_count=nodes,
            ranks_per_node=in_node,
            prompt_tokens=tokens,
            request_count=requests,
            hardware=hardware,
        ),
        link=link,
        inner_link=link,
    )
    answer = ESTIMATOR.compare_layouts(request)
    check(answer)
    assert {one.layout.rank_count for one in answer.layouts} == {nodes * in_node}
    assert len({one.layout for one in answer.layouts}) == len(answer.layouts)
    runnable = [one.feasible is not False for one in answer.layouts]
    assert runnable == sorted(runnable, reverse=True)
    for one in answer.layouts:
        assert (one.feasible is True) == (not one.reasons)
        assert one.feasible is not None or (hardware and one.memory is None)
        assert always_bounded(one.network_seconds, one.single_network_seconds)
        assert 0 <= one.bubble_fraction < 1
        assert 1 <= one.passes_in_flight <= one.layout.pipeline_parallel_size
        assert one.single_pass_seconds.lower <= one.pass_seconds.lower * (1 + CLOSE)
    for choice in (answer.single_stream, answer.batched):
        assert (choice is None) == (True not in runnable)
        if choice is not None:
            assert all(runnable[index] for index in (choice.index, *choice.undecided_indices))
            assert choice.index not in choice.undecided_indices
            assert choice.reasons


@given(st.sampled_from(MODELS), NODES, st.sampled_from([1, 2, 8]), LINKS, LINKS, st.integers(1, 10**5))
def test_a_recommendation(
    model: Model, nodes: int, in_node: int, link: Link, reference_link: Link, tokens: int
) -> None:
    request = LayoutRecommendationRequest(
        workload=ClusterWorkload(model=model.model_id, node_count=nodes, ranks_per_node=in_node, prompt_tokens=tokens),
        link=link,
        inner_link=link,
        reference_link=reference_link,
    )
    answer = ESTIMATOR.recommend_layout(request)
    check(answer)
    for one in answer.options:
        assert one.instance_count * one.layout.rank_count + one.idle_node_count * in_node == nodes * in_node
        assert one.idle_node_count * in_node < one.layout.rank_count
    assert all(one.extra_ttft_fraction is None and one.ttft_seconds is None for one in answer.options)
    assert answer.reasons
    # More ranks send more for a prompt.
    sent = sorted((one.layout.rank_count, one.sent_bytes_per_rank) for one in answer.options)
    assert [bytes_ for _, bytes_ in sent] == sorted(bytes_ for _, bytes_ in sent)
