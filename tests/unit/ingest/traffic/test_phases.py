"""Traffic in the phases of requests: a port that sends 1 byte a nanosecond, so that bytes are times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from ingest_service.core.page_token import decode_phase_token
from ingest_service.core.phase_page import PhaseRows, in_order, page_of
from ingest_service.core.phases import Overlaps, PhaseContext, RequestPhases, round_prefills
from ingest_service.core.traffic.ports import StoredSeries, ports_of
from ingest_service.core.traffic.probe import PortProbes
from ingest_service.core.traffic.unwrap import Readings
from linkbound.domain.records import RequestRecord
from linkbound.domain.traffic import PhaseTraffic
from tests.property.traffic_answers import descriptor

NODE, BOOT = "spark-1", "boot"


def request(
    send_ns: int | None,
    ttft_ns: int | None = 400,
    last_token_ns: int | None = 1000,
    *,
    subject: str = "P1",
    round_index: int = 0,
    request_index: int = 0,
    prompt_tokens: int = 8,
    node: str = NODE,
    boot_id: str = BOOT,
) -> RequestPhases:
    record = RequestRecord(
        subject=subject,
        round_index=round_index,
        request_index=request_index,
        prompt_tokens=prompt_tokens,
        output_tokens=3,
        send_ns=send_ns,
        ttft_ns=ttft_ns,
        last_token_ns=last_token_ns,
        node=node,
        boot_id=boot_id,
    )
    return RequestPhases.of(record)


def probes(context: PhaseContext, requests: Sequence[RequestPhases], *readings: Readings) -> PortProbes:
    """One port with a device for each of the `readings`."""
    times_ns = [at for one in requests for at in context.times_ns(one)]
    stored = [
        StoredSeries(
            series_id=one.series_id,
            descriptor=descriptor(f"mlx5_{one.series_id}"),
            sample_count=len(one.time_ns),
            first_ns=int(one.time_ns[0]),
            last_ns=int(one.time_ns[-1]),
        )
        for one in readings
    ]
    found = PortProbes(ports_of(stored), np.array(times_ns, np.int64), lambda: None)
    for one in readings:
        found.feed(one)
    found.finish()
    return found


def steady(series_id: int = 1, *, first_ns: int = 0, last_ns: int = 100_000, step_ns: int = 70) -> Readings:
    time_ns = np.arange(first_ns, last_ns + 1, step_ns, dtype=np.int64)
    return Readings(series_id=series_id, time_ns=time_ns, value=time_ns, read_duration_ns=np.zeros_like(time_ns))


def row_of(asked: RequestPhases, *others: RequestPhases, readings: Sequence[Readings] = ()) -> PhaseTraffic:
    requests = [asked, *others]
    context = PhaseContext.of(requests)
    return context.row(asked, probes(context, requests, *(readings or [steady()])), 0)


def bytes_of(row: PhaseTraffic) -> Any:
    """Bytes of the prefill and of the decode."""
    return row.prefill_bytes, row.decode_bytes


def test_a_request_by_itself_is_split_at_its_tokens() -> None:
    row = row_of(request(1003))
    assert (row.node, row.physical_port, row.metric) == (NODE, "port0", "port_xmit_data")
    assert bytes_of(row) == (pytest.approx(400), pytest.approx(600))
    assert row.prefill_bits_per_second == row.decode_bits_per_second == pytest.approx(8e9)
    assert row.prefill_bytes_per_prompt_token == row.round_prefill_bytes_per_prompt_token == pytest.approx(50)
    assert row.overlapping_request_count == 0


def test_devices_of_the_port_are_summed() -> None:
    row = row_of(request(1003), readings=[steady(1), steady(2, first_ns=33)])
    assert row.prefill_bytes == pytest.approx(800)


def test_phases_that_readings_do_not_cover_are_not_told() -> None:
    row = row_of(request(1003), readings=[steady(last_ns=1600)])
    assert bytes_of(row) == (pytest.approx(400), None)
    row = row_of(request(1003), readings=[steady(first_ns=1100)])
    assert bytes_of(row) == (None, pytest.approx(600))
    assert row.round_prefill_bytes_per_prompt_token is None
    row = row_of(request(1003), readings=[steady(1), steady(2, first_ns=1100)])
    assert bytes_of(row) == (None, pytest.approx(1200))


def test_a_counter_that_began_again_within_a_phase_does_not_tell_of_it() -> None:
    readings = steady()
    again = readings.time_ns >= 1100
    fallen = evolve(readings, value=np.where(again, readings.value - 1100, readings.value))
    row = row_of(request(1003), readings=[fallen])
    assert (row.prefill_bytes, row.prefill_bytes_per_prompt_token) == (None, None)
    assert row.decode_bytes == pytest.approx(600)


def test_a_request_without_tokens_has_no_phases() -> None:
    row = row_of(request(1003, None, None))
    assert (row.prefill_bytes, row.decode_bytes, row.round_prefill_bytes_per_prompt_token) == (None, None, None)
    row = row_of(request(1003, 400, None))
    assert bytes_of(row) == (pytest.approx(400), None)


def test_a_single_token_has_no_rate_of_decode() -> None:
    row = row_of(request(1003, 400, 400))
    assert (row.decode_bytes, row.decode_bits_per_second) == (0, None)


def test_bytes_of_requests_that_overlap_are_told_for_the_round() -> None:
    requests = [
        request(1000, 400, 3000),
        request(1100, 900, 2000, request_index=1, prompt_tokens=12),
        request(50_000, subject="P2"),
    ]
    context = PhaseContext.of(requests)
    found = probes(context, requests, steady())
    for asked in requests[:2]:
        row = context.row(asked, found, 0)
        assert (row.overlapping_request_count, row.prefill_bytes_per_prompt_token) == (1, None)
        assert row.round_prefill_bytes_per_prompt_token == pytest.approx(1000 / 20)
    assert context.row(requests[2], found, 0).overlapping_request_count == 0


def test_a_round_over_two_clocks_or_with_a_request_without_a_token_has_no_bytes_of_its_own() -> None:
    assert round_prefills([request(1), request(2, node="spark-2", request_index=1)]) == {}
    assert round_prefills([request(1), request(2, boot_id="other", request_index=1)]) == {}
    assert round_prefills([request(1), request(2, None, None, request_index=1)]) == {}
    assert round_prefills([request(1), request(None, request_index=1)]) == {}
    assert list(round_prefills([request(1), request(2, round_index=1)])) == [("P1", 0), ("P1", 1)]


@pytest.mark.parametrize("asked", [request(None), request(5, node="")])
def test_a_request_that_is_on_no_clock_is_told_of_without_a_port(asked: RequestPhases) -> None:
    assert asked.clock is None
    row = PhaseContext.of([asked]).row(asked, None, 0)
    assert (row.node, row.physical_port, row.metric, row.prefill_bytes) == ("", "", "", None)


def test_a_token_at_a_time_that_64_bits_cannot_say_did_not_come() -> None:
    asked = request(2**63 - 10, 400, 1000)
    assert (asked.first_token_ns, asked.last_token_ns) == (None, None)


SPANS = st.lists(
    st.tuples(st.integers(0, 50), st.none() | st.integers(1, 30), st.integers(0, 30), st.sampled_from(["a", "b"])),
    min_size=1,
    max_size=12,
)


@given(SPANS)
def test_overlaps_are_those_of_comparing_each_with_each(spans: list[tuple[int, int | None, int, str]]) -> None:
    requests = [
        request(send, ttft, None if ttft is None else ttft + more, boot_id=boot) for send, ttft, more, boot in spans
    ]
    overlaps = Overlaps.of(requests)
    for index, one in enumerate(requests):
        others = requests[:index] + requests[index + 1 :]
        expected = sum(
            one.clock == other.clock
            and one.send_ns < max(other.end_ns, other.send_ns + 1)
            and other.send_ns < max(one.end_ns, one.send_ns + 1)
            for other in others
        )
        assert overlaps.count(one) == expected


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 1), st.sampled_from("xyz")), max_size=12
    ),
    st.integers(1, 5),
)
def test_pages_are_the_list_cut_into_pieces(drawn: list[tuple[str, int, int, str]], page_size: int) -> None:
    requests = [
        request(index, subject=subject, round_index=round_index, request_index=request_index, boot_id=boot)
        for index, (subject, round_index, request_index, boot) in enumerate(drawn)
    ]
    ports = {"x": 0, "y": 1, "z": 3}

    def port_count(asked: RequestPhases) -> int:
        return ports[asked.record.boot_id]

    listed = in_order(requests, "")
    expected = [(one, index) for one in listed for index in range(max(port_count(one), 1))]
    found: list[tuple[RequestPhases, int]] = []
    token = ""
    while True:
        page: PhaseRows = page_of(listed, port_count, decode_phase_token(token), page_size)
        found += [(row.request, row.port_index) for row in page.rows]
        token = page.next_page_token
        if not token:
            break
        assert len(page.rows) == page_size
    assert found == expected


def test_requests_are_listed_by_test_round_and_position_and_else_as_stored() -> None:
    first, second = request(9), request(1)
    requests = [first, second, request(2, round_index=-1), request(3, subject="A")]
    assert [one.send_ns for one in in_order(requests, "")] == [3, 2, 9, 1]
    assert [one.send_ns for one in in_order(requests, "P1")] == [2, 9, 1]
