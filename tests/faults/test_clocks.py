"""Clocks that are set back, of the service and of agents: nothing but what is shown as a time depends on them."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from ingest_service.server import serve as serve_ingest
from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from linkbound import AsyncIngestClient
from linkbound.domain.run import SealRunRequest
from linkbound.domain.run_watch import RunChange
from linkbound.domain.samples import SampleColumns, SeriesDescriptor
from linkbound.ingest.v1.run_service_pb2 import ListRunsRequest
from linkbound.ingest.v1.run_service_pb2_grpc import RunServiceStub
from serving.settings import ServerSettings
from tests.faults.agent_process import AgentProcess
from tests.faults.conftest import Report
from tests.faults.figures import FaultFigures, Rows
from tests.faults.killing import RUN
from tests.faults.repeats import REPEATS
from tests.faults.service_process import STORE_FILE_NAME
from tests.faults.truth import verdict
from tests.integration.servers import PATIENCE_SECONDS, QUIET_READING, Running, running
from tests.new_store import laid

pytestmark = pytest.mark.storage

HOUR_SECONDS = 3600
MOST_HOURS = 48
AGE_SECONDS = 1000 * HOUR_SECONDS
SAMPLES_PER_BATCH = 100
STEP_NS = 10_000_000


@define
class SetClock:
    """The clock of this machine, set wrong by a number of seconds."""

    offset_seconds: float = 0.0

    def __call__(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.offset_seconds)


async def test_the_clock_of_the_service_is_set_back_under_load(tmp_path: Path, report: Report) -> None:
    moments, clock = random.Random(REPEATS), SetClock()
    store = StoreSettings(path=laid(tmp_path / STORE_FILE_NAME), retention_age_seconds=AGE_SECONDS)
    backward_count = 0
    with Ingest.open(store, clock) as ingest:
        serve = partial(serve_ingest, ServerSettings(), ingest, reading=QUIET_READING)
        async with (
            running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server,
            AsyncIngestClient(server.target) as client,
        ):
            await client.create_run(RUN)
            agent = AgentProcess(tmp_path, server.target, RUN, "agent-0")
            agent.start()
            try:
                for number in range(REPEATS):
                    await asyncio.to_thread(_wait_for_more, agent)
                    before = clock.offset_seconds
                    clock.offset_seconds = moments.uniform(-MOST_HOURS, MOST_HOURS / 4) * HOUR_SECONDS
                    backward_count += clock.offset_seconds < before
                    await client.create_run(f"run-{number}")
                    await asyncio.to_thread(_wait_for_more, agent)
                await asyncio.to_thread(agent.stop)
            finally:
                agent.close()
            everybody = {RUN, *(f"run-{number}" for number in range(REPEATS))}
            assert await _listed(server) == sorted(everybody)
            assert await _told_of(client) == everybody
        ingest.seal_run(SealRunRequest(run="run-0"))
        # It was sealed in the future, as it seems now, and is no older for it.
        clock.offset_seconds -= MOST_HOURS * HOUR_SECONDS
        assert ingest.remove_expired_runs() == ()
        clock.offset_seconds += AGE_SECONDS + MOST_HOURS * HOUR_SECONDS + 1
        assert ingest.remove_expired_runs() == ("run-0",)
    found = verdict(store.path, RUN, {agent.writer_id: agent.told})
    report(
        FaultFigures(
            fault="clock of the service set",
            times=REPEATS,
            rows=found.rows,
            remarks=[f"{backward_count} times back, by up to {MOST_HOURS + MOST_HOURS // 4} h"],
        )
    )
    assert found.is_right, found
    assert backward_count > 0


async def _listed(server: Running) -> list[str]:
    """Every run as often as it is listed, a few at a time."""
    names: list[str] = []
    page_token = ""
    async with server.channel() as channel:
        stub: Any = RunServiceStub(channel)
        while True:
            page = await stub.ListRuns(ListRunsRequest(page_size=2, page_token=page_token))
            names += [run.name.removeprefix("runs/") for run in page.runs]
            page_token = page.next_page_token
            if not page_token:
                return sorted(names)


async def _told_of(client: AsyncIngestClient) -> set[str]:
    """Runs that a watch of all changes tells of; its revisions only rise."""
    names: set[str] = set()
    last_revision = 0
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for update in client.watch_runs(start_revision=1):
            if update.change is RunChange.UNSPECIFIED:
                return names
            assert update.revision > last_revision
            last_revision = update.revision
            names.add(update.run_id)
    raise AssertionError("a watch ended")


def _wait_for_more(agent: AgentProcess) -> None:
    agent.wait_for(committed_number=agent.progress.committed_number + 1)


async def test_the_clock_of_an_agent_is_set_back(tmp_path: Path, report: Report) -> None:
    sent = rejected = 0
    store = StoreSettings(path=laid(tmp_path / STORE_FILE_NAME))
    with Ingest.open(store) as ingest:
        serve = partial(serve_ingest, ServerSettings(), ingest, reading=QUIET_READING)
        async with (
            running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server,
            AsyncIngestClient(server.target) as client,
        ):
            await client.create_run(RUN)
            series = [SeriesDescriptor(metric="port_xmit_data", node="n1", device="mlx5_0", port=1, unit_bytes=1)]
            async with client.writer(RUN, "agent", series, linger_seconds=0) as writer:
                begin_ns = REPEATS * STEP_NS
                for number in range(REPEATS):
                    half = SAMPLES_PER_BATCH // 2
                    before = [begin_ns + index * 1000 for index in range(half)]
                    # Within a batch half of the readings are from before the others, and the next batch goes on there.
                    begin_ns -= STEP_NS // 2
                    after = [begin_ns + index * 1000 for index in range(half)]
                    values = range(number * SAMPLES_PER_BATCH, (number + 1) * SAMPLES_PER_BATCH)
                    await writer.write([SampleColumns(series_index=0, time_ns=before + after, value=values)])
                    sent, rejected = sent + SAMPLES_PER_BATCH, rejected + half
                await writer.flush()
                assert (writer.rejected, writer.pending) == (rejected, 0)
            stored = (await client.get_run(RUN)).row_counts.sample_count
            (port,) = await client.query_traffic(RUN, windows_ns=[1_000_000])
    late_count = port.late_count
    report(
        FaultFigures(
            fault="clock of an agent set back",
            times=REPEATS,
            rows=Rows(sent=sent, acknowledged=sent - rejected, stored=stored, lost=sent - rejected - stored, twice=0),
            remarks=[f"{rejected:,} told to the writer as rejected", f"{late_count:,} told to readers as late"],
        )
    )
    assert stored == sent - rejected
    # All but the readings of the first batch are from before what was read before them.
    assert late_count == stored - SAMPLES_PER_BATCH // 2
