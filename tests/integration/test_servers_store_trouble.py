"""A store that breaks, is slow or cannot be asked, and what becomes of the service over it."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ingest_service.server import serve as serve_ingest
from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from ingest_service.transport.store_threads import READ_THREAD_COUNT
from linkbound.domain.errors import CancelledError, NotFoundError, Resource, UnavailableError
from linkbound.ingest.v1.run_service_pb2 import ListRunsRequest, SealRunRequest
from linkbound.ingest.v1.run_service_pb2_grpc import RunServiceStub
from serving.settings import ServerSettings
from tests.integration.probes import NOT_SERVING, SERVING, error_of
from tests.integration.servers import PATIENCE_SECONDS, QUIET_READING, running


@pytest.mark.storage
async def test_a_store_that_breaks_ends_the_service(tmp_path: Path) -> None:
    with Ingest.open(StoreSettings(path=tmp_path / "linkbound.duckdb")) as ingest:
        with pytest.raises(UnavailableError) as caught:
            await serve_until_it_breaks(ingest)
        assert caught.value.reason == "STORE_BROKEN"


async def serve_until_it_breaks(ingest: Ingest) -> None:
    serve = partial(serve_ingest, ServerSettings(), ingest)
    async with (
        running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server,
        server.channel() as channel,
    ):
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(service="linkbound.ingest.v1.IngestService"))
        assert (await watch.read()).status == SERVING
        # A closed store stores no more than a broken one does.
        ingest.close()
        runs: Any = RunServiceStub(channel)
        assert isinstance(await error_of(runs.ListRuns(ListRunsRequest())), UnavailableError)
        assert (await watch.read()).status == NOT_SERVING
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.wait({server.task})


class StuckStore:
    """A store whose reads take until the test ends them."""

    healthy = True
    has_room = True

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()

    def list_runs(self, _request: Any) -> Any:
        self.entered.set()
        assert self.leave.wait(PATIENCE_SECONDS)
        raise NotFoundError.of(Resource("run", "r"))


async def test_the_service_ends_after_the_last_call_left_the_store() -> None:
    store: Any = StuckStore()
    serve = partial(serve_ingest, ServerSettings(grace_seconds=0.0), store, reading=QUIET_READING)
    async with (
        running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server,
        server.channel() as channel,
    ):
        runs: Any = RunServiceStub(channel)
        call = asyncio.ensure_future(error_of(runs.ListRuns(ListRunsRequest())))
        assert await asyncio.to_thread(store.entered.wait, PATIENCE_SECONDS)
        server.stop.set()
        # Without grace the caller is sent away, while the thread is still in the store.
        assert isinstance(await call, UnavailableError | CancelledError)
        assert not server.task.done()
        store.leave.set()


class UnknownCondition:
    """A store that cannot say whether it still stores."""

    def __init__(self) -> None:
        self.asked = False
        self.has_room = True

    @property
    def healthy(self) -> bool:
        if self.asked:
            raise RuntimeError("no answer")
        self.asked = True
        return True


async def test_a_store_that_cannot_be_asked_ends_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest_service.server.HEALTH_INTERVAL_SECONDS", 0.01)
    store: Any = UnknownCondition()
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(PATIENCE_SECONDS):
        stop = asyncio.Event()
        with pytest.raises(RuntimeError, match="no answer"):
            await serve_ingest(ServerSettings(), store, on_started=started.set_result, stop=stop, reading=QUIET_READING)


class SlowReads:
    """A store whose reads take until the test ends them, while changes are made at once."""

    healthy = True
    has_room = True

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.leave = threading.Event()

    def list_runs(self, _request: Any) -> Any:
        self.entered.release()
        assert self.leave.wait(PATIENCE_SECONDS)
        raise NotFoundError.of(Resource("run", "r"))

    def seal_run(self, _request: Any) -> Any:
        raise NotFoundError.of(Resource("run", "sealed"))


async def test_slow_reads_do_not_keep_changes_waiting() -> None:
    store: Any = SlowReads()
    serve = partial(serve_ingest, ServerSettings(), store, reading=QUIET_READING)
    async with (
        running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server,
        server.channel() as channel,
    ):
        runs: Any = RunServiceStub(channel)
        reads = [
            asyncio.ensure_future(error_of(runs.ListRuns(ListRunsRequest()))) for _ in range(2 * READ_THREAD_COUNT)
        ]
        try:
            for _ in range(READ_THREAD_COUNT):
                assert await asyncio.to_thread(store.entered.acquire, timeout=PATIENCE_SECONDS)
            # Every thread for reads is taken, and as many reads wait for one.
            error = await error_of(runs.SealRun(SealRunRequest(run="sealed"), timeout=PATIENCE_SECONDS))
            assert isinstance(error, NotFoundError)
        finally:
            store.leave.set()
        await asyncio.gather(*reads)
