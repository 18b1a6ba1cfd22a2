"""What is fitted to measured times: the curve, its residuals, its interval, and the group it stands for."""

from pathlib import Path

import pytest
from attrs import evolve

from estimator_service.catalog.calibration_files import read_calibration
from estimator_service.catalog.directory import SHIPPED_DIRECTORY
from estimator_service.core.collective_time import calibrated_seconds, covers, fit
from estimator_service.core.collective_time.curve import gap_exponent, monotone_seconds
from estimator_service.core.collective_time.fit import BACK_TO_BACK, IN_FRAMEWORK, NO_SCATTER
from estimator_service.core.links import resolve
from linkbound.domain.calibration import (
    Calibration,
    CollectivePoint,
    CollectiveTable,
    CollectiveTiming,
    ProtocolChange,
)
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Estimate
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.rules import checked

ALPHA, BETA = 20e-6, 1 / 20e9
SIZES = [2**exponent for exponent in range(10, 31)]


def table(
    points: list[tuple[int, float]],
    *,
    rank_count: int = 2,
    ranks_per_node: int = 1,
    timing: CollectiveTiming = CollectiveTiming.UNSPECIFIED,
) -> CollectiveTable:
    return CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=rank_count,
        ranks_per_node=ranks_per_node,
        points=tuple(CollectivePoint(message_bytes=size, seconds=time) for size, time in points),
        timing=timing,
    )


def straight(sizes: list[int] = SIZES) -> Calibration:
    return fit(table([(size, ALPHA + BETA * size) for size in sizes]))


def at(gigabits: float) -> ResolvedLink:
    return resolve(Link(line_rate_bits_per_second=round(gigabits * 1e9)))


def expected(estimate: Estimate) -> float:
    assert estimate.expected is not None
    return estimate.expected


def upper(estimate: Estimate) -> float:
    assert estimate.upper is not None
    return estimate.upper


@pytest.mark.parametrize("message_bytes", [1024, 5000, 10**6, 3 * 10**8, 2**30, 2**33])
def test_a_fixed_time_and_a_rate_are_found_again(message_bytes: int) -> None:
    calibration = straight()
    answer = calibrated_seconds(calibration, message_bytes)
    assert expected(answer) == pytest.approx(ALPHA + BETA * message_bytes)
    assert answer.expected_basis is answer.lower_basis is answer.upper_basis is Basis.CALIBRATED
    assert all(abs(residual.error_ratio) < 1e-9 for residual in calibration.residuals)


def test_the_headline_figures_are_measured_ones() -> None:
    calibration = straight()
    assert calibration.fixed_seconds == pytest.approx(ALPHA + BETA * 1024)
    # Two ranks: the bus factor is 1.
    assert calibration.bus_bandwidth_bytes_per_second == pytest.approx(2**30 / (ALPHA + BETA * 2**30))
    assert calibration.interval_fraction == pytest.approx(0.04)
    assert calibration.protocol_changes == ()


def test_a_small_message_waits_and_a_large_one_flows() -> None:
    calibration = straight()
    assert calibrated_seconds(calibration, 1024).binding_constraint is Constraint.NETWORK_LATENCY
    assert calibrated_seconds(calibration, 2**30).binding_constraint is Constraint.NETWORK_BANDWIDTH


def test_a_size_that_comes_several_times_is_averaged_and_sizes_are_sorted() -> None:
    calibration = fit(table([(4096, 3e-5), (1024, 1e-5), (4096, 5e-5), (2048, 2e-5)]))
    assert [(point.message_bytes, point.seconds) for point in calibration.table.points] == [
        (1024, 1e-5),
        (2048, 2e-5),
        (4096, pytest.approx(4e-5)),
    ]


def test_times_that_fall_share_their_geometric_mean() -> None:
    assert monotone_seconds([1.0, 4.0, 1.0, 8.0]) == pytest.approx((1.0, 2.0, 2.0, 8.0))
    assert monotone_seconds([8.0, 4.0, 2.0]) == pytest.approx((4.0, 4.0, 4.0))
    assert monotone_seconds([1.0, 2.0, 3.0]) == pytest.approx((1.0, 2.0, 3.0))


def falls_said(calibration: Calibration) -> list[str]:
    return [sentence for sentence in calibration.assumptions if sentence.startswith("Times fall with the size")]


def test_two_times_that_fall_are_said_and_widen_the_interval() -> None:
    calibration = fit(table([(16_384, 0.006), (67_108_864, 0.00006)]))
    (sentence,) = falls_said(calibration)
    assert "100 times from 16,384 to 67,108,864 bytes" in sentence
    assert calibration.interval_fraction == pytest.approx(99)
    assert NO_SCATTER not in calibration.assumptions
    for size, seconds in ((16_384, 0.006), (67_108_864, 0.00006)):
        answer = calibrated_seconds(calibration, size)
        assert answer.lower <= seconds <= upper(answer)


def test_one_fall_among_many_times_is_said_and_widens_the_interval_there() -> None:
    points = [(size, ALPHA + BETA * size) for size in SIZES]
    points[5] = (SIZES[5], 10 * points[5][1])
    calibration = fit(table(points))
    (sentence,) = falls_said(calibration)
    assert f"from {SIZES[5]:,} to {SIZES[6]:,} bytes" in sentence
    assert _width(calibrated_seconds(calibration, SIZES[5])) > 3 * _width(calibrated_seconds(calibration, SIZES[15]))


def test_times_that_fall_within_the_scatter_are_not_spoken_of() -> None:
    assert falls_said(straight()) == []
    assert falls_said(fit(table([(1024, 1.05e-5), (2048, 1e-5)]))) == []


@pytest.mark.parametrize(("ratio", "exponent"), [(2, 1), (8, 1), (64, 0.85), (512, 0.7), (10**6, 0.7)])
def test_wide_gaps_bend(ratio: float, exponent: float) -> None:
    assert gap_exponent(ratio) == pytest.approx(exponent)


def test_two_points_slow_the_middle_down() -> None:
    """Straight between 16 KB and 64 MB, middle sizes would reach the full rate at once."""
    small, large = 16_384, 67_108_864
    calibration = fit(table([(small, 30e-6), (large, 3e-3)]))
    slope = (3e-3 - 30e-6) / (large - small)
    middle = 2**20
    assert expected(calibrated_seconds(calibration, middle)) > 30e-6 + slope * (middle - small)
    for size, seconds in ((small, 30e-6), (large, 3e-3)):
        assert expected(calibrated_seconds(calibration, size)) == pytest.approx(seconds)
    assert calibration.residuals == ()
    assert NO_SCATTER in calibration.assumptions
    assert calibration.interval_fraction == pytest.approx(0.08)


def test_a_jump_is_reported_and_widens_the_interval() -> None:
    smooth = [(size, ALPHA + BETA * size) for size in SIZES]
    jump = [(size, time * (3 if size >= 2**20 else 1)) for size, time in smooth]
    calibration = fit(table(jump))
    assert ProtocolChange(from_message_bytes=2**18, to_message_bytes=2**21) in calibration.protocol_changes
    kink, calm = 3 * 2**18, 3 * 2**28
    assert _width(calibrated_seconds(calibration, kink)) > 3 * _width(calibrated_seconds(calibration, calm))
    assert _width(calibrated_seconds(calibration, calm)) < 1.5 * _width(calibrated_seconds(straight(), calm))


def test_the_interval_holds_what_the_points_leave_open() -> None:
    """Between 1 MB at 100 us and 8 MB at 400 us: not below 100 us, nor faster per byte than at 8 MB."""
    calibration = fit(table([(2**20, 100e-6), (2**23, 400e-6)]))
    answer = calibrated_seconds(calibration, 2**21)
    assert answer.lower < expected(answer) < upper(answer)
    assert answer.lower > 100e-6 / 1.08 * 0.99
    assert upper(answer) < 1.08 * 200e-6 * 1.01


@pytest.mark.parametrize("direction", [-1, 1])
def test_the_interval_widens_beyond_the_points(direction: int) -> None:
    calibration = straight([2**16, 2**18, 2**20, 2**22])
    edge = 2**16 if direction < 0 else 2**22
    widths = [_width(calibrated_seconds(calibration, edge * 2 ** (direction * octaves))) for octaves in range(8)]
    assert widths == sorted(widths)
    assert widths[-1] > 2 * widths[0]


def test_beyond_the_points_time_and_bytes_per_second_do_not_fall() -> None:
    steep = fit(table([(2**20, 100e-6), (2**21, 900e-6)]))
    assert expected(calibrated_seconds(steep, 2**22)) == pytest.approx(1800e-6)
    assert expected(calibrated_seconds(steep, 2**19)) == pytest.approx(50e-6)
    flat = fit(table([(2**10, 20e-6), (2**12, 20e-6)]))
    assert expected(calibrated_seconds(flat, 2**20)) == pytest.approx(20e-6)


def test_a_slower_link_adds_the_difference_of_the_bandwidth_terms() -> None:
    calibration = straight()
    measured_rate = calibration.bus_bandwidth_bytes_per_second
    for size in (1024, 2**24):
        alone = calibrated_seconds(calibration, size)
        over = calibrated_seconds(calibration, size, at(80))
        added = size / 10e9 - size / measured_rate
        assert expected(over) - expected(alone) == pytest.approx(added)
        # A small payload may have been measured with LL, of which every other byte is a flag.
        assert upper(over) - upper(alone) == pytest.approx(added * (2 if size == 1024 else 1), rel=0.1)
        assert over.lower == max(alone.lower, size / 10e9)
    assert calibrated_seconds(calibration, 2**30, at(8)).lower_basis is Basis.FORMULA


@pytest.mark.parametrize("size", [1024, 2**18, 2**24, 2**32])
def test_a_faster_link_saves_at_most_the_difference_of_the_bandwidth_terms(size: int) -> None:
    """... and leaves what any smaller message takes at the least: here 2^18 bytes are looked at down to 1, closely."""
    calibration = straight()
    saved_per_byte = 1 / calibration.bus_bandwidth_bytes_per_second - 1 / 1250e9
    smaller_sizes = [max(size * 2 ** (-step / 256), 1) for step in range(256 * 20)]
    left = [calibrated_seconds(calibration, one).lower - one * saved_per_byte for one in smaller_sizes]
    alone, over = calibrated_seconds(calibration, size), calibrated_seconds(calibration, size, at(10_000))
    assert over.lower == pytest.approx(max(*left, size / 1250e9), rel=1e-6)
    assert over.lower < alone.lower
    assert (over.expected, over.upper) == (alone.expected, alone.upper)
    assert over.lower_basis is (Basis.FORMULA if over.lower == size / 1250e9 else Basis.MIXED)


def test_beyond_small_sizes_a_link_leaves_more_than_the_wire() -> None:
    """Two sizes at 20 us go on at 20 us; over a link, the bytes of a megabyte come beside what the smallest waits."""
    flat = fit(table([(2**10, 20e-6), (2**12, 20e-6)]))
    fixed = 20e-6 - 2**10 / flat.bus_bandwidth_bytes_per_second
    over = calibrated_seconds(flat, 2**20, at(200))
    assert over.lower == pytest.approx(2**20 / 25e9)
    assert expected(over) == pytest.approx(2**20 / 25e9 + fixed * (1 - 2**12 / 2**20))
    assert over.lower < expected(over) < upper(over)
    # At the last size itself nothing changes: how much of its time is fixed was not measured.
    edge = calibrated_seconds(flat, 2**12, at(0.8))
    assert expected(edge) == pytest.approx(20e-6 + 2**12 / 1e8 - 20e-6)


@pytest.mark.parametrize("gigabits", [0.01, 1, 40, 80])
def test_beyond_the_points_no_slower_link_is_faster_than_the_recorded_bandwidth(gigabits: float) -> None:
    calibration = straight([2**16, 2**18, 2**20, 2**22])
    for size in (2**23, 2**26, 2**33):
        over = calibrated_seconds(calibration, size, at(gigabits))
        assert over.lower < expected(over) < upper(over)
        assert size / expected(over) < calibration.bus_bandwidth_bytes_per_second


def test_a_calibration_stands_for_its_own_group_alone() -> None:
    calibration = straight()
    assert covers(calibration, CollectiveKind.ALL_REDUCE, 2)
    assert not covers(calibration, CollectiveKind.ALL_GATHER, 2)
    assert not covers(calibration, CollectiveKind.ALL_REDUCE, 4)
    assert not covers(calibration, CollectiveKind.ALL_REDUCE, 2, 2)


@pytest.mark.parametrize(
    ("kind", "algorithm", "is_covered"),
    [
        (CollectiveKind.ALL_REDUCE, CollectiveAlgorithm.UNSPECIFIED, True),
        (CollectiveKind.ALL_REDUCE, CollectiveAlgorithm.RING, True),
        (CollectiveKind.ALL_REDUCE, CollectiveAlgorithm.AUTO, True),
        (CollectiveKind.ALL_REDUCE, CollectiveAlgorithm.DOUBLE_BINARY_TREE, False),
        (CollectiveKind.ALL_REDUCE, CollectiveAlgorithm.ONE_SHOT, False),
        (CollectiveKind.ALL_GATHER, CollectiveAlgorithm.ONE_SHOT, False),
        (CollectiveKind.ALL_TO_ALL, CollectiveAlgorithm.ONE_SHOT, True),
        (CollectiveKind.SEND_RECEIVE, CollectiveAlgorithm.ONE_SHOT, True),
    ],
)
def test_a_calibration_stands_for_the_library_s_own_choice(
    kind: CollectiveKind, algorithm: CollectiveAlgorithm, *, is_covered: bool
) -> None:
    calibration = straight()
    of_kind = evolve(calibration, table=evolve(calibration.table, kind=kind))
    assert covers(of_kind, kind, 2, algorithm=algorithm) is is_covered
    assert not covers(of_kind, kind, 4, algorithm=algorithm)


@pytest.mark.parametrize(
    ("timing", "sentence"),
    [(CollectiveTiming.UNSPECIFIED, BACK_TO_BACK), (CollectiveTiming.IN_FRAMEWORK, IN_FRAMEWORK)],
)
def test_how_times_were_taken_is_said(timing: CollectiveTiming, sentence: str) -> None:
    assert sentence in fit(table([(1, 1e-6), (2, 1e-6)], timing=timing)).assumptions


@pytest.mark.parametrize(
    ("points", "told"),
    [
        # Microseconds in a column of seconds.
        ([(16384, 60.0), (2**26, 6500.0)], "16,384 bytes take 60.00 s, and the bus bandwidth is 1.03e+04 bytes/s"),
        ([(2**20, 5.0), (2**26, 100.0)], "1,048,576 bytes take 5.00 s, and the bus bandwidth is 6.71e+05 bytes/s"),
        ([(8, 2e-8), (2**20, 1e-3)], "8 bytes take 20.00 ns"),
    ],
)
def test_times_that_no_network_has_are_remarked_on(points: list[tuple[int, float]], told: str) -> None:
    sentences = fit(table(points)).assumptions
    assert told in sentences[0]
    assert "microseconds" in sentences[0]


@pytest.mark.parametrize(
    "points",
    [
        [(16384, 60e-6), (2**26, 6.5e-3)],
        # Small sizes alone never reach a rate; a gigabyte over 100 Mb/s takes minutes.
        [(8, 20e-6), (1024, 21e-6)],
        [(65536, 0.9), (2**30, 90.0)],
    ],
)
def test_times_that_a_network_may_have_are_not(points: list[tuple[int, float]]) -> None:
    assert not any("another unit" in sentence for sentence in fit(table(points)).assumptions)


@pytest.mark.parametrize(
    "path", sorted((SHIPPED_DIRECTORY / "calibrations").glob("*.toml")), ids=lambda path: path.stem
)
def test_no_shipped_times_are_remarked_on(path: Path) -> None:
    assert not any("another unit" in sentence for sentence in read_calibration(path).assumptions)


def test_the_worst_table_still_gives_finite_ends() -> None:
    points = [(1, 1e-9), (2, 1e6), (3, 1e-9), (10**15, 1e6), (10**14, 1e-9)]
    for size in (1, 2, 10**7, 10**15):
        answer = calibrated_seconds(fit(table(points)), size)
        assert 0 < answer.lower <= expected(answer) <= upper(answer) < 1e30


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        (table([(1024, 1e-5), (1024, 2e-5)]), "points"),
        (table([(1024, 1e-5), (2048, 2e-5)], rank_count=4, ranks_per_node=3), "ranks_per_node"),
        (table([(1024, 1e-5), (2048, 0.0)]), "points[1].seconds"),
        (table([(0, 1e-5), (2048, 1e-5)]), "points[0].message_bytes"),
    ],
)
def test_a_table_has_rules(broken: CollectiveTable, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        checked(broken)
    assert [violation.field for violation in caught.value.field_violations] == [field]


def _width(estimate: Estimate) -> float:
    return (upper(estimate) - estimate.lower) / expected(estimate)
