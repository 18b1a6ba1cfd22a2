"""What is asked about layouts: of prompts, of generation, and among them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.prefill import PrefillRequest
from tests.strategies.collectives import times_given
from tests.strategies.cuts import models_given
from tests.strategies.estimator import decode_workloads, links, prefill_workloads
from tests.strategies.values import IDS, LARGEST_SECONDS, Fill, Strategy, maybe, seconds, tuples_of, wholes


def inner_links(fill: Fill, ranks_per_node: int) -> Strategy:
    """A link within a node, always where it has several ranks."""
    return links(fill) if ranks_per_node > 1 else maybe(fill, links(fill))


@st.composite
def prefill_requests(draw: st.DrawFn, fill: Fill) -> PrefillRequest:
    workload = draw(prefill_workloads(fill))
    return PrefillRequest(
        workload=workload,
        link=draw(links(fill)),
        to_link=draw(maybe(fill, links(fill))),
        baseline_ttft_seconds=draw(seconds(fill)),
        inner_link=draw(inner_links(fill, workload.ranks_per_node)),
        rank_links=draw(tuples_of(fill, links(fill)))[: workload.layout.node_count],
        **draw(times_given(fill)),
    )


@st.composite
def decode_requests(draw: st.DrawFn, fill: Fill) -> DecodeRequest:
    workload = draw(decode_workloads(fill))
    return DecodeRequest(
        workload=workload,
        link=draw(links(fill)),
        to_link=draw(maybe(fill, links(fill))),
        inner_link=draw(inner_links(fill, workload.ranks_per_node)),
        rank_links=draw(tuples_of(fill, links(fill)))[: workload.layout.node_count],
        **draw(times_given(fill)),
    )


@st.composite
def cluster_workloads(draw: st.DrawFn, fill: Fill) -> ClusterWorkload:
    node_count = draw(st.integers(1, 4096))
    in_node = draw(st.integers(1, 64))
    return ClusterWorkload(
        **draw(models_given(fill)),
        node_count=node_count,
        ranks_per_node=in_node if node_count * in_node <= 65_536 else 1,
        prompt_tokens=draw(st.integers(1, 10**6)),
        request_count=draw(st.integers(1, 100_000)),
        max_num_batched_tokens=draw(st.integers(1, 10**9)),
        hardware=draw(IDS if fill is Fill.FULL else st.just("") | IDS),
    )


@st.composite
def _nodes(draw: st.DrawFn, fill: Fill) -> dict[str, Any]:
    """What both questions about nodes have."""
    workload = draw(cluster_workloads(fill))
    return {
        **draw(times_given(fill)),
        "workload": workload,
        "link": draw(links(fill)),
        "inner_link": draw(inner_links(fill, workload.ranks_per_node)),
    }


@st.composite
def layout_comparison_requests(draw: st.DrawFn, fill: Fill) -> LayoutComparisonRequest:
    return LayoutComparisonRequest(
        **draw(_nodes(fill)),
        draft_token_count=draw(wholes(fill, 0, 64)),
        output_tokens=draw(st.integers(1, 10**6)),
    )


@st.composite
def layout_recommendation_requests(draw: st.DrawFn, fill: Fill) -> LayoutRecommendationRequest:
    baseline = draw(maybe(fill, st.tuples(st.integers(1, 4096), st.floats(1e-9, LARGEST_SECONDS))))
    return LayoutRecommendationRequest(
        **draw(_nodes(fill)),
        reference_link=draw(links(fill)),
        baseline_tensor_parallel_size=0 if baseline is None else baseline[0],
        baseline_ttft_seconds=None if baseline is None else baseline[1],
    )
