"""Times and values at the limits of 64 bits: an answer in bounded time and memory, and never a false one."""

from __future__ import annotations

import pytest

from linkbound.domain.traffic import LARGEST_ANSWER_POINT_COUNT, PortTraffic, TrafficRequest
from tests.property.traffic_answers import descriptor, traffic_of
from tests.property.traffic_reference import Reading

MS = 10**6
DAY_NS = 86_400 * 10**9
LAST_NS = 2**63 - 1
REQUEST = TrafficRequest(run="r", windows_ns=(MS, 5 * MS, DAY_NS), max_point_count=100)


def port_of(*readings: Reading, request: TrafficRequest = REQUEST) -> PortTraffic:
    series = {reading.series_id: descriptor(f"mlx5_{reading.series_id}") for reading in readings}
    [port] = traffic_of(series, [[reading] for reading in readings], request)
    return port


def test_two_readings_292_years_apart() -> None:
    port = port_of(Reading(series_id=1, time_ns=0, value=0), Reading(series_id=1, time_ns=LAST_NS, value=2**53))
    assert (port.start_ns, port.end_ns, port.total_bytes) == (0, LAST_NS, 2**53)
    mean = 2**53 * 8e9 / LAST_NS
    for window in port.windows:
        assert window.window_count == (LAST_NS - 1) // window.window_ns + 1
        assert window.mean_bits_per_second == pytest.approx(mean)
        assert window.peak_bits_per_second == window.p99_bits_per_second == pytest.approx(mean)
        assert 50 < len(window.points) <= 100


def test_a_burst_between_long_silences_is_found() -> None:
    times = [0, 400 * DAY_NS, 400 * DAY_NS + MS, 400 * DAY_NS + 2 * MS, 800 * DAY_NS]
    values = [0, 0, 25_000_000, 25_000_000, 25_000_000]
    port = port_of(*(Reading(series_id=1, time_ns=at, value=value) for at, value in zip(times, values, strict=True)))
    finest, five, day = port.windows
    assert finest.peak_bits_per_second == pytest.approx(200e9)
    assert five.peak_bits_per_second == pytest.approx(40e9)
    assert day.peak_bits_per_second == pytest.approx(200e9 * MS / DAY_NS)
    assert {window.peak_start_ns for window in port.windows} == {400 * DAY_NS}
    assert {window.p99_bits_per_second for window in port.windows} == {0.0}
    for window in port.windows:
        assert max(point.peak_bits_per_second for point in window.points) == window.peak_bits_per_second
        sent = sum(point.mean_bits_per_second for point in window.points)
        assert sent > 0


def test_a_device_that_is_read_seldom_beside_one_that_is_read_often() -> None:
    often = [Reading(series_id=1, time_ns=index * MS, value=index * 1000) for index in range(3001)]
    seldom = [Reading(series_id=2, time_ns=at * DAY_NS, value=at * 10**15) for at in range(3)]
    port = port_of(*often, *seldom)
    assert port.total_bytes == 3_000_000 + 2 * 10**15
    assert port.windows[0].peak_bits_per_second == pytest.approx(1000 * 8000 + 1e15 * 8e9 / DAY_NS)


def test_an_unknown_read_duration_of_years_moves_no_other_reading() -> None:
    readings = [
        Reading(series_id=1, time_ns=0, value=0, read_duration_ns=LAST_NS),
        Reading(series_id=1, time_ns=MS, value=1000),
        Reading(series_id=1, time_ns=2 * MS, value=2000),
    ]
    port = port_of(*readings)
    assert (port.start_ns, port.end_ns) == (MS - 1, 2 * MS)


def test_the_work_asks_whether_it_is_to_end() -> None:
    readings = [Reading(series_id=1, time_ns=index * MS, value=index) for index in range(10)]
    asked: list[None] = []

    def check() -> None:
        asked.append(None)
        if len(asked) == 5:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        traffic_of({1: descriptor()}, [[reading] for reading in readings], REQUEST, check)


def test_all_windows_of_all_ports_share_the_points() -> None:
    request = TrafficRequest(run="r", windows_ns=tuple(MS * width for width in range(1, 9)), max_point_count=10_000)
    series = {index: descriptor("mlx5_0", metric=f"counter_{index}") for index in range(1, 8)}
    readings = [[Reading(series_id=index, time_ns=at, value=at) for at in (0, 60_000 * MS)] for index in series]
    ports = traffic_of(series, readings, request)
    counts = [len(window.points) for port in ports for window in port.windows]
    assert len(counts) == 7 * 8
    assert 0.5 * LARGEST_ANSWER_POINT_COUNT < sum(counts) <= LARGEST_ANSWER_POINT_COUNT
