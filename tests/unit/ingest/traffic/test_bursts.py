"""A train of bursts whose rates over windows are computed by hand, as a sampler of 1 kHz sees it.

All-reduces of 2.5 ms at 181 Gb/s, one every 10 ms, with the pauses of a prefill: in each 100 ms of the first second the
last burst is left out but for the very first 100 ms, in those of the second second the last two. So the busiest window
of 1 ms is full (181 Gb/s), of 5 ms holds one burst (181 * 2.5 / 5 = 90.5), of 100 ms ten (45.25), of 1 s ninety-one
(41.1775), and the two seconds hold 171 (38.68875).
"""

from __future__ import annotations

import random
from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest

from ingest_service.core.traffic.port_traffic import TrafficTally
from ingest_service.core.traffic.ports import StoredSeries, ports_of
from ingest_service.core.traffic.unwrap import Readings
from linkbound.domain.traffic import TrafficRequest, TrafficWindow
from tests.property.traffic_answers import descriptor

MS = 10**6
BURST_BYTES_PER_NS = Fraction(181, 8)
BURST_NS = 2_500_000
BURSTS_NS = [
    second * 1000 * MS + group * 100 * MS + place * 10 * MS
    for second in range(2)
    for group in range(10)
    for place in range(10 if second == group == 0 else 9 - second)
]
END_NS = 2000 * MS


def counted(time_ns: int) -> int:
    """Bytes that are out at a time, exactly, rounded down as a counter does."""
    begun = bisect_right(BURSTS_NS, time_ns)
    last_ns = min(time_ns - BURSTS_NS[begun - 1], BURST_NS) if begun else 0
    return int(BURST_BYTES_PER_NS * (max(begun - 1, 0) * BURST_NS + last_ns))


def windows_of(times_ns: list[int], read_duration_ns: int = 0) -> list[TrafficWindow]:
    """What the readings tell; each is taken in the middle of its read."""
    series = StoredSeries(
        series_id=1,
        descriptor=descriptor(),
        sample_count=len(times_ns),
        first_ns=times_ns[0],
        last_ns=times_ns[-1] + MS,
    )
    tally = TrafficTally(ports_of([series]), TrafficRequest(run="r"), lambda: None)
    tally.feed(
        Readings(
            series_id=1,
            time_ns=np.array(times_ns, np.int64),
            value=np.array([counted(time_ns + read_duration_ns // 2) for time_ns in times_ns], np.int64),
            read_duration_ns=np.full(len(times_ns), read_duration_ns, np.int64),
        )
    )
    [port] = tally.finish()
    return list(port.windows)


def gigabits(windows: list[TrafficWindow]) -> list[float]:
    return [window.peak_bits_per_second / 1e9 for window in windows]


def test_a_sampler_on_the_grid_sees_the_train_as_it_is() -> None:
    windows = windows_of([index * MS for index in range(2001)])
    assert gigabits(windows) == pytest.approx([181, 90.5, 45.25, 41.1775], rel=1e-6)
    assert [window.mean_bits_per_second / 1e9 for window in windows] == pytest.approx([38.68875] * 4, rel=1e-6)
    assert [window.peak_start_ns for window in windows] == [0, 0, 0, 0]
    # 171 bursts fill two windows of 1 ms and half of a third: more than 1 % of 2,000 are full.
    assert windows[0].p99_bits_per_second / 1e9 == pytest.approx(181, rel=1e-6)


def test_a_sampler_with_jitter_sees_the_same_from_5_ms_on() -> None:
    chance = random.Random(5)
    times_ns = [index * MS + chance.randrange(200_000) for index in range(2001)]
    one, five, hundred, second = gigabits(windows_of(times_ns, read_duration_ns=20_000))
    # A single millisecond is off by up to the quarter that the jitter of two readings is; longer windows hardly.
    assert 0.75 * 181 <= one <= 181 * (1 + 1e-6)
    assert five == pytest.approx(90.5, rel=0.05)
    assert hundred == pytest.approx(45.25, rel=0.005)
    assert second == pytest.approx(41.1775, rel=0.001)


def test_a_sampler_of_10_ms_does_not_see_the_bursts() -> None:
    peaks = gigabits(windows_of([index * 10 * MS for index in range(201)]))
    assert peaks == pytest.approx([45.25, 45.25, 45.25, 41.1775], rel=1e-6)
