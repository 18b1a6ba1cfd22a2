"""NCCL's own time model: its fixed times by hand, what goes over the wire, and which choice is the least."""

import pytest

from estimator_service.core.collective_time import Group, Rates, library_choices
from estimator_service.core.collective_time.library_model import fixed_seconds, tree_rate_fraction, wire_bytes
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind, CollectiveProtocol
from linkbound.domain.collective_estimate import CollectiveChoice

RING, TREE, ONE_SHOT = (
    CollectiveAlgorithm.RING,
    CollectiveAlgorithm.DOUBLE_BINARY_TREE,
    CollectiveAlgorithm.ONE_SHOT,
)
LL, LL128, SIMPLE = CollectiveProtocol.LL, CollectiveProtocol.LL128, CollectiveProtocol.SIMPLE
ALL_REDUCE = CollectiveKind.ALL_REDUCE
EIGHT = Group(rank_count=8)
SPARK = Rates(outer_bits_per_second=200e9)


def chosen(choices: tuple[CollectiveChoice, ...]) -> CollectiveChoice:
    (choice,) = [choice for choice in choices if choice.chosen]
    return choice


@pytest.mark.parametrize(
    ("algorithm", "protocol", "group", "microseconds"),
    [
        # With one rank in a node a ring has the steps of trees: 6.6 + 14 x 5.0.
        (RING, LL, EIGHT, 76.6),
        (RING, LL128, EIGHT, 14.0 + 14 * 8.5),
        (RING, SIMPLE, EIGHT, 1.4 * (8.4 + 14 * 14.0)),
        (TREE, LL, EIGHT, 6.8 + 6 * 5.0),
        (TREE, SIMPLE, EIGHT, 8.4 + 6 * 14.0),
        # Two nodes of eight: 28 of 30 steps within them, at least one post of 1 us each, three for Simple.
        (RING, LL, Group(rank_count=16, ranks_per_node=8), 6.6 + 28 * 1.0 + 2 * 2.7),
        (RING, SIMPLE, Group(rank_count=16, ranks_per_node=8), 1.4 * (8.4 + 28 * 3.4 + 2 * 14.0)),
        (TREE, LL, Group(rank_count=16, ranks_per_node=8), 6.8 + 14 * 0.6 + 2 * 5.0),
        # One node: no step leaves it, and nothing is posted.
        (RING, LL, Group(rank_count=8, ranks_per_node=8), 6.6 + 14 * 0.6),
        (RING, SIMPLE, Group(rank_count=8, ranks_per_node=8), 8.4 + 14 * 3.4),
    ],
)
def test_fixed_times_of_an_all_reduce(
    algorithm: CollectiveAlgorithm, protocol: CollectiveProtocol, group: Group, microseconds: float
) -> None:
    assert fixed_seconds(algorithm, protocol, ALL_REDUCE, group) == pytest.approx(microseconds * 1e-6)


@pytest.mark.parametrize(
    ("group", "bytes_per_second"),
    [
        (Group(rank_count=2, ranks_per_node=2), 282e9),
        (Group(rank_count=2), 90e9),
        (Group(rank_count=3), 70e9),
        (Group(rank_count=4), 70e9),
    ],
)
def test_a_link_without_limits_leaves_those_of_the_library(group: Group, bytes_per_second: float) -> None:
    rates = Rates(outer_bits_per_second=1e18, inner_bits_per_second=1e18)
    choices = library_choices(ALL_REDUCE, group, 2**20, rates)
    (ring,) = [choice for choice in choices if (choice.algorithm, choice.protocol) == (RING, LL)]
    sent = 2 * (group.rank_count - 1) / group.rank_count * 2**20
    assert ring.seconds - ring.fixed_seconds == pytest.approx(sent / bytes_per_second)


def test_the_latency_of_the_network_comes_with_each_step_between_nodes() -> None:
    without = fixed_seconds(RING, LL, CollectiveKind.ALL_GATHER, EIGHT)
    assert fixed_seconds(RING, LL, CollectiveKind.ALL_GATHER, EIGHT, 1e-6) == pytest.approx(without + 7e-6)


def test_wire_bytes_hold_the_flags() -> None:
    assert wire_bytes(LL, 800) == 1600
    assert wire_bytes(LL128, 120) == 128
    assert wire_bytes(SIMPLE, 800) == 800


@pytest.mark.parametrize(
    ("message_bytes", "fraction"),
    [(1, 1.0), (64, 1.0), (64 * 2**4, 0.9), (64 * 2**12, 0.4), (64 * 2**13.5, 0.45), (64 * 2**23, 1.0), (10**15, 1.0)],
)
def test_what_a_tree_reaches_with_ll(message_bytes: float, fraction: float) -> None:
    assert tree_rate_fraction(LL, message_bytes) == pytest.approx(fraction)


@pytest.mark.parametrize(
    ("message_bytes", "algorithm", "protocol"),
    [(10_240, TREE, LL), (2**20, TREE, LL128), (2**28, RING, SIMPLE)],
)
def test_what_nccl_takes_on_eight_nodes_at_200g(
    message_bytes: int, algorithm: CollectiveAlgorithm, protocol: CollectiveProtocol
) -> None:
    choice = chosen(library_choices(ALL_REDUCE, EIGHT, message_bytes, SPARK))
    assert (choice.algorithm, choice.protocol) == (algorithm, protocol)


def test_a_large_ring_takes_its_fixed_time_and_the_wire() -> None:
    choice = chosen(library_choices(ALL_REDUCE, EIGHT, 2**30, SPARK))
    assert choice.wire_bytes_per_rank == round(1.75 * 2**30)
    assert choice.seconds == pytest.approx(choice.fixed_seconds + 1.75 * 2**30 / 25e9)


def test_halving_the_link_adds_microseconds_to_a_small_all_reduce() -> None:
    """A rule that scales the whole time with the link adds 18 us here, and more the larger the fixed part is."""
    full = chosen(library_choices(ALL_REDUCE, Group(rank_count=2), 16_384, SPARK))
    half = chosen(library_choices(ALL_REDUCE, Group(rank_count=2), 16_384, Rates(outer_bits_per_second=100e9)))
    added = half.seconds - full.seconds
    assert added == pytest.approx(full.wire_bytes_per_rank * (1 / 12.5e9 - 1 / 25e9))
    assert added < 0.1 * full.seconds


def test_choices_come_fastest_first_and_one_is_taken() -> None:
    choices = library_choices(ALL_REDUCE, EIGHT, 10_240, SPARK)
    assert [choice.seconds for choice in choices] == sorted(choice.seconds for choice in choices)
    assert len(choices) == 7
    (custom,) = [choice for choice in choices if choice.algorithm is ONE_SHOT]
    assert not custom.chosen
    # One LL step and six more posts; seven payloads on the wire.
    assert custom.fixed_seconds == pytest.approx(6.6e-6 + 5.0e-6 + 6e-6)
    assert custom.wire_bytes_per_rank == 7 * 10_240


@pytest.mark.parametrize("kind", [CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER])
def test_only_all_reduces_run_on_trees(kind: CollectiveKind) -> None:
    algorithms = {choice.algorithm for choice in library_choices(kind, EIGHT, 10_240, SPARK)}
    assert algorithms == {RING, ONE_SHOT}


@pytest.mark.parametrize(
    ("kind", "algorithm"), [(CollectiveKind.ALL_TO_ALL, ONE_SHOT), (CollectiveKind.SEND_RECEIVE, RING)]
)
def test_what_goes_straight_to_its_receiver(kind: CollectiveKind, algorithm: CollectiveAlgorithm) -> None:
    choices = library_choices(kind, EIGHT, 8 * 2**20, SPARK)
    assert {choice.algorithm for choice in choices} == {algorithm}
    assert chosen(choices).protocol is SIMPLE


def test_the_slower_of_two_links_counts() -> None:
    group = Group(rank_count=16, ranks_per_node=8)
    fast = chosen(
        library_choices(ALL_REDUCE, group, 2**30, Rates(outer_bits_per_second=1e12, inner_bits_per_second=8e12))
    )
    slow = chosen(
        library_choices(ALL_REDUCE, group, 2**30, Rates(outer_bits_per_second=1e12, inner_bits_per_second=1e11))
    )
    assert slow.seconds > 5 * fast.seconds


def test_what_64_bits_cannot_count_is_left_out() -> None:
    choices = library_choices(ALL_REDUCE, Group(rank_count=65_536), 10**15, SPARK)
    assert ONE_SHOT not in {choice.algorithm for choice in choices}
