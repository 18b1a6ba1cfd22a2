"""What ends a stream from either side, and what is durable by then."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from ingest_service.transport.sample_stream import LIFETIME_SECONDS, StreamTiming
from linkbound.domain.errors import FailedPreconditionError, ResourceExhaustedError, UnavailableError
from linkbound.domain.run import CreateRunRequest
from linkbound.ingest.v1.ingest_service_pb2 import BatchAck
from linkbound.ingest.v1.run_service_pb2 import SealRunRequest
from linkbound.ingest.v1.run_service_pb2_grpc import RunServiceStub
from tests.integration.sample_stream.calls import STORE_FILE, Stream, batch_message, stored_sample_count
from tests.integration.sample_stream.slow_store import SlowStore, stream_server
from tests.integration.servers import PATIENCE_SECONDS, Running, ingest_server

pytestmark = pytest.mark.storage


async def test_the_end_of_a_run_ends_its_streams(channel: grpc.aio.Channel, server: Running) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(batch_message(1))
    await stream.ack_of(1)
    runs: Any = RunServiceStub(channel)
    await runs.SealRun(SealRunRequest(run="r"))
    await stream.send(batch_message(2))
    error = await stream.error()
    assert isinstance(error, FailedPreconditionError)
    assert error.reason == "RUN_SEALED"


async def test_shutdown_stores_acknowledges_and_then_ends_the_stream(tmp_path: Path) -> None:
    with Ingest.open(StoreSettings(path=tmp_path / STORE_FILE)) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))
    async with ingest_server(tmp_path) as server, server.channel() as channel:
        idle = Stream(channel)
        await idle.opened(writer_id="idle")
        silent = Stream(channel)
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1), batch_message(2))
        await stream.ack_of(2)
        server.stop.set()
        last = await stream.read()
        assert last == BatchAck(committed_sequence_number=2)
        error = await stream.error()
        assert isinstance(error, UnavailableError)
        assert error.reason == "SHUTTING_DOWN"
        assert (await idle.error()).reason == "SHUTTING_DOWN"
        assert isinstance(await silent.error(), UnavailableError)
        # Nothing keeps the server: it stops long before its grace is over.
        async with asyncio.timeout(PATIENCE_SECONDS):
            await server.task
    assert stored_sample_count(tmp_path) == 6


async def test_a_full_disk_ends_the_stream_after_what_is_durable() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1), batch_message(2))
        await store.holds(2)
        store.commit(1)
        store.fail(2, ResourceExhaustedError("full", reason="DISK_FULL"))
        assert await stream.read() == BatchAck(committed_sequence_number=1)
        error = await stream.error()
    assert isinstance(error, ResourceExhaustedError)
    assert (error.reason, error.retry_delay_seconds) == ("DISK_FULL", None)


async def test_a_fault_of_the_store_is_internal_and_says_nothing() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1))
        await store.holds(1)
        store.submitted[0][1].set_exception(RuntimeError("secret"))
        with capture_logs() as logs:
            error = await stream.error()
    assert error.code == "INTERNAL"
    assert "secret" not in error.message
    assert error.request_id in error.message
    assert [line["event"] for line in logs] == ["rpc_failed", "rpc_finished"]


async def test_an_old_stream_is_ended_and_can_be_opened_again() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming(lifetime_seconds=0.01)) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        error = await stream.error()
    assert isinstance(error, UnavailableError)
    assert error.reason == "STREAM_RECYCLED"


async def test_a_client_that_goes_away_leaves_the_session_closed() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1))
        await store.holds(1)
        stream.call.cancel()
        assert await asyncio.to_thread(store.closed.wait, PATIENCE_SECONDS)
        # What was taken is still stored.
        assert not store.submitted[0][1].cancelled()


def test_lifetimes_are_spread() -> None:
    drawn = {StreamTiming.drawn().lifetime_seconds for _ in range(50)}
    assert len(drawn) > 1
    assert all(0.9 * LIFETIME_SECONDS <= seconds <= 1.1 * LIFETIME_SECONDS for seconds in drawn)
