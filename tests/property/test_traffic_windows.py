"""Rates over windows, against fractions, and the laws that they keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from ingest_service.core.traffic import largest, lockstep
from linkbound.domain.traffic import PortTraffic, TrafficRequest
from tests.property.traffic_answers import descriptor, traffic_of
from tests.property.traffic_reference import Reading, ReferenceCounter, windows

MS = 10**6
WINDOWS_NS = (MS, 3 * MS, 6 * MS, 60 * MS)
BITS_PER_BYTE_AND_NS = 8 * 10**9


@st.composite
def readings(draw: st.DrawFn, series_id: int = 1, *, counter_bits: int = 64, tidy: bool = False) -> list[Reading]:
    """Readings of one counter, most of them a millisecond apart; unless `tidy` with everything that goes wrong."""
    time_ns = draw(st.integers(0, 70 * MS))
    value = draw(st.integers(0, 2**counter_bits - 1 if counter_bits == 32 else 2**48))
    found = [Reading(series_id=series_id, time_ns=time_ns, value=value)]
    largest_value = min(2**counter_bits, 2**63) - 1
    for _ in range(draw(st.integers(0, 25))):
        step_ns = draw(st.sampled_from([MS, MS, MS - 70_000, MS + 50_001, 4 * MS, 13 * MS]))
        happening = "rise" if tidy else draw(st.sampled_from(["rise"] * 8 + ["reset", "again", "back", "jump"]))
        counted = draw(st.integers(0, 25_000_000) | st.just(0))
        match happening:
            case "reset":
                value = draw(st.integers(0, 1000))
            case "again":
                step_ns = 0
            case "back":
                step_ns = -draw(st.integers(1, 5 * MS))
            case "jump":
                value = min(2**62, largest_value)
            case _:
                value += counted
        value = value % 2**counter_bits if counter_bits == 32 else min(value, largest_value)
        time_ns = max(time_ns + step_ns, 0)
        duration_ns = draw(st.sampled_from([0, 0, 5_000, 60_001, 3 * MS]))
        found.append(Reading(series_id=series_id, time_ns=time_ns, value=value, read_duration_ns=duration_ns))
    return found


def only(answer: tuple[PortTraffic, ...]) -> PortTraffic:
    [port] = answer
    return port


def close_to(rates: Sequence[float]) -> Any:
    """Equal but for the rounding of differences: about a 64-bit float's of all bytes of a block."""
    return pytest.approx(rates, rel=1e-9, abs=1e-12 * max(rates, default=0.0))


def ask(*readings_of_series: list[Reading], request: TrafficRequest) -> PortTraffic:
    series = {found[0].series_id: descriptor(f"mlx5_{found[0].series_id}") for found in readings_of_series}
    return only(traffic_of(series, readings_of_series, request))


REQUEST = TrafficRequest(run="r", windows_ns=WINDOWS_NS)


@given(st.data(), st.sampled_from([32, 64]), st.sampled_from([1, 4]))
def test_every_figure_is_that_of_the_reference(data: st.DataObject, counter_bits: int, unit_bytes: int) -> None:
    found = data.draw(readings(counter_bits=counter_bits))
    counter = ReferenceCounter(unit_bytes, counter_bits, found)
    series = {1: descriptor(unit_bytes=unit_bytes, counter_bits=counter_bits)}
    port = only(traffic_of(series, [found], evolve(REQUEST, max_point_count=10_000)))
    assert (port.start_ns, port.end_ns) == (counter.times_ns[0], counter.times_ns[-1])
    assert port.total_bytes == sum(interval.byte_count or 0 for interval in counter.intervals)
    assert port.sample_count == len(found)
    for name in ("wrap_count", "reset_count", "gap_count", "duplicate_count", "late_count", "interval_ns"):
        assert getattr(port, name) == getattr(counter, name), name
    covered_ns = sum(interval.covered_ns_within(0, 2**63) for interval in counter.intervals)
    for window in port.windows:
        expected = list(windows([counter], window.window_ns, port.start_ns, port.end_ns))
        rates = [float(count * BITS_PER_BYTE_AND_NS / window.window_ns) for _, count in expected]
        assert window.window_count == len(expected)
        assert [point.start_ns for point in window.points] == [start_ns for start_ns, _ in expected]
        assert [point.mean_bits_per_second for point in window.points] == close_to(rates)
        if rates:
            assert window.peak_bits_per_second == pytest.approx(max(rates), rel=1e-9)
            at_the_peak = dict(zip((start_ns for start_ns, _ in expected), rates, strict=True))[window.peak_start_ns]
            assert at_the_peak == pytest.approx(max(rates), rel=1e-9)
            rank = ceil(0.99 * len(rates))
            assert window.p99_bits_per_second == pytest.approx(
                sorted(rates)[rank - 1], rel=1e-9, abs=1e-12 * max(rates)
            )
            assert window.covered_fraction == pytest.approx(covered_ns / (port.end_ns - port.start_ns))
        if covered_ns:
            assert window.mean_bits_per_second == pytest.approx(port.total_bytes * BITS_PER_BYTE_AND_NS / covered_ns)


@given(st.data(), st.integers(0, 120 * MS), st.integers(1, 120 * MS))
def test_a_part_of_the_time_counts_what_is_in_it(data: st.DataObject, start_ns: int, length_ns: int) -> None:
    found = data.draw(readings())
    counter = ReferenceCounter(1, 64, found)
    end_ns = start_ns + length_ns
    request = evolve(REQUEST, start_ns=start_ns, end_ns=end_ns, max_point_count=10_000)
    answer = traffic_of({1: descriptor()}, [found], request)
    low, high = max(start_ns, counter.times_ns[0]), min(end_ns, counter.times_ns[-1])
    if low > high:
        assert answer == ()
        return
    port = only(answer)
    assert (port.start_ns, port.end_ns) == (low, high)
    counted = sum((interval.bytes_within(low, high) for interval in counter.intervals), start=0)
    assert port.total_bytes == pytest.approx(float(counted), abs=0.501)
    for window in port.windows:
        rates = [
            float(count * BITS_PER_BYTE_AND_NS / window.window_ns)
            for _, count in windows([counter], window.window_ns, low, high)
        ]
        assert [point.mean_bits_per_second for point in window.points] == close_to(rates)


@given(readings(1), readings(2))
def test_devices_of_a_port_are_summed_in_any_order(first: list[Reading], second: list[Reading]) -> None:
    request = evolve(REQUEST, max_point_count=10_000)
    port = ask(first, second, request=request)
    assert ask(second, first, request=request) == port
    counters = [ReferenceCounter(1, 64, found) for found in (first, second)]
    assert port.start_ns == min(counter.times_ns[0] for counter in counters)
    assert port.end_ns == max(counter.times_ns[-1] for counter in counters)
    assert port.total_bytes == sum(i.byte_count or 0 for counter in counters for i in counter.intervals)
    for window in port.windows:
        rates = [
            float(count * BITS_PER_BYTE_AND_NS / window.window_ns)
            for _, count in windows(counters, window.window_ns, port.start_ns, port.end_ns)
        ]
        assert [point.mean_bits_per_second for point in window.points] == close_to(rates)


@given(st.data(), readings(1), readings(2))
def test_portions_of_any_size_come_to_the_same(
    data: st.DataObject, first: list[Reading], second: list[Reading]
) -> None:
    whole = ask(first, second, request=REQUEST)
    portions = []
    rest = [first, second]
    while any(rest):
        index = data.draw(st.sampled_from([index for index, left in enumerate(rest) if left]))
        size = data.draw(st.integers(1, len(rest[index])))
        portions.append(rest[index][:size])
        rest[index] = rest[index][size:]
    series = {1: descriptor("mlx5_1"), 2: descriptor("mlx5_2")}
    parts = only(traffic_of(series, portions, REQUEST))
    assert evolve(parts, windows=()) == evolve(whole, windows=())
    for one, other in zip(parts.windows, whole.windows, strict=True):
        assert one.window_count == other.window_count
        assert one.peak_bits_per_second == pytest.approx(other.peak_bits_per_second, rel=1e-9, abs=1e-3)
        assert one.p99_bits_per_second == pytest.approx(other.p99_bits_per_second, rel=1e-9, abs=1e-3)
        assert one.mean_bits_per_second == pytest.approx(other.mean_bits_per_second, rel=1e-12)


@given(readings(1), readings(2))
def test_the_peak_never_rises_with_a_multiple_of_the_window(first: list[Reading], second: list[Reading]) -> None:
    one, three, six, sixty = ask(first, second, request=REQUEST).windows
    for narrow, wide in ((one, three), (one, six), (three, six), (six, sixty)):
        assert wide.peak_bits_per_second <= narrow.peak_bits_per_second * (1 + 1e-9) + 1e-3


@given(readings(tidy=True), st.integers(2, 1000))
def test_rates_scale_with_the_unit(found: list[Reading], factor: int) -> None:
    times = [evolve(reading, value=reading.value * factor) for reading in found]
    port, scaled = (only(traffic_of({1: descriptor()}, [each], REQUEST)) for each in (found, times))
    in_units = only(traffic_of({1: descriptor(unit_bytes=factor)}, [found], REQUEST))
    assert in_units == scaled
    assert scaled.total_bytes == factor * port.total_bytes
    for one, other in zip(port.windows, scaled.windows, strict=True):
        assert other.peak_bits_per_second == pytest.approx(factor * one.peak_bits_per_second, rel=1e-9)


@given(readings(tidy=True), st.integers(1, 30))
def test_bytes_are_those_of_the_points_however_few(found: list[Reading], count: int) -> None:
    port = only(traffic_of({1: descriptor()}, [found], evolve(REQUEST, max_point_count=count)))
    every = only(traffic_of({1: descriptor()}, [found], evolve(REQUEST, max_point_count=10_000)))
    for window, fine in zip(port.windows, every.windows, strict=True):
        assert len(window.points) <= count
        starts_ns = [point.start_ns for point in window.points]
        # How many windows a point stands for follows from when the last reading counts at the latest.
        group = (starts_ns[1] - starts_ns[0]) // window.window_ns if len(starts_ns) > 1 else window.window_count
        assert group * len(starts_ns) >= window.window_count
        for index, point in enumerate(window.points):
            inside = [one.mean_bits_per_second for one in fine.points[index * group : (index + 1) * group]]
            assert point.start_ns == fine.points[index * group].start_ns
            assert point.mean_bits_per_second == pytest.approx(sum(inside) / len(inside), rel=1e-9, abs=1e-3)
            assert point.least_bits_per_second == min(inside)
            assert point.peak_bits_per_second == max(inside)


@pytest.fixture
def narrow_bounds(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def narrow() -> None:
        monkeypatch.setattr(lockstep, "BLOCK_WINDOW_COUNT", 5)
        monkeypatch.setattr("ingest_service.core.traffic.windows.BLOCK_WINDOW_COUNT", 5)
        monkeypatch.setattr(largest, "SPARE_COUNT", 3)

    return narrow


@pytest.mark.parametrize("seed", range(30))
def test_bounds_of_memory_change_nothing(seed: int, narrow_bounds: Callable[[], None]) -> None:
    import random

    chance = random.Random(seed)
    found: list[list[Reading]] = []
    for series_id in (1, 2):
        time_ns, value = chance.randrange(10 * MS), 0
        own = []
        for _ in range(60):
            own.append(Reading(series_id=series_id, time_ns=time_ns, value=value))
            time_ns += chance.choice([MS, MS, MS, 900_001, 17 * MS, 450 * MS])
            value += chance.choice([0, chance.randrange(10**7)])
        found.append(own)
    portions = [own[start : start + 7] for start in range(0, 60, 7) for own in found]
    series = {1: descriptor("mlx5_1"), 2: descriptor("mlx5_2")}
    request = evolve(REQUEST, max_point_count=50)
    wide = only(traffic_of(series, portions, request))
    narrow_bounds()
    narrow = only(traffic_of(series, portions, request))
    assert evolve(narrow, windows=()) == evolve(wide, windows=())
    for one, other in zip(narrow.windows, wide.windows, strict=True):
        for name in ("window_count", "peak_start_ns", "covered_fraction"):
            assert getattr(one, name) == getattr(other, name), name
        for name in ("peak_bits_per_second", "p99_bits_per_second", "mean_bits_per_second"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9, abs=1e-3), name
        for point, same in zip(one.points, other.points, strict=True):
            assert point.start_ns == same.start_ns
            assert point.mean_bits_per_second == pytest.approx(same.mean_bits_per_second, rel=1e-9, abs=1e-3)
            assert point.least_bits_per_second == pytest.approx(same.least_bits_per_second, rel=1e-9, abs=1e-3)
            assert point.peak_bits_per_second == pytest.approx(same.peak_bits_per_second, rel=1e-9, abs=1e-3)
