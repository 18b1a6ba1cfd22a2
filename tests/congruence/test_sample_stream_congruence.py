"""Single sample streams, as the sample writer drives them: equal answers and refusals here and over the network."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from linkbound import Error, SampleColumns, SeriesDescriptor
from linkbound.client.backend import Connection
from linkbound.client.local.blocking import local_ingest
from linkbound.client.operations import CREATE_RUN, SEAL_RUN
from linkbound.client.remote.blocking import RemoteBackend
from linkbound.client.remote.services import INGEST_SERVICES
from linkbound.client.sample_stream import BatchRefusal, SampleConnection, SampleConnector
from linkbound.client.target import parse_target
from linkbound.domain.run import CreateRunRequest, SealRunRequest
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, SampleBatch
from tests.congruence.callers import failure_of
from tests.congruence.servers import ServerThread, ingest_server

OPENING = OpenStreamRequest(run="r1", writer_id="w1", series=(SeriesDescriptor(metric="port_xmit_data", node="n1"),))
SEALING = SealRunRequest(run="r1")


def batch(number: int, *values: int, series_index: int = 0, time_count: int | None = None) -> SampleBatch:
    times = tuple(range(len(values) if time_count is None else time_count))
    columns = SampleColumns(series_index=series_index, time_ns=times, value=values)
    return SampleBatch(sequence_number=number, columns=(columns,))


async def one_by_one(stream: SampleConnection, *batches: SampleBatch) -> list[Any]:
    """Send each batch after the answer to the one before; the answers, with errors in a form that can be compared."""
    answers: list[Any] = []
    for sent in batches:
        await stream.send(sent)
        event = await stream.receive()
        answers.append((event.sequence_number, failure_of(event.error)) if isinstance(event, BatchRefusal) else event)
    return answers


async def every_kind_of_batch(stream: SampleConnection, seal: Callable[[], Awaitable[object]]) -> list[Any]:
    answers = await one_by_one(
        stream,
        batch(1, 5, 6),
        batch(1, 5, 6),
        batch(1, 7),
        batch(2, 5, 6, time_count=1),
        batch(3, 5, series_index=9),
        batch(5, 5),
        batch(4, 5, -1, 6),
    )
    await stream.finish()
    while (last := await stream.receive()) is not None:
        # A server may repeat its last acknowledgement before it ends the stream.
        assert last == BatchOutcome(committed_sequence_number=4)
    return [stream.committed_sequence_number, stream.limits, *answers]


async def a_sealed_run(stream: SampleConnection, seal: Callable[[], Awaitable[object]]) -> list[Any]:
    answers = await one_by_one(stream, batch(1, 5))
    await seal()
    await stream.send(batch(2, 6))
    with pytest.raises(Error) as caught:
        await stream.receive()
    return [*answers, failure_of(caught.value)]


@asynccontextmanager
async def either(kind: str, directory: Path) -> AsyncIterator[tuple[SampleConnector, Callable[[], Awaitable[object]]]]:
    """A connector to a store with an open run, and what seals it."""
    server = await asyncio.to_thread(ServerThread, ingest_server(directory)) if kind == "remote" else None
    connection = Connection(target=parse_target(server.target)) if server else None
    backend = RemoteBackend(connection, None, INGEST_SERVICES) if connection else local_ingest(directory)
    connector = backend.sample_connector()
    try:
        await asyncio.to_thread(backend.call, CREATE_RUN, CreateRunRequest(run_id="r1"), 30)
        yield connector, lambda: asyncio.to_thread(backend.call, SEAL_RUN, SEALING, 30)
    finally:
        await connector.close()
        await asyncio.to_thread(backend.close)
        if server is not None:
            await asyncio.to_thread(server.stop)


@pytest.mark.parametrize("story", [every_kind_of_batch, a_sealed_run])
async def test_answers_are_equal(
    tmp_path: Path, story: Callable[[SampleConnection, Callable[[], Awaitable[object]]], Awaitable[list[Any]]]
) -> None:
    answers = {}
    for kind in ("local", "remote"):
        async with either(kind, tmp_path / kind) as (connector, seal):
            stream = await connector.connect(OPENING)
            answers[kind] = await story(stream, seal)
            await stream.close()
    assert answers["local"] == answers["remote"]


async def test_refusals_concern_one_batch_and_say_why(tmp_path: Path) -> None:
    async with either("local", tmp_path) as (connector, seal):
        stream = await connector.connect(OPENING)
        answers = await every_kind_of_batch(stream, seal)
        await stream.close()
    refusals = [answer for answer in answers if isinstance(answer, tuple)]
    assert [(number, failure.kind.code) for number, failure in refusals] == [
        (1, "ABORTED"),
        (2, "INVALID_ARGUMENT"),
        (3, "INVALID_ARGUMENT"),
        (5, "OUT_OF_RANGE"),
    ]
    assert answers[-1].committed_sequence_number == 4
    assert answers[-1].rejected_sample_count == 1
