"""`v_intervals`, `v_traffic` and `windows` tell what the rules of traffic say, and what the service answers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import SeriesDescriptor
from linkbound.domain.traffic import TrafficRequest
from tests.integration.view_store import ViewStore, view_store
from tests.property.test_traffic_windows import readings
from tests.property.traffic_answers import descriptor, traffic_of
from tests.property.traffic_reference import Reading, ReferenceCounter

RUN = "r"
MS = 10**6
WINDOWS_NS = (MS, 5 * MS, 100 * MS)
ON_ONE_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


@pytest.fixture(scope="module")
def shared() -> Iterator[ViewStore]:
    with view_store() as store:
        yield store


@pytest.fixture
def store(shared: ViewStore) -> ViewStore:
    shared.clear()
    shared.create_run(CreateRunRequest(run_id=RUN))
    return shared


def filled(store: ViewStore, series: dict[int, SeriesDescriptor], found: list[Reading]) -> None:
    store.clear()
    store.create_run(CreateRunRequest(run_id=RUN))
    for series_id, described in series.items():
        store.add_series(RUN, series_id, described)
    store.add_readings(found)


def is_told_apart(found: list[Reading]) -> bool:
    """Whether the first reading behind those of a clock that went back has a time of its own."""
    latest_ns, follows_late = -1, False
    for before, reading in pairwise([found[0], *found]):
        if follows_late and reading.time_ns in (latest_ns, before.time_ns):
            return False
        follows_late = reading.time_ns < latest_ns or (follows_late and before.time_ns < latest_ns)
        latest_ns = max(latest_ns, reading.time_ns)
    return True


@ON_ONE_STORE
@given(st.data(), st.sampled_from([32, 64]), st.sampled_from([1, 4]))
def test_intervals_are_those_of_the_reference(
    shared: ViewStore, data: st.DataObject, counter_bits: int, unit_bytes: int
) -> None:
    found = data.draw(readings(counter_bits=counter_bits).filter(is_told_apart))
    reference = ReferenceCounter(unit_bytes, counter_bits, found)
    filled(shared, {1: descriptor(unit_bytes=unit_bytes, counter_bits=counter_bits)}, found)
    told = shared.dicts("SELECT * FROM v_intervals ORDER BY start_ns")
    assert [(row["start_ns"], row["end_ns"], row["interval_bytes"]) for row in told] == [
        (interval.start_ns, interval.end_ns, interval.byte_count) for interval in reference.intervals
    ]
    assert sum(row["is_wrap"] for row in told) == reference.wrap_count
    assert sum(row["is_reset"] for row in told) == reference.reset_count
    of_traffic = shared.dicts("SELECT * FROM v_traffic ORDER BY start_ns")
    assert sum(row["interval_ns"] > 2 * row["usual_interval_ns"] for row in of_traffic) == reference.gap_count
    for row in of_traffic:
        rate = None if row["interval_bytes"] is None else row["interval_bytes"] * 8e9 / row["interval_ns"]
        assert row["bits_per_second"] == (rate if rate is None else pytest.approx(rate))


@ON_ONE_STORE
@given(st.data())
def test_windows_are_those_of_the_service(shared: ViewStore, data: st.DataObject) -> None:
    # Two devices of one port, and a third that has the other direction alone.
    series = {1: descriptor("mlx5_0"), 2: descriptor("mlx5_1"), 3: descriptor("mlx5_0", metric="port_rcv_data")}
    portions = [data.draw(readings(series_id).filter(is_told_apart)) for series_id in series]
    filled(shared, series, [reading for portion in portions for reading in portion])
    request = TrafficRequest(run=RUN, windows_ns=WINDOWS_NS, max_point_count=10_000)
    rows = {
        window_ns: shared.dicts("SELECT * FROM windows(?, ?) ORDER BY start_ns", RUN, window_ns / 1e9)
        for window_ns in WINDOWS_NS
    }
    for port in traffic_of(series, portions, request):
        for window in port.windows:
            told = [row for row in rows[window.window_ns] if row["metric"] == port.metric]
            expected = {point.start_ns: point.mean_bits_per_second for point in window.points}
            # A window that no reading touches has no row; the service tells of it as a silent one.
            assert {start_ns for start_ns, rate in expected.items() if rate > 0} <= {row["start_ns"] for row in told}
            largest = max(expected.values(), default=0.0)
            for row in told:
                rate = expected[row["start_ns"]]
                assert row["bits_per_second"] == pytest.approx(rate, rel=1e-9, abs=1e-9 * largest)
            assert sum(row["window_bytes"] for row in told) == pytest.approx(port.total_bytes, abs=0.5 + 1e-9 * largest)
            covered = sum(row["covered_fraction"] for row in told) * window.window_ns
            assert covered == pytest.approx(window.covered_fraction * (port.end_ns - port.start_ns))


def test_a_wrap_is_undone_and_a_reset_tells_nothing(store: ViewStore) -> None:
    store.add_series(RUN, 1, descriptor(counter_bits=32, unit_bytes=4))
    values = (2**32 - 100, 2**32 - 50, 150, 250, 10, 20)
    store.add_readings(
        [Reading(series_id=1, time_ns=index * MS, value=value) for index, value in enumerate(values)]
        # A clock that goes back is that of another time.
        + [Reading(series_id=1, time_ns=2 * MS, value=30), Reading(series_id=1, time_ns=6 * MS, value=40)]
    )
    told = store.rows(
        "SELECT step_count, interval_bytes, is_wrap, is_reset, left_out_count, bytes_per_second"
        " FROM v_traffic ORDER BY start_ns"
    )
    assert told == [
        (50, 200, False, False, 0, 200_000.0),
        (200, 800, True, False, 0, 800_000.0),
        (100, 400, False, False, 0, 400_000.0),
        # It fell by 240: as a wrap it would have counted nearly all of its width.
        (None, None, False, True, 0, None),
        (10, 40, False, False, 0, 40_000.0),
        (None, None, False, True, 1, None),
    ]
    assert store.rows("SELECT sum(window_bytes), sum(covered_fraction) FROM windows(?, '1 ms')", RUN) == [(1440.0, 4.0)]


def test_values_beyond_63_bits_are_unsigned(store: ViewStore) -> None:
    store.add_series(RUN, 1, descriptor())
    values = (2**63 - 5, -(2**63) + 5, -10, 20)
    store.add_readings([Reading(series_id=1, time_ns=i * 1000 * MS, value=value) for i, value in enumerate(values)])
    told = store.rows("SELECT interval_bytes, is_wrap, is_reset FROM v_traffic ORDER BY start_ns")
    assert told == [(10, False, False), (None, False, True), (30, True, False)]


def test_missed_ticks_and_repeated_times_are_told(store: ViewStore) -> None:
    store.add_series(RUN, 1, descriptor())
    times_ms = (0, 1, 2, 3, 3, 4, 8, 9, 10)
    store.add_readings([Reading(series_id=1, time_ns=t * MS, value=i * 100) for i, t in enumerate(times_ms)])
    told = store.rows(
        "SELECT start_ns // 1000000, usual_interval_ns, missed_tick_count, left_out_count, interval_bytes"
        " FROM v_traffic ORDER BY start_ns"
    )
    assert told == [
        (0, MS, 0, 0, 100),
        (1, MS, 0, 0, 100),
        (2, MS, 0, 1, 200),
        (3, MS, 0, 0, 100),
        (4, MS, 3, 0, 100),
        (8, MS, 0, 0, 100),
        (9, MS, 0, 0, 100),
    ]


def test_functions_of_a_port_are_summed_and_a_counter_of_the_whole_port_counts_once(store: ViewStore) -> None:
    whole = descriptor("mlx5_0", metric="tx_bytes_phy")
    series = {
        1: descriptor("mlx5_0"),
        2: descriptor("mlx5_1"),
        3: whole,
        4: attrs.evolve(whole, device="mlx5_1"),
        5: attrs.evolve(whole, device="eth9", port=0, physical_port=""),
        6: descriptor(metric="temperature", unit_bytes=0, counter_bits=0),
        7: descriptor(metric="packets", unit_bytes=0),
    }
    for series_id, described in series.items():
        store.add_series(RUN, series_id, described)
        # Of the two that count the whole port, the second has more readings.
        count = 12 if series_id == 4 else 11
        store.add_readings([Reading(series_id=series_id, time_ns=i * MS, value=i * 1000) for i in range(count)])
    told = store.rows(
        "SELECT physical_port, metric, sum(window_bytes)::BIGINT FROM windows(?, INTERVAL '5 ms') GROUP BY ALL"
        " ORDER BY ALL",
        RUN,
    )
    assert told == [
        ("eth9", "tx_bytes_phy", 10_000),
        ("port0", "port_xmit_data", 20_000),
        ("port0", "tx_bytes_phy", 11_000),
    ]
    # Counters of no bytes have steps and no rates, gauges have neither.
    assert store.rows(
        "SELECT metric, sum(step_count)::BIGINT, sum(interval_bytes)::BIGINT FROM v_traffic"
        " WHERE series_id IN (6, 7) GROUP BY metric"
    ) == [("packets", 10_000, None)]


def test_a_counter_that_another_writer_goes_on_reading_is_one(store: ViewStore) -> None:
    store.add_series(RUN, 1, descriptor(), writer="first")
    store.add_series(RUN, 2, descriptor(), writer="second")
    store.add_readings([Reading(series_id=1, time_ns=i * MS, value=i * 10) for i in range(4)])
    # It began before the first ended: what both read counts once.
    store.add_readings([Reading(series_id=2, time_ns=i * MS, value=i * 10) for i in range(2, 7)])
    told = store.rows("SELECT writer_id, count(*), sum(interval_bytes)::BIGINT FROM v_traffic GROUP BY 1 ORDER BY 1")
    assert told == [("first", 3, 30), ("second", 3, 30)]
    assert store.rows("SELECT sum(window_bytes) FROM windows(?, 0.001)", RUN) == [(60.0,)]


def test_runs_do_not_mix(store: ViewStore) -> None:
    store.create_run(CreateRunRequest(run_id="other"))
    store.add_series(RUN, 1, descriptor())
    store.add_series("other", 2, descriptor())
    for series_id in (1, 2):
        store.add_readings([Reading(series_id=series_id, time_ns=i * MS, value=i * series_id) for i in range(3)])
    told = store.rows("SELECT run_id, sum(window_bytes) FROM v_windows_1ms GROUP BY 1 ORDER BY 1")
    assert told == [("other", 4.0), (RUN, 2.0)]
    assert store.rows("SELECT sum(window_bytes) FROM windows('other', '1 ms')") == [(4.0,)]
    assert store.rows("SELECT count(*) FROM windows('none', '1 ms')") == [(0,)]


@pytest.mark.parametrize("width", ["INTERVAL '20 ms'", "0.02", "'20 ms'", "to_milliseconds(20)", "20e-3::FLOAT"])
def test_a_width_is_an_interval_or_seconds(store: ViewStore, width: str) -> None:
    store.add_series(RUN, 1, descriptor())
    store.add_readings([Reading(series_id=1, time_ns=i * MS, value=i) for i in range(40)])
    assert store.rows(f"SELECT DISTINCT window_ns FROM windows('{RUN}', {width})") == [(20 * MS,)]


@pytest.mark.parametrize("width", ["0", "-1", "INTERVAL '-1 ms'", "'soon'", "NULL"])
def test_a_width_that_is_none_is_refused(store: ViewStore, width: str) -> None:
    with pytest.raises(Exception, match="the width of a window is"):
        store.rows(f"SELECT * FROM windows('{RUN}', {width})")


def burst_train(store: ViewStore) -> None:
    """One second on a 200 Gb/s port: every 100 ms a train of 22 ms, in it every 10 ms a burst of 2 ms at full rate."""
    store.add_series(RUN, 1, descriptor())
    sent, found = 0, []
    for millisecond in range(1001):
        found.append(Reading(series_id=1, time_ns=millisecond * MS, value=sent))
        in_train = millisecond % 100
        if in_train < 22 and in_train % 10 < 2:
            sent += 25_000_000
    store.add_readings(found)


def test_peaks_of_a_burst_train_fall_with_the_window_and_keep_the_mean(store: ViewStore) -> None:
    burst_train(store)
    peaks = {
        width: store.rows(
            f"SELECT max(bits_per_second) / 1e9, avg(bits_per_second) / 1e9 FROM windows(?, '{width}')", RUN
        )
        for width in ("1 ms", "2 ms", "5 ms", "10 ms", "100 ms", "1 s")
    }
    # The truth: 2 of 5 ms, 2 of 10 ms, 6 of 100 ms and so of the second are busy at 200 Gb/s.
    assert peaks == {
        "1 ms": [(pytest.approx(200.0), pytest.approx(12.0))],
        "2 ms": [(pytest.approx(200.0), pytest.approx(12.0))],
        "5 ms": [(pytest.approx(80.0), pytest.approx(12.0))],
        "10 ms": [(pytest.approx(40.0), pytest.approx(12.0))],
        "100 ms": [(pytest.approx(12.0), pytest.approx(12.0))],
        "1 s": [(pytest.approx(12.0), pytest.approx(12.0))],
    }
