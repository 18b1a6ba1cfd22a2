"""Real servers for tests: each on an event loop in a thread of its own, on a free port of this machine."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve

from estimator_service.server import serve as serve_estimator
from estimator_service.service import default_estimator
from ingest_service.server import serve as serve_ingest
from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from linkbound.client.local.blocking import STORE_FILE_NAME
from serving.lifecycle import OnStarted
from serving.settings import ServerSettings
from tests.new_store import laid

STARTUP_SECONDS = 30.0
Serve = Callable[[OnStarted, asyncio.Event], Awaitable[None]]


class ServerThread:
    """Runs `serve` until `stop`; `port` is known once it answers."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        if not self._started.wait(STARTUP_SECONDS):
            raise TimeoutError("the server did not start")
        if self._failure is not None:
            raise self._failure

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Ask the server to stop and wait until it has."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve(self._on_started, self._stop))
        except BaseException as failure:
            self._failure = failure
        finally:
            self._loop.close()
            self._started.set()

    def _on_started(self, port: int) -> None:
        self.port = port
        self._started.set()


@contextmanager
def running(serve: Serve) -> Iterator[ServerThread]:
    """A server for the length of a block."""
    thread = ServerThread(serve)
    try:
        yield thread
    finally:
        thread.stop()


def estimator_server(settings: ServerSettings | None = None, *, catalog_directory: Path | None = None) -> Serve:
    """The estimator with the shipped catalogue, and with a directory that takes imports where one is given."""
    chosen = settings or ServerSettings()
    find_directory = None if catalog_directory is None else lambda: catalog_directory

    async def serve(on_started: OnStarted, stop: asyncio.Event) -> None:
        await serve_estimator(chosen, default_estimator(find_directory), on_started=on_started, stop=stop)

    return serve


def ingest_server(data_directory: Path, settings: ServerSettings | None = None, *, port: int = 0) -> Serve:
    """The ingest service over the store in `data_directory`, on `port` or a free one."""
    chosen = evolve(settings or ServerSettings(grace_seconds=1), port=port)

    async def serve(on_started: OnStarted, stop: asyncio.Event) -> None:
        with Ingest.open(StoreSettings(path=laid(data_directory / STORE_FILE_NAME))) as ingest:
            await serve_ingest(chosen, ingest, on_started=on_started, stop=stop)

    return serve
