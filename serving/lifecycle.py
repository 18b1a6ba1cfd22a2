"""The life of a server: listen, serve, drain, stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

import structlog

from serving.builder import BuiltServer
from serving.logging import SERVER_STARTED, SERVER_STOPPED, SERVER_STOPPING

OnStarted = Callable[[int], None]
"""Told the port once the server answers and its health says SERVING."""


async def run_until_stopped(
    built: BuiltServer, *, stop: asyncio.Event, grace_seconds: float, on_started: OnStarted
) -> None:
    """Serve until `stop` is set, then end what runs: health first, then the streams, then the calls."""
    await built.server.start()
    log = structlog.get_logger("serving").bind(port=built.port)
    try:
        await built.health.serving()
        log.info(SERVER_STARTED)
        on_started(built.port)
        await stop.wait()
    finally:
        log.info(SERVER_STOPPING)
        await shut_down(built, grace_seconds)
        log.info(SERVER_STOPPED)


async def shut_down(built: BuiltServer, grace_seconds: float) -> None:
    """Stop a server: no new work, streams end by themselves, calls have `grace_seconds` to finish."""
    await built.health.shut_down()
    built.draining.set()
    await built.server.stop(grace_seconds)


@contextmanager
def stop_on_signals(signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGINT)) -> Iterator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set. A second signal ends the process at once, whatever it waits for.

    Needs a running loop in the main thread.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    previous = {number: signal.getsignal(number) for number in signals}

    def stop_once() -> None:
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in signals:
        loop.add_signal_handler(number, stop_once)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            loop.remove_signal_handler(number)
            # None: someone installed a handler without Python, which cannot be put back from here.
            signal.signal(number, handler or signal.SIG_DFL)


async def run_until_signalled(*servers: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run `servers`, each given the event that stops it, until a signal comes or one of them fails."""
    with stop_on_signals() as stop:
        await run_together(stop, *servers)


async def run_together(stop: asyncio.Event, *servers: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run `servers` until `stop` is set. If one fails, the others are stopped as well and its error is raised."""
    tasks = [asyncio.ensure_future(_run_one(server, stop)) for server in servers]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def _run_one(server: Callable[[asyncio.Event], Awaitable[None]], stop: asyncio.Event) -> None:
    try:
        await server(stop)
    finally:
        stop.set()
