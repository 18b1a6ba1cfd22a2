"""Traffic read from the store: the same as from readings in memory, whatever happened to the rows on the way."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest
from attrs import evolve

from ingest_service.service import Ingest
from ingest_service.store import traffic_reads
from linkbound.domain.errors import DeadlineExceededError, InvalidArgumentError, NotFoundError
from linkbound.domain.records import AppendRequest, RequestRecord
from linkbound.domain.run import SealRunRequest
from linkbound.domain.samples import SampleBatch, SampleColumns, SeriesDescriptor
from linkbound.domain.traffic import ListPhaseTrafficRequest, PhaseTraffic, PortTraffic, TrafficRequest
from tests.integration.store_content import RUN, opened, stream, with_run
from tests.property.traffic_answers import descriptor, traffic_of
from tests.property.traffic_reference import Reading

pytestmark = pytest.mark.storage

MS = 10**6
SECOND = 1000 * MS
XMIT = descriptor("mlx5_0")
TWIN = descriptor("mlx5_1")
GAUGE = evolve(XMIT, metric="temperature", counter_bits=0, unit_bytes=0)
OTHER_HOST = evolve(XMIT, node="spark-2")
REQUEST = TrafficRequest(run=RUN, windows_ns=(MS, 7 * MS, 100 * MS), max_point_count=20)


def readings_of(series_id: int, count: int, seed: int) -> list[Reading]:
    """Readings about a millisecond apart, with a reset, a gap and a reading that comes twice."""
    chance = random.Random(seed)
    time_ns, value, found = 5 * SECOND + seed, 10**9, []
    for index in range(count):
        found.append(
            Reading(series_id=series_id, time_ns=time_ns, value=value, read_duration_ns=chance.randrange(9000))
        )
        value = 0 if index == count // 3 else value + chance.randrange(25_000_000)
        if index == count // 2:
            time_ns += 40 * MS
        elif index != count // 5:
            time_ns += MS + chance.randrange(-100_000, 100_000)
    return found


def store(
    ingest: Ingest, series: Sequence[SeriesDescriptor], readings: Sequence[Sequence[Reading]], writer: str
) -> None:
    """Appends the readings of all series side by side, in batches of some hundred."""
    session = ingest.open_stream(stream(*series, writer=writer))
    futures = []
    length = max(map(len, readings))
    for number, start in enumerate(range(0, length, 300), 1):
        parts = [own[start : start + 300] for own in readings]
        columns = tuple(
            SampleColumns(
                series_index=index,
                time_ns=tuple(reading.time_ns for reading in part),
                value=tuple(reading.value for reading in part),
                read_duration_ns=tuple(reading.read_duration_ns for reading in part),
            )
            for index, part in enumerate(parts)
            if part
        )
        futures.append(session.submit(SampleBatch(sequence_number=number, columns=columns)))
    assert sum(future.result().rejected_sample_count for future in futures) == 0
    session.close()


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[Ingest]:
    with opened(tmp_path) as store:
        yield with_run(store)


@pytest.fixture(params=[traffic_reads.PORTION_ROW_COUNT, 1])
def portions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are sorted by series all at once, or as they come from the database."""
    monkeypatch.setattr(traffic_reads, "PORTION_ROW_COUNT", request.param)
    if request.param == 1:
        monkeypatch.setattr(traffic_reads, "PORTION_ROWS_PER_SERIES", 1)
        monkeypatch.setattr(traffic_reads, "BATCH_ROW_COUNT", 2048)
        monkeypatch.setattr(traffic_reads, "SHORT_RUN_ROW_COUNT", 10**9)


def close_to(one: PortTraffic, other: PortTraffic) -> None:
    assert evolve(one, windows=()) == evolve(other, windows=())
    for window, same in zip(one.windows, other.windows, strict=True):
        for name in ("window_ns", "window_count", "peak_start_ns", "covered_fraction"):
            assert getattr(window, name) == getattr(same, name)
        for name in ("mean_bits_per_second", "peak_bits_per_second", "p99_bits_per_second"):
            assert getattr(window, name) == pytest.approx(getattr(same, name), rel=1e-9)
        assert len(window.points) == len(same.points)


@pytest.mark.usefixtures("portions")
def test_it_is_that_of_the_readings_before_and_after_the_run_is_sealed(ingest: Ingest) -> None:
    own = [readings_of(1, 6000, 1), readings_of(2, 5000, 2)]
    store(ingest, [XMIT, TWIN], own, "sampler")
    [expected] = traffic_of({1: XMIT, 2: TWIN}, own, REQUEST)
    [port] = ingest.query_traffic(REQUEST)
    close_to(port, expected)
    assert (port.reset_count, port.gap_count, port.duplicate_count) == (2, 2, 2)
    ingest.seal_run(SealRunRequest(run=RUN))
    [sealed] = ingest.query_traffic(REQUEST)
    close_to(sealed, expected)


@pytest.mark.parametrize(("start_ns", "end_ns"), [(None, 6 * SECOND), (6 * SECOND, None), (6 * SECOND + 7, 8 * SECOND)])
def test_a_part_of_the_time_is_told_as_if_everything_was_read(
    ingest: Ingest, start_ns: int | None, end_ns: int | None
) -> None:
    own = [readings_of(1, 6000, 1), readings_of(2, 5000, 2)]
    store(ingest, [XMIT, TWIN], own, "sampler")
    asked = evolve(REQUEST, start_ns=start_ns, end_ns=end_ns)
    [expected] = traffic_of({1: XMIT, 2: TWIN}, own, asked)
    [port] = ingest.query_traffic(asked)
    # Only the readings that it takes are counted.
    assert port.sample_count < expected.sample_count
    assert (port.start_ns, port.end_ns, port.total_bytes) == (
        expected.start_ns,
        expected.end_ns,
        expected.total_bytes,
    )
    for window, same in zip(port.windows, expected.windows, strict=True):
        assert window.peak_bits_per_second == pytest.approx(same.peak_bits_per_second, rel=1e-9)
        assert window.mean_bits_per_second == pytest.approx(same.mean_bits_per_second, rel=1e-9)


def test_time_without_readings_has_no_traffic(ingest: Ingest) -> None:
    store(ingest, [XMIT], [readings_of(1, 100, 1)], "sampler")
    assert ingest.query_traffic(evolve(REQUEST, start_ns=0, end_ns=SECOND)) == ()
    assert ingest.query_traffic(evolve(REQUEST, start_ns=90 * SECOND)) == ()


def test_hosts_and_counters_can_be_chosen(ingest: Ingest) -> None:
    received = evolve(XMIT, metric="port_rcv_data")
    store(ingest, [XMIT, received, OTHER_HOST, GAUGE], [readings_of(index, 50, index) for index in range(1, 5)], "all")
    found = [(port.node, port.metric) for port in ingest.query_traffic(REQUEST)]
    assert found == [("spark-1", "port_rcv_data"), ("spark-1", "port_xmit_data"), ("spark-2", "port_xmit_data")]
    one_host = ingest.query_traffic(evolve(REQUEST, node="spark-1"))
    assert [port.metric for port in one_host] == ["port_rcv_data", "port_xmit_data"]
    one_counter = ingest.query_traffic(evolve(REQUEST, metric="port_xmit_data"))
    assert [port.node for port in one_counter] == ["spark-1", "spark-2"]
    assert ingest.query_traffic(evolve(REQUEST, metric="port_xmit_wait")) == ()


def test_a_metric_that_counts_no_bytes_is_refused(ingest: Ingest) -> None:
    store(ingest, [GAUGE], [readings_of(1, 5, 1)], "sampler")
    with pytest.raises(InvalidArgumentError) as caught:
        ingest.query_traffic(evolve(REQUEST, metric="temperature"))
    assert [violation.field for violation in caught.value.field_violations] == ["metric"]
    assert ingest.query_traffic(REQUEST) == ()


def test_a_second_writer_of_a_counter_adds_no_bytes(ingest: Ingest) -> None:
    own = readings_of(1, 2000, 1)
    store(ingest, [XMIT], [own], "sampler")
    [port] = ingest.query_traffic(REQUEST)
    store(ingest, [XMIT], [own[500:1500]], "sampler-again")
    [again] = ingest.query_traffic(REQUEST)
    assert (again.total_bytes, again.reset_count) == (port.total_bytes, port.reset_count)
    assert (again.sample_count, again.late_count) == (3000, 1000)


def test_what_is_not_there_is_told(ingest: Ingest) -> None:
    with pytest.raises(NotFoundError):
        ingest.query_traffic(evolve(REQUEST, run="missing"))
    with pytest.raises(NotFoundError):
        ingest.list_phase_traffic(ListPhaseTrafficRequest(run="missing"))
    assert ingest.query_traffic(REQUEST) == ()
    assert ingest.list_phase_traffic(ListPhaseTrafficRequest(run=RUN)).entries == ()


def test_reads_end_at_their_deadline(ingest: Ingest) -> None:
    store(ingest, [XMIT], [readings_of(1, 3000, 1)], "sampler")
    ingest.append(
        AppendRequest(run=RUN, writer_id="driver", sequence_number=1, records=(request(0, 0, 5 * SECOND),))
    ).result()
    with pytest.raises(DeadlineExceededError):
        ingest.query_traffic(REQUEST, 1e-9)
    with pytest.raises(DeadlineExceededError):
        ingest.list_phase_traffic(ListPhaseTrafficRequest(run=RUN), 1e-9)
    assert len(ingest.query_traffic(REQUEST, 60.0)) == 1


def request(round_index: int, request_index: int, send_ns: int, node: str = "spark-1") -> RequestRecord:
    return RequestRecord(
        subject="P1",
        round_index=round_index,
        request_index=request_index,
        prompt_tokens=1024,
        output_tokens=64,
        send_ns=send_ns,
        ttft_ns=100 * MS + 3,
        last_token_ns=500 * MS,
        node=node,
        boot_id="boot",
    )


def phases(ingest: Ingest, page_size: int, subject: str = "") -> list[PhaseTraffic]:
    rows: list[PhaseTraffic] = []
    token = ""
    while True:
        asked = ListPhaseTrafficRequest(run=RUN, subject=subject, page_size=page_size, page_token=token)
        page = ingest.list_phase_traffic(asked)
        rows += page.entries
        token = page.next_page_token
        if not token:
            return rows
        assert len(page.entries) == page_size


@pytest.mark.parametrize("page_size", [1, 2, 1000])
def test_phases_of_requests_page_by_page(ingest: Ingest, page_size: int) -> None:
    received = evolve(XMIT, metric="port_rcv_data")
    steady = [
        Reading(series_id=1, time_ns=5 * SECOND + index * MS, value=index * 10**6, read_duration_ns=0)
        for index in range(4000)
    ]
    store(ingest, [XMIT, received], [steady, steady], "sampler")
    records = (
        request(0, 0, 5 * SECOND + 7),
        request(1, 0, 6 * SECOND + 7),
        request(1, 1, 6 * SECOND + 100 * MS),
        request(2, 0, 7 * SECOND, node="elsewhere"),
        request(-1, 0, 3 * SECOND),
    )
    ingest.append(AppendRequest(run=RUN, writer_id="driver", sequence_number=1, records=records)).result()
    rows = phases(ingest, page_size)
    places = [(row.round_index, row.request_index, row.metric) for row in rows]
    both = ("port_rcv_data", "port_xmit_data")
    assert places == [
        *((round_index, index, metric) for round_index, index in ((-1, 0), (0, 0), (1, 0), (1, 1)) for metric in both),
        (2, 0, ""),
    ]
    by_request = [list(group) for _, group in groupby(rows, key=lambda row: (row.round_index, row.request_index))]
    warm_up, alone, first, second, elsewhere = by_request
    # A byte a nanosecond.
    for row in alone:
        assert row.prefill_bytes == pytest.approx(100 * MS + 3, abs=1e-3)
        assert row.decode_bytes == pytest.approx(400 * MS - 3, abs=1e-3)
        assert row.prefill_bytes_per_prompt_token == pytest.approx((100 * MS + 3) / 1024)
    for row in (*first, *second):
        assert (row.overlapping_request_count, row.prefill_bytes_per_prompt_token) == (1, None)
        assert row.round_prefill_bytes_per_prompt_token == pytest.approx((200 * MS - 4) / 2048)
    for row in (*warm_up, *elsewhere):
        assert (row.prefill_bytes, row.decode_bytes) == (None, None)
    assert phases(ingest, page_size, subject="P2") == []


def test_the_token_of_another_list_is_refused(ingest: Ingest) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ingest.list_phase_traffic(ListPhaseTrafficRequest(run=RUN, page_token="WyJQNCIsIDAsIDAsIDFd"))
    assert [violation.field for violation in caught.value.field_violations] == ["page_token"]
