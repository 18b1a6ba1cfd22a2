"""The second watermark of a stream: what no damage to the log can take."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from ingest_service.transport.sample_stream import StreamTiming
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import BatchOutcome
from linkbound.ingest.v1.ingest_service_pb2 import BatchAck
from tests.integration.sample_stream.calls import STORE_FILE, Stream, batch_message
from tests.integration.sample_stream.slow_store import SlowStore, stream_server
from tests.integration.servers import ingest_server
from tests.new_store import laid

pytestmark = pytest.mark.storage


def created(folder: Path) -> None:
    with Ingest.open(StoreSettings(path=laid(folder / STORE_FILE))) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))


async def test_what_a_rest_of_the_store_has_moved_into_the_file_is_acknowledged_as_such(tmp_path: Path) -> None:
    created(tmp_path)
    async with (
        ingest_server(tmp_path, checkpoint_idle_seconds=0.01) as server,
        server.channel() as channel,
    ):
        stream = Stream(channel)
        opened = await stream.opened()
        assert (opened.committed_sequence_number, opened.checkpointed_sequence_number) == (0, 0)
        await stream.send(batch_message(1), batch_message(2))
        while (answer := await stream.read()) != BatchAck(committed_sequence_number=2, checkpointed_sequence_number=2):
            assert isinstance(answer, BatchAck)
            assert answer.checkpointed_sequence_number <= answer.committed_sequence_number <= 2
        again = await Stream(channel).opened()
        assert (again.committed_sequence_number, again.checkpointed_sequence_number) == (2, 2)


async def test_what_the_store_held_when_it_was_opened_is_checkpointed(tmp_path: Path) -> None:
    created(tmp_path)
    for number in (1, 2):
        async with ingest_server(tmp_path) as server, server.channel() as channel:
            stream = Stream(channel)
            opened = await stream.opened()
            assert opened.checkpointed_sequence_number == opened.committed_sequence_number == number - 1
            await stream.send(batch_message(number))
            await stream.ack_of(number)
            await stream.half_close()
            await stream.rest()


async def test_a_checkpoint_alone_is_acknowledged_and_never_says_more_than_what_is_acknowledged() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1), batch_message(2))
        await store.holds(2)
        store.commit(1)
        assert await stream.read() == BatchAck(committed_sequence_number=1)
        assert store.listener is not None
        # The checkpoint holds 2 already, whose acknowledgement is still on its way.
        store.listener.on_checkpointed(2)
        assert await stream.read() == BatchAck(committed_sequence_number=1, checkpointed_sequence_number=1)
        store.commit(2)
        assert await stream.read() == BatchAck(committed_sequence_number=2, checkpointed_sequence_number=2)
        stream.call.cancel()


async def test_the_answer_to_a_batch_brings_the_watermark_along() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1))
        await store.holds(1)
        store.submitted[0][1].set_result(BatchOutcome(committed_sequence_number=1, checkpointed_sequence_number=1))
        assert await stream.read() == BatchAck(committed_sequence_number=1, checkpointed_sequence_number=1)
        stream.call.cancel()
