"""Servers on free ports of this machine, within the event loop of the test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from estimator_service.server import serve as serve_estimator
from estimator_service.service import default_estimator
from ingest_service.server import serve as serve_ingest
from ingest_service.service import Ingest
from ingest_service.settings import AdmissionSettings, ReadingSettings, StoreSettings
from serving.builder import ServiceBinding, build_server
from serving.lifecycle import OnStarted, run_until_stopped
from serving.settings import ServerSettings
from tests.new_store import laid

# A test never waits this long; it only keeps a broken one from waiting for ever.
PATIENCE_SECONDS = 60.0

QUIET_READING = ReadingSettings(snapshot_interval_seconds=0.0)
"""No snapshot is published, and with it no checkpoint, but where a test asks for one."""


class Running:
    """A server that runs; `stop` is set to stop it, `task` ends when it has."""

    def __init__(self, port: int, stop: asyncio.Event, task: asyncio.Future[None]) -> None:
        self.port = port
        self.stop = stop
        self.task = task

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def channel(self) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(self.target, options=[("grpc.enable_http_proxy", 0)])


Serve = Callable[[OnStarted, asyncio.Event], Awaitable[None]]


@asynccontextmanager
async def running(serve: Serve) -> AsyncIterator[Running]:
    """Run `serve` while the block lasts; its errors are raised."""
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    stop = asyncio.Event()
    task = asyncio.ensure_future(serve(started.set_result, stop))
    either: set[asyncio.Future[Any]] = {task, started}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    try:
        yield Running(started.result(), stop, task)
    finally:
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task


@asynccontextmanager
async def estimator_server(settings: ServerSettings | None = None) -> AsyncIterator[Running]:
    serve = partial(serve_estimator, settings or ServerSettings(), default_estimator())
    async with running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server:
        yield server


@asynccontextmanager
async def ingest_server(
    folder: Path,
    settings: ServerSettings | None = None,
    admission: AdmissionSettings | None = None,
    reading: ReadingSettings = QUIET_READING,
    **store: Any,
) -> AsyncIterator[Running]:
    """The ingest service over the store in `folder`, which is checkpointed when it is closed and not in between."""
    quiet: dict[str, Any] = {"checkpoint_idle_seconds": 86_400.0, "checkpoint_age_seconds": 86_400.0}
    with Ingest.open(StoreSettings(path=laid(folder / "linkbound.duckdb"), **(quiet | store))) as ingest:
        serve = partial(
            serve_ingest,
            settings or ServerSettings(),
            ingest,
            admission=admission or AdmissionSettings(),
            reading=reading,
        )
        async with running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server:
            yield server


@asynccontextmanager
async def service_server(*bindings: ServiceBinding, settings: ServerSettings | None = None) -> AsyncIterator[Running]:
    """A server of other services than ours, with everything that is around each call."""
    chosen = settings or ServerSettings()

    async def serve(on_started: OnStarted, stop: asyncio.Event) -> None:
        built = await build_server(chosen, lambda _draining: bindings, error_domain="test.linkbound")
        await run_until_stopped(built, stop=stop, grace_seconds=chosen.grace_seconds, on_started=on_started)

    async with running(serve) as server:
        yield server
