"""`v_requests` and `v_phase_traffic` tell what the service answers for the phases of requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest_service.core.measured import decode_tokens_per_second
from ingest_service.store.traffic_answers import phase_traffic
from linkbound.domain.records import RequestRecord
from linkbound.domain.run import CreateRunRequest, Run, RunState
from linkbound.domain.traffic import ListPhaseTrafficRequest, PhaseTraffic
from tests.integration.view_store import ViewStore, view_store
from tests.property.traffic_answers import descriptor
from tests.property.traffic_reference import Reading

RUN = "r"
MS = 10**6
NODE, BOOT = "spark-1", "boot"
OPEN_RUN = Run(run_id=RUN, display_name="", state=RunState.OPEN, create_time=datetime(2026, 1, 1, tzinfo=UTC))
ON_ONE_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
COLUMNS = [attribute.name for attribute in attrs.fields(PhaseTraffic)]


@pytest.fixture(scope="module")
def shared() -> Iterator[ViewStore]:
    with view_store() as store:
        yield store


@pytest.fixture
def store(shared: ViewStore) -> ViewStore:
    emptied(shared)
    return shared


def emptied(store: ViewStore) -> None:
    store.clear()
    store.create_run(CreateRunRequest(run_id=RUN))


def request(
    send_ms: float | None, ttft_ms: float | None = None, last_ms: float | None = None, **fields: Any
) -> RequestRecord:
    def ns(milliseconds: float | None) -> int | None:
        return None if milliseconds is None else round(milliseconds * MS)

    given: dict[str, Any] = {
        "subject": "P1",
        "round_index": 0,
        "request_index": 0,
        "prompt_tokens": 1000,
        "output_tokens": 64,
        "node": NODE,
        "boot_id": BOOT,
    }
    times = {"send_ns": ns(send_ms), "ttft_ns": ns(ttft_ms), "last_token_ns": ns(last_ms)}
    return RequestRecord(**{**given, **times, **fields})


@st.composite
def requests(draw: st.DrawFn) -> RequestRecord:
    ttft_ms = draw(st.none() | st.integers(1, 40))
    last_ms = None if ttft_ms is None else draw(st.none() | st.integers(ttft_ms, 80))
    return request(
        draw(st.none() | st.integers(0, 120)),
        ttft_ms,
        last_ms,
        subject=draw(st.sampled_from(["P1", "P4"])),
        round_index=draw(st.integers(-1, 1)),
        request_index=draw(st.integers(0, 2)),
        prompt_tokens=draw(st.integers(1, 5000)),
        node=draw(st.sampled_from([NODE, NODE, NODE, NODE, "spark-2", ""])),
        boot_id=draw(st.sampled_from([BOOT, BOOT, BOOT, BOOT, ""])),
    )


@st.composite
def uneven_readings(draw: st.DrawFn, series_id: int) -> list[Reading]:
    """Readings every few milliseconds up to some time, now and then of a counter that began again."""
    time_ns, value = draw(st.integers(0, 30 * MS)), draw(st.integers(0, 2**40))
    found = []
    for _ in range(draw(st.integers(0, 30))):
        found.append(
            Reading(series_id=series_id, time_ns=time_ns, value=value, read_duration_ns=draw(st.integers(0, 9000)))
        )
        time_ns += draw(st.integers(100_000, 9 * MS))
        value = draw(st.integers(0, 10)) if draw(st.integers(0, 14)) == 0 else value + draw(st.integers(0, 10**9))
    return found


def told(store: ViewStore) -> list[PhaseTraffic]:
    order = "subject, round_index, request_index, stored_index, node, physical_port, metric"
    rows = store.rows(f"SELECT {', '.join(COLUMNS)} FROM v_phase_traffic WHERE run_id = ? ORDER BY {order}", RUN)
    return [PhaseTraffic(**dict(zip(COLUMNS, row, strict=True))) for row in rows]


def answered(store: ViewStore) -> Sequence[PhaseTraffic]:
    asked = ListPhaseTrafficRequest(run=RUN, page_size=1000)
    return phase_traffic(store.connection, OPEN_RUN, asked, lambda: None).entries


def close(row: PhaseTraffic) -> dict[str, Any]:
    """A row whose figures may differ by their rounding: that of all bytes of the counters."""
    exact = attrs.asdict(row)
    return {
        name: pytest.approx(value, rel=1e-9, abs=1e-3) if isinstance(value, float) else value
        for name, value in exact.items()
    }


@ON_ONE_STORE
@given(records=st.lists(requests(), min_size=1, max_size=8), data=st.data())
def test_phases_are_those_of_the_service(shared: ViewStore, records: list[RequestRecord], data: st.DataObject) -> None:
    emptied(shared)
    series = {1: descriptor("mlx5_0"), 2: descriptor("mlx5_1"), 3: descriptor("mlx5_0", metric="port_rcv_data")}
    for series_id, described in series.items():
        shared.add_series(RUN, series_id, described)
        shared.add_readings(data.draw(uneven_readings(series_id)))
    shared.append(RUN, *records)
    assert [attrs.asdict(row) for row in told(shared)] == [close(row) for row in answered(shared)]


@ON_ONE_STORE
@given(records=st.lists(requests(), min_size=1, max_size=8))
def test_requests_have_the_speeds_that_comparisons_use(shared: ViewStore, records: list[RequestRecord]) -> None:
    emptied(shared)
    shared.append(RUN, *records)
    rows = shared.rows("SELECT ttft_seconds, decode_tokens_per_second FROM v_requests ORDER BY record_index")
    assert rows == [
        (
            None if record.ttft_ns is None else pytest.approx(record.ttft_ns / 1e9),
            None if (speed := decode_tokens_per_second(record)) is None else pytest.approx(speed),
        )
        for record in records
    ]


def test_a_first_chunk_of_several_tokens_is_no_decode(store: ViewStore) -> None:
    store.append(
        RUN,
        request(0, 1000, 3000, output_tokens=5, first_chunk_tokens=3),
        request(0, 1000, 3000, output_tokens=5),
        request(0, 1000, 3000, output_tokens=3, first_chunk_tokens=3),
        request(0, 1000, output_tokens=3),
    )
    assert store.rows(
        "SELECT ttft_seconds, end_to_end_seconds, decode_seconds, decode_tokens_per_second"
        " FROM v_requests ORDER BY record_index"
    ) == [(1.0, 3.0, 2.0, 1.0), (1.0, 3.0, 2.0, 2.0), (1.0, 3.0, 2.0, None), (1.0, None, None, None)]


def steady(store: ViewStore) -> None:
    """A counter that counts 1 MB a millisecond for 100 ms, and 10 kB behind them."""
    store.add_series(RUN, 1, descriptor())
    counted, found = 0, []
    for millisecond in range(201):
        found.append(Reading(series_id=1, time_ns=millisecond * MS, value=counted))
        counted += 1_000_000 if millisecond < 100 else 10_000
    store.add_readings(found)


def test_bytes_are_told_between_readings_and_per_prompt_token(store: ViewStore) -> None:
    steady(store)
    store.append(RUN, request(10.5, 40.25, 150.5))
    [row] = told(store)
    assert row.prefill_bytes == pytest.approx(40_250_000)
    assert row.prefill_bits_per_second == pytest.approx(8e9)
    assert row.prefill_bytes_per_prompt_token == pytest.approx(40_250)
    assert row.decode_bytes == pytest.approx(49_250_000 + 610_000)
    assert row.round_prefill_bytes_per_prompt_token == pytest.approx(40_250)


def test_bytes_of_requests_that_overlap_are_told_of_the_round_alone(store: ViewStore) -> None:
    steady(store)
    together = [request(10, 20, 60), request(12, 30, 50, request_index=1), request(60, 5, 10, request_index=2)]
    store.append(RUN, *together, request(70, 10, 20, round_index=1))
    rows = told(store)
    assert [row.overlapping_request_count for row in rows] == [2, 2, 2, 0]
    assert [row.prefill_bytes_per_prompt_token for row in rows] == [None, None, None, pytest.approx(10_000)]
    round_bytes = pytest.approx(55_000_000 / 3000)
    assert [row.round_prefill_bytes_per_prompt_token for row in rows[:3]] == [round_bytes] * 3


def test_what_readings_do_not_cover_is_not_told(store: ViewStore) -> None:
    store.add_series(RUN, 1, descriptor())
    # It begins again between 20 and 21 ms.
    values = [index * 1000 if index <= 20 else index for index in range(41)]
    store.add_readings([Reading(series_id=1, time_ns=(10 + i) * MS, value=value) for i, value in enumerate(values)])
    store.append(
        RUN,
        request(5, 10, 11),
        request(12, 10, 12),
        request(25, 10, 15),
        request(45, 4, 20),
        request(32, 1, 2, node="spark-2"),
    )
    rows = told(store)
    assert [row.prefill_bytes is None for row in rows] == [True, False, True, False, True]
    assert [row.decode_bytes is None for row in rows] == [False, False, False, True, True]
    assert [row.node for row in rows] == [NODE] * 4 + [""]


def test_times_that_64_bits_cannot_say_are_not_known(store: ViewStore) -> None:
    steady(store)
    store.append(
        RUN, attrs.evolve(request(1, 2, 3), send_ns=2**63 - 1), attrs.evolve(request(1, 2, 3), send_ns=2**63 - 2 * MS)
    )
    assert [row.prefill_bytes for row in told(store)] == [None, None]
    assert [attrs.asdict(row) for row in told(store)] == [attrs.asdict(row) for row in answered(store)]
