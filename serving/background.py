"""A server in a thread of this process: for the demo, for notebooks, for tests with blocking clients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from types import TracebackType

from serving.lifecycle import OnStarted

Serve = Callable[[OnStarted, asyncio.Event], Awaitable[None]]
"""Serves until the event is set, and tells the port once it does."""


class BackgroundServer:
    """Runs `serve` on an event loop of its own while the `with` block lasts; `port` is where it listens.

    Entering raises what `serve` raises before it has started; leaving stops it and raises what it raised later.
    """

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._port: Future[int] = Future()
        self._result: Future[None] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="linkbound-server", daemon=True)

    @property
    def port(self) -> int:
        """The port of the running server."""
        return self._port.result()

    def stop(self) -> None:
        """Stop the server and wait until it has; doing so again changes nothing."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def __enter__(self) -> BackgroundServer:
        self._thread.start()
        try:
            self._port.result()
        except BaseException:
            self._thread.join()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
        if error is None:
            self._result.result()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            if not self._port.done():
                self._port.set_exception(error)
            self._result.set_exception(error)
        else:
            self._result.set_result(None)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        await self._serve(self._port.set_result, self._stop)
