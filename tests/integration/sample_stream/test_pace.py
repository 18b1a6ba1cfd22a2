"""How many batches are under way, when they are acknowledged, and what makes a stream wait."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from ingest_service.transport.sample_stream import StreamTiming
from ingest_service.transport.store_threads import INLINE_BATCH_BYTES
from linkbound.domain.errors import ResourceExhaustedError
from linkbound.ingest.v1.ingest_service_pb2 import BatchAck, BatchError
from tests.integration.sample_stream.calls import Stream, batch_message
from tests.integration.sample_stream.slow_store import QUICK_ACKS, SlowStore, stream_server

pytestmark = pytest.mark.storage


async def test_no_more_batches_are_taken_than_may_be_under_way() -> None:
    store = SlowStore(max_in_flight_batches=2)
    async with stream_server(store, QUICK_ACKS) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(*(batch_message(number) for number in range(1, 6)))
        # Each acknowledgement shows that the server had time to take more.
        for _ in range(5):
            assert await stream.read() == BatchAck(committed_sequence_number=0)
        assert store.numbers == [1, 2]
        store.commit(1)
        await stream.ack_of(1)
        for _ in range(5):
            assert await stream.read() == BatchAck(committed_sequence_number=1)
        assert store.numbers == [1, 2, 3]
        stream.call.cancel()


async def test_while_a_batch_is_under_way_acknowledgements_keep_coming() -> None:
    store = SlowStore(max_in_flight_batches=2)
    async with stream_server(store, QUICK_ACKS) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1))
        for _ in range(3):
            assert await stream.read() == BatchAck(committed_sequence_number=0)
        store.commit(1)
        await stream.ack_of(1)
        stream.call.cancel()


async def test_batches_that_are_durable_together_share_an_acknowledgement() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1), batch_message(2), batch_message(3))
        await store.holds(3)
        for number in (1, 2, 3):
            store.commit(number)
        assert await stream.read() == BatchAck(committed_sequence_number=3)
        stream.call.cancel()


async def test_a_malformed_batch_is_refused_once_its_number_is_used_up() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, QUICK_ACKS) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1, sample_count=2**20))
        await store.holds(1)
        for _ in range(3):
            assert await stream.read() == BatchAck(committed_sequence_number=0)
        (refused,) = store.refused_batches
        assert (refused.sequence_number, refused.sample_count) == (1, 2**20)
        store.fail(1, refused.error)
        while isinstance(answer := await stream.read(), BatchAck):
            assert answer.committed_sequence_number == 0
        assert isinstance(answer, BatchError)
        await stream.half_close()
        assert (await stream.rest())[-1] == BatchAck(committed_sequence_number=1)


LARGE_SAMPLE_COUNT = INLINE_BATCH_BYTES
"""Each sample takes at least a byte."""


async def test_large_batches_are_worked_on_beside_the_event_loop_and_stay_in_order() -> None:
    store = SlowStore(max_in_flight_batches=64)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        sizes = [LARGE_SAMPLE_COUNT if number % 3 else 1 for number in range(1, 31)]
        await stream.send(*(batch_message(number, sample_count=size) for number, size in enumerate(sizes, 1)))
        await store.holds(30)
        assert store.numbers == list(range(1, 31))
        on_loop = [name == threading.current_thread().name for name in store.thread_names]
        assert on_loop == [size == 1 for size in sizes]
        stream.call.cancel()


async def test_a_full_queue_makes_the_stream_wait() -> None:
    store = SlowStore(max_in_flight_batches=8)
    full = partial(ResourceExhaustedError, "full", reason="QUEUE_FULL", retry_delay_seconds=0.01)
    store.refusals = [full(), full(), full()]
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1), batch_message(2))
        await store.holds(2)
        assert store.numbers == [1, 2]
        store.commit(1)
        store.commit(2)
        await stream.ack_of(2)
        await stream.half_close()
        await stream.rest()
    assert store.closed.is_set()
