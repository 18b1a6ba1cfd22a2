"""A real recording, loaded over gRPC: bytes per prompt token, peaks of windows and phases are those of its analysis.

The formula is that of the model: 17 all-reduces over two ranks (an embedding, and two for each of 8 layers) of 1,024
values of 2 bytes. The link carries 383 Mb/s of payload at 400 Mb/s and 191 at 200; a burst of 256 KB goes out at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from statistics import mean

import duckdb
import pytest

from linkbound import AsyncIngestClient, PhaseTraffic, PortTraffic
from linkbound.client.local.blocking import STORE_FILE_NAME
from tests.golden.lab_recording import DEVICES, METRICS, REDUCED, Recording, load
from tests.integration.servers import ingest_server

pytestmark = pytest.mark.storage

FORMULA_BYTES_PER_PROMPT_TOKEN = 17 * 1024 * 2
MS = 10**6
BURST_BITS = 8 * 256 * 1024
WINDOWS_NS = (MS, 5 * MS, 100 * MS, 1000 * MS)


def measured(rows: Iterable[PhaseTraffic], device: str, subject: str) -> list[PhaseTraffic]:
    """The rows of measured rounds that tell of what a rank sent."""
    return [
        row
        for row in rows
        if (row.physical_port, row.metric, row.subject) == (device, "tx_bytes", subject) and row.round_index >= 0
    ]


def check_prefill(rows: Sequence[PhaseTraffic], subjects: Iterable[str], round_count: int) -> None:
    """Single prompts: the mean of the rounds, and every round."""
    for device, subject in product(DEVICES, subjects):
        rounds = measured(rows, device, subject)
        assert len(rounds) == round_count
        per_token = [row.prefill_bytes_per_prompt_token or 0.0 for row in rounds]
        assert 34_880 <= mean(per_token) <= 34_950, (device, subject, per_token)
        assert per_token == pytest.approx([FORMULA_BYTES_PER_PROMPT_TOKEN] * round_count, rel=0.005)
        for row in rounds:
            assert row.overlapping_request_count == 0
            assert row.round_prefill_bytes_per_prompt_token == row.prefill_bytes_per_prompt_token


def check_together(rows: Sequence[PhaseTraffic], round_count: int) -> None:
    """Four prompts at once: their bytes are not told apart, those of the round are those of the formula."""
    for device in DEVICES:
        requests = measured(rows, device, "L4")
        assert len(requests) == 4 * round_count
        for row in requests:
            assert row.overlapping_request_count == 3
            assert row.prefill_bytes_per_prompt_token is None
            # While the last prompts run, the first one decodes: a few tokens of 64 per pass, and a logits gather.
            assert row.round_prefill_bytes_per_prompt_token == pytest.approx(FORMULA_BYTES_PER_PROMPT_TOKEN, rel=0.01)


def check_decode(rows: Sequence[PhaseTraffic]) -> None:
    """One row a pass: what it takes beside the all-reduces, counted on the files by themselves, is 27 to 30 kB."""
    for row in rows:
        if row.metric == "tx_bytes" and row.subject != "L4" and row.round_index >= 0:
            assert row.decode_bytes is not None
            assert 61_000 <= row.decode_bytes / (row.output_tokens - 1) <= 65_000
            assert (row.decode_bits_per_second or 0.0) < 0.1 * (row.prefill_bits_per_second or 0.0)


def check_windows(ports: Sequence[PortTraffic], bits_per_second: float) -> None:
    """Peaks fall with the window: the burst at 1 ms, little more than the rate of the link from 100 ms on."""
    assert [(port.physical_port, port.metric) for port in ports] == sorted(product(DEVICES, METRICS))
    for port in ports:
        assert (port.wrap_count, port.reset_count, port.late_count, port.duplicate_count) == (0, 0, 0, 0)
        assert port.interval_ns == pytest.approx(MS, rel=0.01)
        peaks = [window.peak_bits_per_second for window in port.windows]
        assert peaks == sorted(peaks, reverse=True)
        # A burst goes out at once, and what the link carries besides; where in a window it falls is chance.
        assert 1.4e9 <= peaks[0] <= BURST_BITS * 1000 + bits_per_second
        assert max(peaks[2:]) <= 1.05 * bits_per_second
        # A pass fills the link for longer than 100 ms; over 1 s the ranks also compute.
        assert peaks[2] > 0.9 * bits_per_second
        for window in port.windows:
            assert window.covered_fraction == 1.0
            assert window.mean_bits_per_second <= window.p99_bits_per_second <= window.peak_bits_per_second


async def test_the_reduced_recording(tmp_path: Path) -> None:
    recording = Recording(REDUCED, 400)
    async with ingest_server(tmp_path) as server, AsyncIngestClient(server.target) as client:
        sample_count = await load(client, recording)
        ports = await client.query_traffic(recording.run, windows_ns=WINDOWS_NS)
        rows = [row async for row in client.list_phase_traffic(recording.run)]
    assert sum(port.sample_count for port in ports) == sample_count
    check_windows(ports, 400e6)
    check_prefill(rows, ["L1"], round_count=3)
    check_together(rows, round_count=1)
    check_decode(rows)


async def test_the_views_of_the_store_say_the_same(tmp_path: Path) -> None:
    """SQL and the core compute by the same rules in different ways."""
    recording = Recording(REDUCED, 400)
    async with ingest_server(tmp_path) as server, AsyncIngestClient(server.target) as client:
        await load(client, recording)
        ports = await client.query_traffic(recording.run, windows_ns=WINDOWS_NS)
        rows = [row async for row in client.list_phase_traffic(recording.run)]
    with duckdb.connect(tmp_path / STORE_FILE_NAME, read_only=True) as store:
        for index, window_ns in enumerate(WINDOWS_NS):
            found = store.execute(
                "SELECT physical_port, metric, max(bits_per_second), count(*), sum(window_bytes)"
                " FROM windows(?, ?) GROUP BY ALL ORDER BY ALL",
                [recording.run, window_ns / 1e9],
            ).fetchall()
            for (physical_port, metric, peak, count, byte_count), port in zip(found, ports, strict=True):
                window = port.windows[index]
                assert (physical_port, metric, count) == (port.physical_port, port.metric, window.window_count)
                assert peak == pytest.approx(window.peak_bits_per_second, rel=1e-9)
                assert byte_count == pytest.approx(port.total_bytes, rel=1e-9)
        phases = store.execute(
            "SELECT subject, round_index, request_index, physical_port, metric, prefill_bytes, decode_bytes,"
            " overlapping_request_count, round_prefill_bytes_per_prompt_token FROM v_phase_traffic WHERE run_id = ?"
            " ORDER BY subject, round_index, request_index, physical_port, metric",
            [recording.run],
        ).fetchall()
    for (*place, prefill_bytes, decode_bytes, overlap_count, per_token), row in zip(phases, rows, strict=True):
        assert place == [row.subject, row.round_index, row.request_index, row.physical_port, row.metric]
        assert overlap_count == row.overlapping_request_count
        assert (prefill_bytes, decode_bytes, per_token) == pytest.approx(
            (row.prefill_bytes, row.decode_bytes, row.round_prefill_bytes_per_prompt_token), rel=1e-9
        )


@pytest.mark.parametrize("megabits_per_second", [400, 200])
async def test_the_whole_recording(tmp_path: Path, megabits_per_second: int) -> None:
    reference = os.environ.get("LINKBOUND_REFERENCE_DATA")
    folder = Path(reference or ".").parent / "samples" / "lab_trace"
    if reference is None or not folder.is_dir():
        pytest.skip("LINKBOUND_REFERENCE_DATA is not set, or has no recording beside it: only a part of it is read")
    recording = Recording(folder, megabits_per_second)
    async with ingest_server(tmp_path) as server, AsyncIngestClient(server.target) as client:
        sample_count = await load(client, recording)
        ports = await client.query_traffic(recording.run, windows_ns=WINDOWS_NS)
        rows = [row async for row in client.list_phase_traffic(recording.run)]
    assert sum(port.sample_count for port in ports) == sample_count
    check_windows(ports, megabits_per_second * 1e6)
    check_prefill(rows, ["L1", "L2", "L3"], round_count=3)
    check_together(rows, round_count=3)
    check_decode(rows)
