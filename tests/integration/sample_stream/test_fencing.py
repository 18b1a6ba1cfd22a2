"""Two streams of one writer: the first is what a broken network left, and ends."""

from __future__ import annotations

import grpc
import pytest

from ingest_service.transport.sample_stream import StreamTiming
from linkbound.domain.errors import AbortedError
from linkbound.ingest.v1.ingest_service_pb2 import BatchAck
from tests.integration.sample_stream.calls import Stream, batch_message
from tests.integration.sample_stream.slow_store import SlowStore, stream_server

pytestmark = pytest.mark.storage


async def test_a_second_stream_ends_the_first_at_once_with_what_it_stored_acknowledged(
    channel: grpc.aio.Channel,
) -> None:
    first, second = Stream(channel), Stream(channel)
    await first.opened()
    await first.send(batch_message(1))
    await first.ack_of(1)
    opened = await second.opened(last_acked_sequence_number=1)
    assert opened.committed_sequence_number == 1
    # It sends nothing, and is told all the same.
    assert await first.read() == BatchAck(committed_sequence_number=1)
    error = await first.error()
    assert isinstance(error, AbortedError)
    assert error.reason == "WRITER_FENCED"
    assert error.metadata["writer"] == "sampler"
    await second.send(batch_message(2))
    await second.ack_of(2)


async def test_streams_of_other_writers_go_on(channel: grpc.aio.Channel) -> None:
    first, other = Stream(channel), Stream(channel)
    await first.opened()
    await other.opened(writer_id="other")
    await first.send(batch_message(1))
    await first.ack_of(1)


async def test_what_was_taken_before_is_answered_before_the_stream_ends() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1))
        await store.holds(1)
        assert store.listener is not None
        store.listener.on_fenced(AbortedError("another stream", reason="WRITER_FENCED"))
        store.commit(1)
        assert await stream.read() == BatchAck(committed_sequence_number=1)
        assert (await stream.error()).reason == "WRITER_FENCED"
    assert store.closed.is_set()
