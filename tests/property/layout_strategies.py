"""Cuts of the shipped models, the links under them and measured times of collectives, for Hypothesis."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import attrs
from hypothesis import strategies as st

from estimator_service.core.layouts.feasibility import layout_violations
from linkbound.domain.calibration import CollectivePoint, CollectiveTable
from linkbound.domain.catalog import Model
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.rules import violations_of
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.property.estimator_strategies import ESTIMATOR, LINKS, MODELS, baselines_over

SPREADS = (
    ExpertParallelism.UNSPECIFIED,
    ExpertParallelism.ALL_REDUCE,
    ExpertParallelism.ALL_GATHER,
    ExpertParallelism.ALL_TO_ALL,
)
HARDWARE = st.sampled_from(["", "dgx-spark"])
CONTEXTS = st.integers(1, 10**6) | st.just(10**6)
REQUEST_COUNTS = st.integers(1, 9) | st.integers(1, 10**5) | st.just(10**5)


@cache
def cuts_of(model_id: str) -> tuple[ParallelLayout, ...]:
    """Every cut of a small grid that the model allows."""
    model = ESTIMATOR.get_model(model_id)
    grid = product((1, 2, 4, 8), (1, 2, 3, 5), (1, 2, 3, 8), SPREADS, (False, True), (1, 2, 4, 8))
    layouts = (
        ParallelLayout(
            tensor_parallel_size=size,
            pipeline_parallel_size=stages,
            data_parallel_size=groups,
            expert_parallelism=experts,
            sequence_parallel=sequence,
            ranks_per_node=in_node,
        )
        for size, stages, groups, experts, sequence, in_node in grid
    )
    return tuple(layout for layout in layouts if not [*violations_of(layout), *layout_violations(model, layout, "")])


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Model, ParallelLayout]:
    model = draw(st.sampled_from(MODELS))
    # One rank alone, on which everything lies, comes more often than its share of the grid.
    return model, draw(st.just(ParallelLayout(tensor_parallel_size=1)) | st.sampled_from(cuts_of(model.model_id)))


def fields_of(layout: ParallelLayout) -> dict[str, Any]:
    """A layout as the fields of a workload."""
    return {attribute.name: getattr(layout, attribute.name) for attribute in attrs.fields(ParallelLayout)}


@st.composite
def prefill_workloads(draw: st.DrawFn) -> PrefillWorkload:
    model, layout = draw(cuts())
    return PrefillWorkload(
        model=model.model_id,
        prompt_tokens=draw(st.integers(1, 10**6) | st.integers(1, 5000)),
        request_count=draw(REQUEST_COUNTS),
        max_num_batched_tokens=draw(st.none() | st.integers(1, 10**9) | st.integers(1, 8192)),
        **fields_of(layout),
    )


@st.composite
def decode_workloads(draw: st.DrawFn) -> DecodeWorkload:
    model, layout = draw(cuts())
    drafts = draw(st.integers(0, 64))
    return DecodeWorkload(
        model=model.model_id,
        request_count=draw(REQUEST_COUNTS),
        draft_token_count=drafts,
        acceptance_length_tokens=draw(st.none() | st.floats(1, 1 + drafts)),
        hardware=draw(HARDWARE),
        context_tokens=draw(st.none() | CONTEXTS),
        **fields_of(layout),
    )


@st.composite
def tables(draw: st.DrawFn, rank_count: int, ranks_per_node: int) -> CollectiveTable:
    """Measured times of all-reduces; of no order, since measurements need not have one."""
    sizes = draw(st.lists(st.integers(1, 10**12), min_size=2, max_size=8, unique=True))
    times = st.floats(1e-6, 10) | st.floats(1e-9, 1e6)
    return CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=rank_count,
        ranks_per_node=ranks_per_node,
        points=tuple(CollectivePoint(message_bytes=size, seconds=draw(times)) for size in sizes),
    )


@st.composite
def fabrics(draw: st.DrawFn, layout: ParallelLayout) -> dict[str, Any]:
    """The links under a layout as the fields of a request, and what collectives take on them."""
    size = layout.tensor_parallel_size
    covering = tables(max(size, 2), min(size, layout.ranks_per_node))
    return {
        "link": draw(LINKS),
        "inner_link": draw(LINKS if layout.ranks_per_node > 1 else st.none() | LINKS),
        "rank_links": tuple(draw(st.lists(LINKS, max_size=min(3, layout.node_count)))),
        "collective_table": draw(st.none() | covering),
    }


@st.composite
def prefill_requests(draw: st.DrawFn) -> PrefillRequest:
    workload = draw(prefill_workloads())
    request = PrefillRequest(workload=workload, to_link=draw(st.none() | LINKS), **draw(fabrics(workload.layout)))
    needed_seconds = ESTIMATOR.estimate_prefill(attrs.evolve(request, to_link=None)).network_seconds.lower
    return attrs.evolve(request, baseline_ttft_seconds=draw(baselines_over(needed_seconds)))


@st.composite
def decode_requests(draw: st.DrawFn) -> DecodeRequest:
    workload = draw(decode_workloads())
    return DecodeRequest(workload=workload, to_link=draw(st.none() | LINKS), **draw(fabrics(workload.layout)))


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, Any]:
    """What the questions about nodes have in common."""
    node_count, in_node = draw(st.integers(1, 12)), draw(st.sampled_from([1, 2, 4, 8]))
    whole = draw(st.sampled_from([size for size in range(1, 9) if not node_count * in_node % size]))
    table = tables(max(whole, 2), whole if whole > 1 and whole <= in_node else 1)
    return {
        "workload": ClusterWorkload(
            model=draw(st.sampled_from(MODELS)).model_id,
            node_count=node_count,
            ranks_per_node=in_node,
            prompt_tokens=draw(st.integers(1, 10**6) | st.integers(1, 5000)),
            request_count=draw(REQUEST_COUNTS),
            max_num_batched_tokens=draw(st.integers(1, 10**9) | st.integers(1, 8192)),
            hardware=draw(HARDWARE),
        ),
        "link": draw(LINKS),
        "inner_link": draw(LINKS if in_node > 1 else st.none() | LINKS),
        "collective_table": draw(st.none() | table),
    }


@st.composite
def comparison_requests(draw: st.DrawFn) -> LayoutComparisonRequest:
    return LayoutComparisonRequest(
        **draw(nodes()), draft_token_count=draw(st.integers(0, 64)), output_tokens=draw(st.integers(1, 10**6))
    )


@st.composite
def recommendation_requests(draw: st.DrawFn) -> LayoutRecommendationRequest:
    """Without a baseline, or with one at the size of one node, that its link allows."""
    asked, reference = draw(nodes()), draw(LINKS)
    request = LayoutRecommendationRequest(**asked, reference_link=reference)
    workload: ClusterWorkload = asked["workload"]
    size = workload.ranks_per_node
    options = ESTIMATOR.recommend_layout(request).options
    of_size = next(option for option in options if option.layout.tensor_parallel_size == size)
    if of_size.feasible is False:
        return request
    alone = PrefillRequest(
        workload=PrefillWorkload(
            model=workload.model,
            tensor_parallel_size=size,
            ranks_per_node=size,
            prompt_tokens=workload.prompt_tokens,
            max_num_batched_tokens=workload.max_num_batched_tokens,
        ),
        link=reference,
        inner_link=asked["inner_link"],
    )
    baseline_seconds = draw(baselines_over(ESTIMATOR.estimate_prefill(alone).network_seconds.lower))
    if baseline_seconds is None:
        return request
    return attrs.evolve(request, baseline_ttft_seconds=baseline_seconds, baseline_tensor_parallel_size=size)
