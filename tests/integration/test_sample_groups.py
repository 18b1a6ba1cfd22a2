"""What a client learns when good and malformed batches are stored in one transaction: no refusal is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from ingest_service.server import serve as serve_ingest
from ingest_service.service import Ingest, StreamSession
from linkbound.client.backend import Connection
from linkbound.client.local.samples import LocalConnector
from linkbound.client.remote.samples import OwnChannelConnector
from linkbound.client.sample_stream import BatchRefusal, SampleConnection
from linkbound.client.sample_window import SampleWindow
from linkbound.client.target import parse_target
from linkbound.domain.samples import BatchOutcome, SampleBatch, SampleColumns
from serving.settings import ServerSettings
from tests.integration.servers import PATIENCE_SECONDS, running
from tests.integration.store_content import RX, TX, GatedClock, batch, opened, rows, stream, with_run

pytestmark = pytest.mark.storage

Connect = Callable[[Ingest], AbstractAsyncContextManager[SampleConnection]]


@asynccontextmanager
async def over_the_network(ingest: Ingest) -> AsyncIterator[SampleConnection]:
    serve = partial(serve_ingest, ServerSettings(), ingest)
    async with running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server:
        connector = OwnChannelConnector(Connection(target=parse_target(server.target)), None)
        connection = await connector.connect(stream(TX, RX))
        yield connection
        await connection.close()
        await connector.close()


@asynccontextmanager
async def in_process(ingest: Ingest) -> AsyncIterator[SampleConnection]:
    connection = await LocalConnector(lambda: ingest).connect(stream(TX, RX))
    yield connection
    await connection.close()


def readings(series_index: int, *times: int) -> SampleColumns:
    return SampleColumns(series_index=series_index, time_ns=times, value=times)


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Released once for every batch that the store has queued."""
    count = threading.Semaphore(0)
    submit = StreamSession.submit

    def counted(session: StreamSession, batch: SampleBatch) -> Future[BatchOutcome]:
        outcome = submit(session, batch)
        count.release()
        return outcome

    monkeypatch.setattr(StreamSession, "submit", counted)
    return count


@pytest.mark.parametrize("connect", [over_the_network, in_process])
async def test_every_rejected_sample_is_counted_once(
    tmp_path: Path, submitted: threading.Semaphore, connect: Connect
) -> None:
    clock = GatedClock()
    with opened(tmp_path, clock) as ingest:
        # Another writer's batch keeps the store busy, so that those of this one are stored together.
        other = with_run(ingest).open_stream(stream(writer="other"))
        window = SampleWindow()
        async with connect(ingest) as connection:
            window.open(connection.committed_sequence_number, connection.limits)
            clock.close_gate()
            other.submit(batch(1))
            assert clock.reached.wait(PATIENCE_SECONDS)
            window.add((readings(0, 10, 9, 11),))
            # One series twice in a batch: malformed, with five samples.
            window.add((readings(1, 1, 2), readings(1, 3, 4, 5)))
            window.add((readings(0, 20, 21),))
            while (pending := window.take_unsent()) is not None:
                await connection.send(pending)
            for _ in range(1 + 3):
                assert await asyncio.to_thread(submitted.acquire, timeout=PATIENCE_SECONDS)
            clock.gate.set()
            while not window.is_empty:
                match await connection.receive():
                    case BatchRefusal(number, error):
                        window.refuse(number, error.message)
                    case BatchOutcome() as outcome:
                        window.acknowledge(outcome)
            assert (window.committed_sequence_number, window.rejected_sample_count) == (3, 1 + 5)
    assert rows(
        tmp_path,
        "SELECT list(sequence_number ORDER BY sequence_number), sum(row_count), sum(rejected_row_count) FROM ledger"
        " WHERE writer_id = 'sampler' GROUP BY commit_time_utc",
    ) == [([1, 2, 3], 4, 6)]
