"""What bursts say of a link, and of a change from one link to another."""

import pytest

from estimator_service.core.engine_times.bursts import burst_rates, header_ratio
from estimator_service.core.engine_times.reach import Change, Reach, either_change, reach_change
from estimator_service.core.links import resolve
from linkbound.domain.engine import BurstPoint, BurstTable
from linkbound.domain.link import Link, LinkTransport

GIGABIT = 10**9


def link(gigabits: int | None = 100, **details: object) -> Link:
    rate = None if gigabits is None else gigabits * GIGABIT
    return Link(line_rate_bits_per_second=rate, **details)  # type: ignore[arg-type]  # fields by name


def bursts(*points: tuple[int, int, int], least: float | None = 1.0, largest: float | None = None) -> BurstTable:
    """Sizes in MB, least and largest rates in Gb/s."""
    return BurstTable(
        points=tuple(
            BurstPoint(
                message_bytes=size * 10**6,
                least_bits_per_second=low * GIGABIT,
                largest_bits_per_second=high * GIGABIT,
            )
            for size, low, high in points
        ),
        least_header_ratio=least,
        largest_header_ratio=largest,
    )


def test_the_mean_header_ratio_counts() -> None:
    assert header_ratio(bursts((1, 1, 1), least=1.05, largest=1.07), resolve(link())) == pytest.approx(1.06)
    assert header_ratio(bursts((1, 1, 1), least=1.05), resolve(link())) == 1.05


def test_without_one_the_headers_of_the_link_count() -> None:
    roce = resolve(link(roce_mtu_bytes=1024))
    fabric = resolve(link(transport=LinkTransport.FABRIC))
    assert header_ratio(bursts((1, 1, 1), least=None), roce) == pytest.approx((1024 + 62) / 1024)
    assert header_ratio(bursts((1, 1, 1), least=None), fabric) == 1.0


def test_a_bare_line_rate_carries_no_more_than_its_headers_leave_where_counters_are_read() -> None:
    table = bursts((1, 50, 60), least=1.25)
    assert burst_rates(resolve(link(100)), None).full_bits_per_second == 100 * GIGABIT
    assert burst_rates(resolve(link(100)), table).full_bits_per_second == 80 * GIGABIT


def test_a_measured_rate_stays_the_full_rate_even_above_the_line() -> None:
    table = bursts((1, 50, 60), least=1.25)
    measured = resolve(link(100, measured_bits_per_second=105 * GIGABIT))
    assert burst_rates(measured, table).full_bits_per_second == 105 * GIGABIT
    alone = resolve(link(None, measured_bits_per_second=105 * GIGABIT))
    assert burst_rates(alone, table).full_bits_per_second == 105 * GIGABIT


def test_times_are_straight_between_sizes_and_keep_the_rate_of_an_end_beyond_it() -> None:
    rates = burst_rates(resolve(link(100)), bursts((1, 10, 40), (3, 20, 60)))
    # 1 MB at 40 Gb/s take 200 us, 3 MB at 60 Gb/s 400 us.
    assert rates.seconds(10**6) == pytest.approx(200e-6)
    assert rates.seconds(2 * 10**6) == pytest.approx(300e-6)
    assert rates.seconds(3 * 10**6) == pytest.approx(400e-6)
    assert rates.seconds(5 * 10**5) == pytest.approx(100e-6)
    assert rates.seconds(6 * 10**6) == pytest.approx(800e-6)
    assert [rates.covers(size) for size in (5 * 10**5, 10**6, 10**8)] == [False, True, True]


def test_no_burst_is_faster_than_the_full_rate_and_no_larger_payload_faster_than_a_smaller_one() -> None:
    over = burst_rates(resolve(link(100)), bursts((1, 90, 180)))
    assert over.seconds(10**6) == pytest.approx(8e6 / 100e9)
    falling = burst_rates(resolve(link(100)), bursts((1, 1, 1), (2, 100, 100)))
    assert falling.seconds(2 * 10**6) == falling.seconds(10**6)


def test_without_bursts_every_size_reaches_the_full_rate() -> None:
    rates = burst_rates(resolve(link(100)), None)
    assert not rates.are_known
    assert not rates.covers(10**12)
    assert rates.seconds(10**6) == pytest.approx(8e6 / 100e9)


def reach(
    wire: float, burst: float | None = None, *, seen: bool | None = None, effective: float | None = None
) -> Reach:
    has_bursts = burst is not None
    return Reach(
        effective_seconds=wire if effective is None else effective,
        wire_seconds=wire,
        burst_seconds=wire if burst is None else burst,
        is_seen=has_bursts if seen is None else seen,
        has_bursts=has_bursts,
    )


FAST, SLOW = 2.0, 5.0
CASES = [
    pytest.param(reach(FAST), reach(SLOW), Change(lower=0, expected=3, upper=3), id="rates alone"),
    pytest.param(reach(FAST, 3), reach(SLOW, 6), Change(lower=2, expected=3, upper=4), id="bursts on both"),
    pytest.param(reach(FAST, 3), reach(SLOW), Change(lower=2, expected=2.5, upper=3), id="on the faster one"),
    pytest.param(reach(FAST, 6), reach(SLOW), Change(lower=0, expected=1.5, upper=3), id="which was capped"),
    pytest.param(reach(FAST), reach(SLOW, 6), Change(lower=0, expected=3, upper=4), id="on the slower one"),
    pytest.param(reach(FAST, 2), reach(SLOW, 5), Change(lower=3, expected=3, upper=3), id="at the full rates"),
    pytest.param(reach(FAST, 9), reach(SLOW, 5), Change(lower=0, expected=0, upper=3), id="that contradict each other"),
    pytest.param(
        reach(FAST, 3, seen=False), reach(SLOW), Change(lower=0, expected=1.5, upper=3), id="at larger sizes alone"
    ),
    pytest.param(
        reach(FAST, 3, effective=1.5),
        reach(SLOW, effective=SLOW),
        Change(lower=2, expected=2.5, upper=3.5),
        id="a line rate that bytes alone count in full",
    ),
    pytest.param(
        reach(FAST, 3, effective=1.5),
        reach(SLOW, 6, effective=SLOW),
        Change(lower=2, expected=3, upper=4),
        id="the same with bursts on both",
    ),
    pytest.param(
        reach(FAST, effective=FAST),
        reach(2.1, 2.2, effective=1.9),
        Change(lower=-0.1, expected=0.1, upper=0.2),
        id="slower at the full rate and faster where bytes alone count",
    ),
]


@pytest.mark.parametrize(("old", "new", "change"), CASES)
def test_what_a_slower_link_adds(old: Reach, new: Reach, change: Change) -> None:
    assert_same(reach_change(old, new), change)


@pytest.mark.parametrize(("old", "new", "change"), CASES)
def test_a_faster_link_gives_it_back(old: Reach, new: Reach, change: Change) -> None:
    assert_same(reach_change(new, old), Change(lower=-change.upper, expected=-change.expected, upper=-change.lower))


def assert_same(found: Change, expected: Change) -> None:
    assert (found.lower, found.expected, found.upper) == pytest.approx(
        (expected.lower, expected.expected, expected.upper)
    )


def test_of_two_readings_of_a_rate_either_may_be_true() -> None:
    first, second = Change(lower=1, expected=2, upper=5), Change(lower=0, expected=4, upper=4)
    assert either_change(first, second) == Change(lower=0, expected=3, upper=5)


def test_the_same_link_changes_nothing_however_little_is_known_of_it() -> None:
    assert reach_change(reach(FAST, 3), reach(FAST, 3)) == Change(lower=0, expected=0, upper=0)
