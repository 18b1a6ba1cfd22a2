"""From raw readings to bytes: wraps, counters that begin again, clocks that go back, and readings that do not count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ingest_service.core.traffic.curve import CurvePiece, joined
from ingest_service.core.traffic.steps import CounterWidth
from ingest_service.core.traffic.unwrap import CounterUnwrapper, ReadingCounts, Readings

MS = 10**6


def readings(
    times_ns: Sequence[int], values: Sequence[int], durations_ns: Sequence[int] = (), series_id: int = 1
) -> Readings:
    return Readings(
        series_id=series_id,
        time_ns=np.array(times_ns, np.int64),
        value=np.array([value - 2**64 if value >= 2**63 else value for value in values], np.int64),
        read_duration_ns=np.array(durations_ns or [0] * len(times_ns), np.int64),
    )


def unwrapped(
    *portions: Readings, unit_bytes: int = 1, counter_bits: int = 64, is_boot_known: bool = True
) -> tuple[CurvePiece, ReadingCounts]:
    unwrapper = CounterUnwrapper(CounterWidth(unit_bytes, counter_bits), is_boot_known)
    pieces = [unwrapper.feed(portion) for portion in portions]
    pieces.append(unwrapper.finish())
    return joined([piece for piece in pieces if piece is not None]), unwrapper.counts


def steps(curve: CurvePiece) -> list[int]:
    counted: list[int] = np.diff(curve.byte_count).tolist()
    return counted


@pytest.mark.parametrize("counter_bits", [32, 64])
def test_a_counter_that_passes_its_width_goes_on(counter_bits: int) -> None:
    top = 2**counter_bits
    times = [0, MS, 2 * MS, 3 * MS]
    curve, counts = unwrapped(
        readings(times, [top - 3000, top - 1000, 1000, 4000]), unit_bytes=4, counter_bits=counter_bits
    )
    assert steps(curve) == [8000, 8000, 12000]
    assert (counts.wrap_count, counts.reset_count) == (1, 0)
    assert curve.uncovered_ns.tolist() == [0, 0, 0, 0]


def test_a_counter_that_falls_further_than_a_port_can_count_began_again() -> None:
    # As a wrap it would have counted 1.2e9 times 4 bytes within 1 ms: 38 Tb/s.
    curve, counts = unwrapped(
        readings([0, MS, 2 * MS], [3_000_000_000, 5_000_000, 6_000_000]), unit_bytes=4, counter_bits=32
    )
    assert steps(curve) == [0, 4_000_000]
    assert (counts.wrap_count, counts.reset_count) == (0, 1)
    assert curve.uncovered_ns.tolist() == [0, MS, MS]


def test_a_fall_by_less_than_half_of_the_width_is_no_wrap_however_long_it_took() -> None:
    hour_ns = 3600 * 10**9
    curve, counts = unwrapped(readings([0, hour_ns], [2**31 - 1, 0]), counter_bits=32)
    assert (steps(curve), counts.reset_count) == ([0], 1)
    curve, counts = unwrapped(readings([0, hour_ns], [2**31, 0]), counter_bits=32)
    assert (steps(curve), counts.wrap_count) == ([2**31], 1)


def test_a_wrap_may_count_what_the_fastest_port_carries_in_the_interval_and_a_millisecond() -> None:
    # 1.6 Tb/s are 200 kB in a microsecond.
    for counted, wraps in ((200_000 * 3000, 1), (200_000 * 3000 + 1, 0)):
        _, counts = unwrapped(readings([0, 2 * MS], [2**32 - counted, 0]), counter_bits=32)
        assert counts.wrap_count == wraps


@pytest.mark.parametrize("value", [2**63 - 1, 2**53 + 1])
def test_a_value_out_of_the_blue_is_not_counted(value: int) -> None:
    curve, counts = unwrapped(readings([0, MS, 2 * MS, 3 * MS], [0, value, 500, 700]))
    assert steps(curve) == [0, 0, 200]
    assert counts.reset_count == 2


def test_totals_stay_within_64_bits_whatever_is_read() -> None:
    largest = 2**53 // 4096
    count = 3000
    values = [index * largest for index in range(count)]
    curve, counts = unwrapped(*[readings([index * MS], [value]) for index, value in enumerate(values)], unit_bytes=4096)
    assert (np.diff(curve.byte_count) >= 0).all()
    assert curve.byte_count[-1] == 2**62
    assert counts.reset_count == count - 1 - 512


@pytest.mark.parametrize(("unit_bytes", "counter_bits"), [(1, 0), (0, 64), (0, 0), (1, 16)])
def test_a_gauge_and_what_counts_no_bytes_is_refused(unit_bytes: int, counter_bits: int) -> None:
    with pytest.raises(ValueError, match="no counter of bytes"):
        CounterWidth(unit_bytes, counter_bits)


def test_a_reading_counts_at_the_middle_of_its_read_and_before_the_next_one() -> None:
    curve, _ = unwrapped(readings([100, 1000, 2000], [0, 10, 20], [51, 5000, 7]))
    assert curve.time_ns.tolist() == [125, 1999, 2003]


def test_the_last_of_several_readings_at_one_time_counts() -> None:
    curve, counts = unwrapped(readings([0, MS, MS], [0, 10, 12]), readings([MS, 2 * MS], [15, 20]))
    assert (curve.time_ns.tolist(), steps(curve)) == ([0, MS, 2 * MS], [15, 5])
    assert (counts.duplicate_count, counts.sample_count) == (2, 5)


def test_a_clock_that_goes_back_leaves_a_hole_and_no_false_bytes() -> None:
    # Back by 2 ms: 100 bytes a millisecond, of which those of the step are not known.
    curve, counts = unwrapped(
        readings([0, MS, 2 * MS, 3 * MS], [0, 100, 200, 300]),
        readings([MS + 5, 2 * MS + 5, 3 * MS + 5, 4 * MS + 5], [400, 500, 600, 700]),
    )
    assert curve.time_ns.tolist() == [0, MS, 2 * MS, 3 * MS, 3 * MS + 5, 4 * MS + 5]
    assert steps(curve) == [100, 100, 100, 0, 100]
    assert curve.uncovered_ns.tolist() == [0, 0, 0, 0, 5, 5]
    assert (counts.late_count, counts.reset_count) == (2, 1)


def test_a_second_writer_of_the_same_counter_adds_nothing_while_the_first_reads_too() -> None:
    first = readings([0, 2 * MS, 4 * MS], [0, 200, 400], series_id=1)
    second = readings([MS, 3 * MS, 5 * MS, 6 * MS], [100, 300, 500, 600], series_id=2)
    curve, counts = unwrapped(first, second)
    assert curve.time_ns.tolist() == [0, 2 * MS, 4 * MS, 5 * MS, 6 * MS]
    assert steps(curve) == [200, 200, 100, 100]
    assert (counts.late_count, counts.reset_count) == (2, 0)


def test_series_of_unknown_boots_do_not_go_on_from_each_other() -> None:
    first = readings([0, MS], [0, 100], series_id=1)
    second = readings([9 * MS, 10 * MS], [5000, 5100], series_id=2)
    curve, counts = unwrapped(first, second, is_boot_known=False)
    assert (steps(curve), counts.reset_count) == ([100, 0, 100], 1)
    curve, counts = unwrapped(first, second, is_boot_known=True)
    assert (steps(curve), counts.reset_count) == ([100, 4900, 100], 0)


def test_gaps_are_intervals_of_more_than_twice_the_usual_one() -> None:
    times = [0, MS, 2 * MS, 4 * MS, 5 * MS, 7 * MS + 1, 8 * MS + 1]
    _, counts = unwrapped(readings(times, range(7)))
    assert (counts.interval_ns, counts.gap_count) == (MS, 1)


def test_the_usual_interval_is_that_of_the_first_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest_service.core.traffic.intervals.USUAL_INTERVAL_COUNT", 4)
    unwrapper = CounterUnwrapper(CounterWidth(1, 64))
    times = [0, MS, 2 * MS, 5 * MS, 6 * MS, 16 * MS, 26 * MS, 27 * MS]
    for time_ns in times:
        unwrapper.feed(readings([time_ns], [time_ns]))
    unwrapper.finish()
    assert (unwrapper.counts.interval_ns, unwrapper.counts.gap_count) == (MS, 3)


def test_a_counter_of_one_reading_tells_of_no_time() -> None:
    curve, counts = unwrapped(readings([5], [7]))
    assert (curve.time_ns.tolist(), curve.byte_count.tolist()) == ([5], [0])
    assert (counts.sample_count, counts.interval_ns) == (1, 0)
