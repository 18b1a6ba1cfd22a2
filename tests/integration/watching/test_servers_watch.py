"""Watches over gRPC: they begin again by themselves, say how far they are, and end with the service."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import grpc
import pytest

from ingest_service.service import Ingest, StoreSettings
from ingest_service.settings import AdmissionSettings
from ingest_service.transport.run_watching import run_updates
from ingest_service.transport.store_threads import StoreThreads
from linkbound import AsyncIngestClient
from linkbound.domain.errors import OutOfRangeError, ResourceExhaustedError, UnavailableError
from linkbound.domain.run_watch import RunChange, RunUpdate, WatchRunsRequest
from linkbound.ingest.v1 import run_pb2, run_service_pb2, run_service_pb2_grpc
from serving.settings import ServerSettings
from tests.integration.servers import Running, ingest_server
from tests.new_store import laid

pytestmark = pytest.mark.storage


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with ingest_server(tmp_path, admission=AdmissionSettings(max_watches=2)) as server:
        yield server


async def take(updates: AsyncIterator[RunUpdate], count: int) -> list[tuple[int, str, str]]:
    return [
        (update.revision, update.change.name, update.run_id) for update in [await anext(updates) for _ in range(count)]
    ]


async def left(updates: AsyncIterator[RunUpdate]) -> None:
    """The caller wants no more."""
    assert isinstance(updates, AsyncGenerator)
    await updates.aclose()


async def exhausted(updates: AsyncIterator[RunUpdate]) -> None:
    async for _ in updates:
        pass


async def test_changes_are_told_as_they_happen(server: Running) -> None:
    async with AsyncIngestClient(server.target) as client:
        await client.create_run("a")
        updates = client.watch_runs()
        assert await take(updates, 2) == [(0, "CREATED", "a"), (1, "UNSPECIFIED", "")]
        waiting = asyncio.ensure_future(take(updates, 1))
        await client.create_run("b")
        assert await waiting == [(2, "CREATED", "b")]
        await client.delete_run("a")
        assert await take(updates, 1) == [(3, "DELETED", "a")]


async def test_the_message_of_a_deleted_run_has_its_name_alone(server: Running) -> None:
    async with AsyncIngestClient(server.target) as client, server.channel() as channel:
        await client.create_run("a")
        await client.delete_run("a")
        stub = run_service_pb2_grpc.RunServiceStub(channel)
        message = await stub.WatchRuns(run_service_pb2.WatchRunsRequest(start_revision=2, run="runs/a")).read()
    assert message == run_service_pb2.WatchRunsResponse(
        revision=2, run=run_pb2.Run(name="runs/a"), change=run_service_pb2.RUN_CHANGE_DELETED
    )


async def test_a_watch_outlives_its_service(tmp_path: Path) -> None:
    async with ingest_server(tmp_path) as first:
        client = AsyncIngestClient(first.target)
        await client.create_run("a")
        updates = client.watch_runs()
        assert await take(updates, 2) == [(0, "CREATED", "a"), (1, "UNSPECIFIED", "")]
        waiting = asyncio.ensure_future(take(updates, 1))
        await asyncio.sleep(0.05)
    async with ingest_server(tmp_path, ServerSettings(port=first.port)):
        await client.create_run("b")
        assert await waiting == [(2, "CREATED", "b")]
        await client.close()


async def test_a_watch_ends_with_the_service_and_says_where_to_go_on(tmp_path: Path) -> None:
    async with ingest_server(tmp_path) as server, server.channel() as channel:
        stub = run_service_pb2_grpc.RunServiceStub(channel)
        call = stub.WatchRuns(run_service_pb2.WatchRunsRequest())
        assert await call.read() == run_service_pb2.WatchRunsResponse(revision=0)
        server.stop.set()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "ask again" in str(caught.value.details())


async def test_a_compacted_revision_is_raised_and_not_tried_again(server: Running) -> None:
    async with AsyncIngestClient(server.target) as client:
        with pytest.raises(OutOfRangeError) as caught:
            await anext(client.watch_runs(start_revision=7))
    assert caught.value.reason == "REVISION_COMPACTED"
    assert caught.value.metadata["oldestRevision"] == "1"


async def test_no_more_watches_are_open_than_may(server: Running) -> None:
    async with AsyncIngestClient(server.target) as client:
        watches = [client.watch_runs() for _ in range(2)]
        for watch in watches:
            await anext(watch)
        with pytest.raises(ResourceExhaustedError) as caught:
            await anext(client.watch_runs())
        assert caught.value.reason == "TOO_MANY_WATCHES"
        assert caught.value.retry_delay_seconds is not None
        for watch in watches:
            await left(watch)


async def test_quiet_watches_are_told_how_far_they_are(tmp_path: Path) -> None:
    threads, draining = StoreThreads(), asyncio.Event()
    with Ingest.open(StoreSettings(path=laid(tmp_path / "linkbound.duckdb"))) as ingest:
        updates = run_updates(ingest, threads, draining, WatchRunsRequest(), progress_interval_seconds=0.01)
        assert [await anext(updates) for _ in range(3)] == [RunUpdate(revision=0)] * 3
        draining.set()
        with pytest.raises(UnavailableError) as caught:
            await exhausted(updates)
        assert caught.value.reason == "SHUTTING_DOWN"
        await threads.close()


async def test_a_watcher_who_leaves_is_forgotten(server: Running) -> None:
    async with AsyncIngestClient(server.target) as client:
        for _ in range(10):
            updates = client.watch_runs()
            assert (await anext(updates)).change is RunChange.UNSPECIFIED
            await left(updates)
            # The service hears of it within moments.
            await asyncio.sleep(0.05)
