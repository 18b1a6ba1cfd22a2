"""One collective: its algorithm, its group, its choices, and what a calibration adds."""

from typing import Any

import pytest
from attrs import evolve

from estimator_service.core import assumptions
from estimator_service.core.collective_time import calibrated_seconds
from estimator_service.core.single_collective import estimate_collective
from estimator_service.service import default_estimator
from linkbound.domain.calibration import CollectivePoint, CollectiveTable
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.collective_estimate import CollectiveEstimate, CollectiveRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Estimate
from linkbound.domain.link import Link

LINK = Link(line_rate_bits_per_second=200_000_000_000)
NVLINK = Link(line_rate_bits_per_second=3_600_000_000_000)
MEBIBYTE = 2**20
ESTIMATOR = default_estimator()


def ask(**rest: Any) -> CollectiveEstimate:
    question: dict[str, Any] = {"kind": CollectiveKind.ALL_REDUCE, "rank_count": 8, "message_bytes": MEBIBYTE}
    return ESTIMATOR.estimate_collective(CollectiveRequest(**{**question, "link": LINK, **rest}))


def seconds(answer: CollectiveEstimate) -> Estimate:
    assert answer.seconds is not None
    return answer.seconds


def fields_refused(**rest: Any) -> list[str]:
    with pytest.raises(InvalidArgumentError) as caught:
        ask(**rest)
    return [violation.field for violation in caught.value.field_violations]


@pytest.mark.parametrize(
    ("algorithm", "payloads", "sentence"),
    [
        (CollectiveAlgorithm.UNSPECIFIED, 1.75, assumptions.RING),
        (CollectiveAlgorithm.RING, 1.75, assumptions.RING),
        (CollectiveAlgorithm.DOUBLE_BINARY_TREE, 1.75, assumptions.TREES),
        (CollectiveAlgorithm.ONE_SHOT, 7, assumptions.ONE_SHOT),
        (CollectiveAlgorithm.AUTO, 1.75, assumptions.LIBRARY_CHOICE),
    ],
)
def test_bytes_and_bound_are_of_the_algorithm(algorithm: CollectiveAlgorithm, payloads: float, sentence: str) -> None:
    answer = ask(algorithm=algorithm)
    assert answer.sent_bytes_per_rank == payloads * MEBIBYTE
    assert seconds(answer).lower == pytest.approx(payloads * MEBIBYTE / 25e9)
    assert seconds(answer).expected is None
    assert answer.assumptions[0] == sentence


def test_the_library_s_choices_are_answered_with_a_size() -> None:
    assert sum(choice.chosen for choice in ask().choices) == 1
    without = ask(message_bytes=None)
    assert without.choices == ()
    assert without.sent_bytes_per_rank is None
    assert assumptions.LIBRARY_MODEL not in without.assumptions


def test_ranks_of_a_node_share_its_link() -> None:
    answer = ask(rank_count=16, ranks_per_node=8, inner_link=NVLINK)
    assert answer.sent_bytes_per_rank == answer.inner_sent_bytes_per_rank == 1.875 * MEBIBYTE
    assert seconds(answer).lower == pytest.approx(1.875 * MEBIBYTE / 25e9)
    assert answer.inner_link is not None
    assert answer.inner_link.effective_bits_per_second == NVLINK.line_rate_bits_per_second
    assert assumptions.ONE_LINK_PER_NODE in answer.assumptions


def test_one_node_sends_nothing_between_nodes() -> None:
    answer = ask(rank_count=8, ranks_per_node=8, inner_link=NVLINK)
    assert answer.sent_bytes_per_rank == 0
    assert answer.inner_sent_bytes_per_rank == 1.75 * MEBIBYTE
    assert seconds(answer).lower == pytest.approx(1.75 * MEBIBYTE / 450e9)
    assert answer.bus_bandwidth_bytes_per_second.upper == pytest.approx(450e9)


def test_a_slow_link_within_the_node_counts() -> None:
    answer = ask(rank_count=16, ranks_per_node=8, inner_link=Link(line_rate_bits_per_second=8_000_000_000))
    assert seconds(answer).lower == pytest.approx(1.875 * MEBIBYTE / 1e9)


def test_an_inner_link_of_single_ranks_is_not_used() -> None:
    given, without = ask(inner_link=NVLINK), ask()
    assert given.assumptions == (*without.assumptions[:2], assumptions.UNUSED_INNER_LINK, *without.assumptions[2:])
    assert evolve(given, assumptions=()) == evolve(without, assumptions=())


def test_an_all_to_all_sends_everything_straight_whatever_is_asked() -> None:
    answer = ask(kind=CollectiveKind.ALL_TO_ALL, rank_count=16, ranks_per_node=8, inner_link=NVLINK)
    # Each of eight ranks has a sixteenth for each of eight others.
    assert answer.sent_bytes_per_rank == 4 * MEBIBYTE


@pytest.mark.parametrize("name", ["dgx-spark-8-switch", "calibrations"])
def test_a_calibration_gives_expected_times(name: str) -> None:
    calibration = ESTIMATOR.get_calibration("dgx-spark-8-switch")
    given: dict[str, Any] = {"calibration": name}
    if name == "calibrations":
        given = {"collective_table": calibration.table}
    answer = ask(**given)
    times = seconds(answer)
    assert times.expected == calibrated_seconds(calibration, MEBIBYTE).expected
    assert times.expected_basis is Basis.CALIBRATED
    assert answer.calibration is not None
    assert answer.calibration.table == calibration.table
    rates = answer.bus_bandwidth_bytes_per_second
    assert times.upper is not None
    assert rates.expected == pytest.approx(1.75 * MEBIBYTE / (times.expected or 0))
    assert (rates.lower, rates.upper) == pytest.approx((1.75 * MEBIBYTE / times.upper, 1.75 * MEBIBYTE / times.lower))


def test_a_calibration_of_another_group_says_nothing() -> None:
    answer = ask(rank_count=4, calibration="dgx-spark-8-switch")
    assert seconds(answer).expected is None
    assert seconds(answer).upper is None
    assert answer.calibration is not None
    assert any("was measured on all-reduce among 8 ranks" in sentence for sentence in answer.assumptions)


@pytest.mark.parametrize("algorithm", [CollectiveAlgorithm.ONE_SHOT, CollectiveAlgorithm.DOUBLE_BINARY_TREE])
def test_an_algorithm_asked_for_in_place_of_the_library_s_is_not_calibrated(algorithm: CollectiveAlgorithm) -> None:
    answer = ask(algorithm=algorithm, message_bytes=10_240, calibration="dgx-spark-8-switch")
    assert answer.seconds == ask(algorithm=algorithm, message_bytes=10_240).seconds
    assert seconds(answer).expected is None
    assert seconds(answer).lower_basis is Basis.FORMULA
    assert assumptions.NOT_OF_THE_CHOICE in answer.assumptions
    assert assumptions.CALIBRATED_LINK not in answer.assumptions


@pytest.mark.parametrize("algorithm", [CollectiveAlgorithm.RING, CollectiveAlgorithm.AUTO])
def test_a_ring_and_the_library_s_choice_have_its_times(algorithm: CollectiveAlgorithm) -> None:
    answer = ask(algorithm=algorithm, calibration="dgx-spark-8-switch")
    assert seconds(answer) == seconds(ask(calibration="dgx-spark-8-switch"))
    assert assumptions.CALIBRATED_CHOICE in answer.assumptions
    assert assumptions.NOT_OF_THE_CHOICE not in answer.assumptions


def test_the_calibrated_choice_is_not_before_its_least_wire_and_not_held_to_that_of_a_ring() -> None:
    fast = CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=4,
        ranks_per_node=2,
        points=(CollectivePoint(message_bytes=1024, seconds=1e-9), CollectivePoint(message_bytes=2048, seconds=1e-9)),
    )
    answer = ask(
        rank_count=4,
        ranks_per_node=2,
        inner_link=NVLINK,
        algorithm=CollectiveAlgorithm.AUTO,
        collective_table=fast,
    )
    # Trees send 2 (2 - 1) / 2 of the payload between two nodes, where a ring of four sends 1.5 times as much.
    assert seconds(answer).lower == pytest.approx(MEBIBYTE / 25e9)


def test_a_calibrated_group_within_a_node_is_as_slow_as_its_own_link() -> None:
    table = CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=8,
        ranks_per_node=8,
        points=(CollectivePoint(message_bytes=1024, seconds=1e-9), CollectivePoint(message_bytes=2048, seconds=1e-9)),
    )
    answer = ask(ranks_per_node=8, inner_link=Link(line_rate_bits_per_second=8_000_000_000), collective_table=table)
    assert seconds(answer).lower == pytest.approx(1.75 * MEBIBYTE / 1e9)


def test_a_10_gigabit_link_slows_a_calibrated_collective_by_its_bandwidth_alone() -> None:
    small, large = (
        [
            seconds(ask(message_bytes=size, link=link, calibration="dgx-spark-8-switch"))
            for link in (LINK, Link(line_rate_bits_per_second=10_000_000_000))
        ]
        for size in (20_480, 64 * MEBIBYTE)
    )
    measured_rate = ESTIMATOR.get_calibration("dgx-spark-8-switch").bus_bandwidth_bytes_per_second
    for (fast, slow), size in ((small, 20_480), (large, 64 * MEBIBYTE)):
        added = 1.75 * size * (1 / 1.25e9 - 1 / measured_rate)
        assert (slow.expected or 0) - (fast.expected or 0) == pytest.approx(added)
    assert (small[1].expected or 0) < 1.3 * (small[0].expected or 0)
    assert (large[1].expected or 0) > 10 * (large[0].expected or 0)


TABLE = CollectiveTable(
    kind=CollectiveKind.ALL_REDUCE,
    rank_count=8,
    points=(CollectivePoint(message_bytes=1024, seconds=1e-5), CollectivePoint(message_bytes=2048, seconds=1e-5)),
)


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"ranks_per_node": 3}, ["ranks_per_node", "inner_link"]),
        ({"ranks_per_node": 4}, ["inner_link"]),
        ({"ranks_per_node": 65}, ["ranks_per_node"]),
        (
            {"algorithm": CollectiveAlgorithm.DOUBLE_BINARY_TREE, "kind": CollectiveKind.ALL_GATHER},
            ["algorithm"],
        ),
        (
            {"algorithm": CollectiveAlgorithm.ONE_SHOT, "rank_count": 65_536, "message_bytes": 10**15},
            ["message_bytes"],
        ),
        ({"algorithm": CollectiveAlgorithm.UNKNOWN}, ["algorithm"]),
        ({"calibration": "dgx-spark-pair", "collective_table": TABLE}, ["collective_table"]),
        ({"rank_count": 1}, ["rank_count"]),
        ({"collective_table": evolve(TABLE, points=TABLE.points[:1])}, ["collective_table.points"]),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], fields: list[str]) -> None:
    assert fields_refused(**given) == fields


def test_the_core_answers_alike_without_a_service() -> None:
    request = CollectiveRequest(kind=CollectiveKind.ALL_GATHER, rank_count=2, message_bytes=20_480, link=LINK)
    calibration = ESTIMATOR.get_calibration("dgx-spark-pair-all-gather")
    assert estimate_collective(request, calibration).seconds == calibrated_seconds(
        calibration, 20_480, estimate_collective(request).link
    )
