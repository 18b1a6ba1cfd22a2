"""A writer that never pauses, and a service that is restarted under it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from linkbound.client import AsyncIngestClient
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import SampleColumns, SeriesDescriptor
from serving.settings import ServerSettings
from tests.integration.servers import ingest_server
from tests.new_store import laid

pytestmark = pytest.mark.storage

RESTART_COUNT = 6
BATCHES_PER_START = 60
SAMPLES_PER_BATCH = 50
BATCH_COUNT = (RESTART_COUNT + 1) * BATCHES_PER_START


async def write_everything(target: str, progress: asyncio.Queue[int]) -> None:
    """Write batch after batch; tell how many were taken, each time another server may go away."""
    series = [SeriesDescriptor(metric="port_xmit_data", node="node-a")]
    async with (
        AsyncIngestClient(target) as client,
        client.writer("r", "sampler", series) as writer,
    ):
        for number in range(1, BATCH_COUNT + 1):
            times = tuple(range(number * SAMPLES_PER_BATCH, (number + 1) * SAMPLES_PER_BATCH))
            await writer.write([SampleColumns(series_index=0, time_ns=times, value=times)])
            if number % BATCHES_PER_START == 0:
                progress.put_nowait(number)


async def test_every_sample_is_stored_once_however_often_the_service_restarts(tmp_path: Path) -> None:
    store = StoreSettings(path=laid(tmp_path / "linkbound.duckdb"))
    with Ingest.open(store) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))
    async with ingest_server(tmp_path) as server:
        port = server.port

    progress: asyncio.Queue[int] = asyncio.Queue()
    writing = asyncio.ensure_future(write_everything(f"127.0.0.1:{port}", progress))
    for _ in range(RESTART_COUNT):
        async with ingest_server(tmp_path, ServerSettings(port=port)):
            # Batches are under way in both directions when the service is told to stop.
            moved = asyncio.ensure_future(progress.get())
            either: set[asyncio.Future[None] | asyncio.Future[int]] = {writing, moved}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            break
    async with ingest_server(tmp_path, ServerSettings(port=port)):
        await writing

    with Ingest.open(store) as ingest:
        assert ingest.get_run("r").row_counts.sample_count == BATCH_COUNT * SAMPLES_PER_BATCH
