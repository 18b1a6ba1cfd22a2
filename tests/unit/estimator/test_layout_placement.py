"""Where ranks sit, held against a count of every rank and every edge of every ring."""

from collections import Counter
from collections.abc import Iterator

import pytest

from estimator_service.core.collectives import sent_bytes
from estimator_service.core.layouts.placement import (
    Placement,
    boundary_bytes,
    expert_group,
    split_bytes,
    tensor_group,
)
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.layout import ParallelLayout
from tests.unit.estimator.layout_models import cut

SIZES = (1, 2, 3, 4, 8)


def layouts() -> Iterator[ParallelLayout]:
    for size in SIZES:
        for stages in (1, 2, 3, 4):
            for groups in (1, 2, 4, 8):
                for in_node in (1, 2, 4, 6, 8, 12):
                    fits = not (size % in_node and in_node % size)
                    if fits and size * stages * groups % in_node == 0:
                        yield cut(size, stages, groups, ranks_per_node=in_node)


LAYOUTS = [
    pytest.param(
        layout,
        id=f"{layout.tensor_parallel_size}x{layout.pipeline_parallel_size}x"
        f"{layout.data_parallel_size} in {layout.ranks_per_node}",
    )
    for layout in layouts()
]


def rank(layout: ParallelLayout, group: int, stage: int, index: int) -> int:
    """The number of a rank: tensor-parallel ranks first, then stages, then attention groups."""
    return (group * layout.pipeline_parallel_size + stage) * layout.tensor_parallel_size + index


def ring_by_link(ranks: list[int], in_node: int, sent: float) -> tuple[float, float]:
    """Each rank sends to the next: the most that a node sends to others, the most that a rank sends within."""
    leaves: Counter[int] = Counter()
    within = 0.0
    for here, there in zip(ranks, [*ranks[1:], ranks[0]], strict=True):
        if here // in_node != there // in_node:
            leaves[here // in_node] += 1
        elif here != there:
            within = sent
    return max(leaves.values(), default=0) * sent, within


def test_an_all_to_all_by_link() -> None:
    # Two of eight ranks in a node: both send an eighth to each of six others, and one to each other.
    split = split_bytes(CollectiveKind.ALL_TO_ALL, Placement(rank_count=8, ranks_in_node=2), 800.0)
    assert (split.outer_bytes, split.inner_bytes) == (1200, 100)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_ring_of_a_tensor_parallel_group(layout: ParallelLayout) -> None:
    split = split_bytes(CollectiveKind.ALL_REDUCE, tensor_group(layout), 480.0)
    sent = sent_bytes(CollectiveKind.ALL_REDUCE, layout.tensor_parallel_size, 480.0)
    for group in range(layout.data_parallel_size):
        for stage in range(layout.pipeline_parallel_size):
            ranks = [rank(layout, group, stage, index) for index in range(layout.tensor_parallel_size)]
            assert ring_by_link(ranks, layout.ranks_per_node, sent) == (split.outer_bytes, split.inner_bytes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_exchange_among_the_ranks_that_share_experts(layout: ParallelLayout) -> None:
    size, groups, in_node = layout.tensor_parallel_size, layout.data_parallel_size, layout.ranks_per_node
    ring = split_bytes(CollectiveKind.ALL_GATHER, expert_group(layout), 480.0)
    sent = sent_bytes(CollectiveKind.ALL_GATHER, size * groups, 480.0)
    exchange = split_bytes(CollectiveKind.ALL_TO_ALL, expert_group(layout), 480.0)
    most_out = most_within = 0.0
    for stage in range(layout.pipeline_parallel_size):
        ranks = [rank(layout, group, stage, index) for group in range(groups) for index in range(size)]
        outer, inner = ring_by_link(ranks, in_node, sent)
        # The busiest stage has that much; another one may have fewer ranks in a node.
        assert outer <= ring.outer_bytes
        assert inner <= ring.inner_bytes
        most_out, most_within = max(most_out, outer), max(most_within, inner)
        members = Counter(one // in_node for one in ranks)
        share = 480.0 / len(ranks)
        assert all(count * (len(ranks) - count) * share <= exchange.outer_bytes + 1e-9 for count in members.values())
        assert max((count - 1) * share for count in members.values()) <= exchange.inner_bytes + 1e-9
    assert (most_out, most_within) == (ring.outer_bytes, ring.inner_bytes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_boundary_between_stages(layout: ParallelLayout) -> None:
    in_node = layout.ranks_per_node
    for stage in range(layout.pipeline_parallel_size - 1):
        split = boundary_bytes(layout, stage, 10.0)
        leaves: Counter[int] = Counter()
        within = 0.0
        for group in range(layout.data_parallel_size):
            for index in range(layout.tensor_parallel_size):
                here, there = rank(layout, group, stage, index), rank(layout, group, stage + 1, index)
                if here // in_node == there // in_node:
                    within = 10.0
                else:
                    leaves[here // in_node] += 1
        assert split.outer_bytes == max(leaves.values(), default=0) * 10.0
        assert split.inner_bytes == within


def test_one_rank_per_node_shares_nothing() -> None:
    split = split_bytes(CollectiveKind.ALL_TO_ALL, expert_group(cut(1, 1, 8)), 800.0)
    assert (split.outer_bytes, split.inner_bytes) == (700.0, 0.0)
