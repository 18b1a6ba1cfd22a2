"""Questions about the size and the plan of a cluster."""

from __future__ import annotations

from hypothesis import strategies as st

from linkbound.domain.planning import PlanRequest, SlowestLinkRequest
from linkbound.domain.sizing import SizeClusterRequest
from tests.strategies.estimator import links, prefill_workloads
from tests.strategies.values import IDS, LARGEST_SECONDS, Fill, Strategy, maybe, seconds, wholes


def optional_ids(fill: Fill) -> Strategy:
    return IDS if fill is Fill.FULL else st.just("") | IDS


def size_cluster_requests(fill: Fill) -> Strategy:
    return st.builds(
        SizeClusterRequest,
        node_count=st.integers(1, 4096),
        rate_bits_per_second=st.integers(10**9, 10**12),
        switch=optional_ids(fill),
        links_per_node=maybe(fill, st.integers(1, 16)),
        nic=optional_ids(fill),
        oversubscription_ratio=maybe(fill, st.floats(1, 16)),
    )


def slowest_link_requests(fill: Fill) -> Strategy:
    targets = st.floats(1e-9, LARGEST_SECONDS)
    with_baseline = st.builds(
        SlowestLinkRequest,
        workload=prefill_workloads(fill),
        target_ttft_seconds=targets,
        baseline_link=links(fill),
        baseline_ttft_seconds=st.floats(1e-9, LARGEST_SECONDS),
        inner_link=links(fill),
    )
    without = st.builds(
        SlowestLinkRequest, workload=prefill_workloads(fill), target_ttft_seconds=targets, inner_link=links(fill)
    )
    return with_baseline if fill is Fill.FULL else with_baseline | without


def plan_requests(fill: Fill) -> Strategy:
    return st.builds(
        PlanRequest,
        model=optional_ids(fill),
        node_count=st.integers(1, 4096),
        link=links(fill),
        reference_link=maybe(fill, links(fill)),
        tensor_parallel_size=wholes(fill, 0, 4096),
        prompt_tokens=wholes(fill, 0, 10**9),
        target_ttft_seconds=seconds(fill),
        baseline_ttft_seconds=seconds(fill),
        switch=optional_ids(fill),
        nic=optional_ids(fill),
        hardware=optional_ids(fill),
        counter_interval_seconds=seconds(fill),
    )
