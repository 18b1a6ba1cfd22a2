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
from ingest_service.service import Ingest, PreparedAppend, StreamSession
from linkbound.client.backend import Connection
from linkbound.client.local.samples import LocalConnector
from linkbound.client.remote.samples import OwnChannelConnector
from linkbound.client.sample_stream import BatchRefusal, SampleConnection
from linkbound.client.target import parse_target
from linkbound.convert.sample_payload import payload_of_columns
from linkbound.domain.samples import BatchOutcome, SampleColumns
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
    queue = StreamSession.queue

    def counted(session: StreamSession, prepared: PreparedAppend) -> Future[BatchOutcome]:
        outcome = queue(session, prepared)
        count.release()
        return outcome

    monkeypatch.setattr(StreamSession, "queue", counted)
    return count


@pytest.mark.parametrize("connect", [over_the_network, in_process])
async def test_every_rejected_sample_is_counted_once(
    tmp_path: Path, submitted: threading.Semaphore, connect: Connect
) -> None:
    clock = GatedClock()
    with opened(tmp_path, clock) as ingest:
        # Another writer's batch keeps the store busy, so that those of this one are stored together.
        other = with_run(ingest).open_stream(stream(writer="other"))
        async with connect(ingest) as connection:
            clock.close_gate()
            other.submit(batch(1))
            assert clock.reached.wait(PATIENCE_SECONDS)
            # The second has one series twice: malformed, with five samples.
            batches = [
                (readings(0, 10, 9, 11),),
                (readings(1, 1, 2), readings(1, 3, 4, 5)),
                (readings(0, 20, 21),),
            ]
            for number, columns in enumerate(batches, 1):
                await connection.send(number, payload_of_columns(columns))
            for _ in range(1 + len(batches)):
                assert await asyncio.to_thread(submitted.acquire, timeout=PATIENCE_SECONDS)
            clock.gate.set()
            committed = rejected = 0
            refused: list[int] = []
            while committed < len(batches):
                match await connection.receive():
                    case BatchRefusal(number, _):
                        refused.append(number)
                    case BatchOutcome() as outcome:
                        committed = max(committed, outcome.committed_sequence_number)
                        rejected += outcome.rejected_sample_count
            assert (rejected, refused) == (1, [2])
        # Who opens the stream again learns the same of all of them.
        async with connect(ingest) as connection:
            assert connection.start.rejected_sample_count == 1 + 5
    assert rows(
        tmp_path,
        "SELECT list(sequence_number ORDER BY sequence_number), sum(row_count), sum(rejected_row_count) FROM ledger"
        " WHERE writer_id = 'sampler' GROUP BY commit_time_utc",
    ) == [([1, 2, 3], 4, 6)]
