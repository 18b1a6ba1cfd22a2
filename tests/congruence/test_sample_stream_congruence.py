"""Single sample streams, as the sample writer drives them: equal answers and refusals here and over the network."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen

from linkbound import Error, SampleColumns, SeriesDescriptor
from linkbound.client.backend import Connection
from linkbound.client.local.blocking import local_ingest
from linkbound.client.operations import CREATE_RUN, SEAL_RUN
from linkbound.client.remote.blocking import RemoteBackend
from linkbound.client.remote.services import INGEST_SERVICES
from linkbound.client.sample_stream import BatchRefusal, SampleConnection, SampleConnector
from linkbound.client.target import parse_target
from linkbound.convert.ingest_service import sample_batch_to_proto
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


@frozen
class Story:
    """Sends batches over a stream one by one, and notes what a client learns of them."""

    stream: SampleConnection
    answers: list[Any] = field(factory=list)
    rejected: list[int] = field(factory=list)

    async def send(self, sent: SampleBatch) -> None:
        message = sample_batch_to_proto(sent)
        message.ClearField("sequence_number")
        await self.stream.send(sent.sequence_number, message.SerializeToString())

    async def stored(self, sent: SampleBatch) -> None:
        """Send a batch and wait until it is acknowledged."""
        await self.send(sent)
        while True:
            event = await self.stream.receive()
            assert isinstance(event, BatchOutcome)
            self.note(event)
            if event.committed_sequence_number >= sent.sequence_number:
                self.answers.append(sent.sequence_number)
                return

    async def refused(self, sent: SampleBatch) -> None:
        """Send a batch and wait until it is refused. Acknowledgements may come again meanwhile."""
        await self.send(sent)
        while isinstance(event := await self.stream.receive(), BatchOutcome):
            self.note(event)
        assert isinstance(event, BatchRefusal)
        self.answers.append((event.sequence_number, failure_of(event.error)))

    def note(self, outcome: BatchOutcome) -> None:
        self.rejected.append(outcome.rejected_sample_count)


async def every_kind_of_batch(stream: SampleConnection, seal: Callable[[], Awaitable[object]]) -> list[Any]:
    story = Story(stream)
    await story.stored(batch(1, 5, 6))
    await story.stored(batch(1, 5, 6))
    await story.refused(batch(1, 7))
    await story.refused(batch(2, 5, 6, time_count=1))
    await story.refused(batch(3, 5, series_index=9))
    await story.refused(batch(5, 5))
    await story.stored(batch(4, 5, -1, 6))
    await stream.finish()
    while (last := await stream.receive()) is not None:
        # A server may repeat its last acknowledgement before it ends the stream.
        assert isinstance(last, BatchOutcome)
        assert last.committed_sequence_number == 4
        story.note(last)
    return [stream.start, *story.answers, sum(story.rejected)]


async def a_sealed_run(stream: SampleConnection, seal: Callable[[], Awaitable[object]]) -> list[Any]:
    story = Story(stream)
    await story.stored(batch(1, 5))
    await seal()
    with pytest.raises(Error) as caught:
        await story.stored(batch(2, 6))
    return [*story.answers, failure_of(caught.value)]


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
    assert [answer for answer in answers[1:-1] if isinstance(answer, int)] == [1, 1, 4]
    assert [(number, failure.kind.code) for number, failure in refusals] == [
        (1, "ABORTED"),
        (2, "INVALID_ARGUMENT"),
        (3, "INVALID_ARGUMENT"),
        (5, "OUT_OF_RANGE"),
    ]
    assert answers[-1] == 1
