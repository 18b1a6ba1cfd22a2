"""Bytes and steps of each algorithm, with one rank in a node and with several."""

import pytest

from estimator_service.core.collective_time import (
    Group,
    SentBytes,
    Steps,
    algorithm_sent_bytes,
    algorithm_steps,
    busiest_sent_bytes,
)
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind

RING, TREE, ONE_SHOT = (
    CollectiveAlgorithm.RING,
    CollectiveAlgorithm.DOUBLE_BINARY_TREE,
    CollectiveAlgorithm.ONE_SHOT,
)
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.ALL_GATHER,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_TO_ALL,
)
EIGHT = Group(rank_count=8)
TWO_OF_EIGHT = Group(rank_count=16, ranks_per_node=8)
ONE_OF_EIGHT = Group(rank_count=8, ranks_per_node=8)


@pytest.mark.parametrize(
    ("algorithm", "kind", "group", "outer", "inner"),
    [
        (RING, ALL_REDUCE, EIGHT, 1400, 0),
        (RING, ALL_GATHER, EIGHT, 700, 0),
        (RING, REDUCE_SCATTER, EIGHT, 700, 0),
        (RING, ALL_REDUCE, TWO_OF_EIGHT, 1500, 1500),
        (RING, ALL_REDUCE, ONE_OF_EIGHT, 0, 1400),
        (TREE, ALL_REDUCE, EIGHT, 1400, 0),
        (TREE, ALL_REDUCE, TWO_OF_EIGHT, 800, 1400),
        (TREE, ALL_REDUCE, ONE_OF_EIGHT, 0, 1400),
        (ONE_SHOT, ALL_REDUCE, EIGHT, 5600, 0),
        (ONE_SHOT, ALL_GATHER, EIGHT, 700, 0),
        (ONE_SHOT, ALL_TO_ALL, EIGHT, 700, 0),
        # Eight ranks of a node send their message to the eight of the other one.
        (ONE_SHOT, ALL_REDUCE, TWO_OF_EIGHT, 51_200, 5600),
        (ONE_SHOT, ALL_TO_ALL, TWO_OF_EIGHT, 3200, 350),
        (ONE_SHOT, CollectiveKind.SEND_RECEIVE, Group(rank_count=2), 800, 0),
    ],
)
def test_bytes_of_800(
    algorithm: CollectiveAlgorithm, kind: CollectiveKind, group: Group, outer: float, inner: float
) -> None:
    assert algorithm_sent_bytes(algorithm, kind, group, 800) == SentBytes(outer=outer, inner=inner)


def test_an_inner_rank_of_the_trees_sends_twice_the_payload() -> None:
    assert busiest_sent_bytes(TREE, ALL_REDUCE, EIGHT, 800) == SentBytes(outer=1600, inner=0)
    assert busiest_sent_bytes(TREE, ALL_REDUCE, ONE_OF_EIGHT, 800) == SentBytes(outer=0, inner=1600)
    assert busiest_sent_bytes(RING, ALL_REDUCE, EIGHT, 800) == algorithm_sent_bytes(RING, ALL_REDUCE, EIGHT, 800)


@pytest.mark.parametrize(
    ("algorithm", "kind", "group", "outer", "inner"),
    [
        (RING, ALL_REDUCE, EIGHT, 14, 0),
        (RING, ALL_GATHER, EIGHT, 7, 0),
        (RING, ALL_REDUCE, TWO_OF_EIGHT, 2, 28),
        (RING, ALL_REDUCE, ONE_OF_EIGHT, 0, 14),
        (TREE, ALL_REDUCE, EIGHT, 6, 0),
        (TREE, ALL_REDUCE, Group(rank_count=9), 8, 0),
        (TREE, ALL_REDUCE, TWO_OF_EIGHT, 2, 14),
        (ONE_SHOT, ALL_REDUCE, EIGHT, 1, 0),
        (ONE_SHOT, ALL_REDUCE, ONE_OF_EIGHT, 0, 1),
    ],
)
def test_steps(algorithm: CollectiveAlgorithm, kind: CollectiveKind, group: Group, outer: int, inner: int) -> None:
    assert algorithm_steps(algorithm, kind, group) == Steps(outer=outer, inner=inner)
