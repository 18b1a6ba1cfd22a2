"""Threads for what would keep the event loop: calls that block on the store, and the conversion of large messages."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import ParamSpec, TypeVar

from attrs import field, frozen

COMMAND_THREAD_COUNT = 16
"""Changes that may wait for the store at the same time; the store itself works on one at a time."""

QUERY_END_SECONDS = 5.0
"""How long the end of the service waits for queries that were told to end."""

READ_THREAD_COUNT = 8
"""Reads at the same time. They have threads of their own, so that slow ones do not keep changes waiting."""

CONVERSION_THREAD_COUNT = 2
"""Messages that are converted at the same time. One holds the interpreter at any moment, so more do not help."""

INLINE_RECORDS_BYTES = 4096
"""Size up to which a message of records is converted and queued on the event loop. Measured: that takes about 2 ms."""

INLINE_BATCH_BYTES = 64 * 1024
"""The same of a batch of samples, whose columns are converted as a whole. Measured: under 1 ms."""

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Runs blocking calls. One that its caller gave up goes on, so the store may be closed only after `close`."""

    def __init__(self, thread_count: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(thread_count, thread_name_prefix=f"linkbound-{name}")

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `function` in a thread; its log lines carry the request id of the caller."""
        call = partial(contextvars.copy_context().run, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def close(self) -> None:
        """Wait until no call runs any more."""
        await asyncio.to_thread(self._executor.shutdown)


class QueryThreads:
    """Runs calls of SQL queries, each on a thread of its own that keeps neither service nor process from ending.

    DuckDB may plan a query for hours and hears no interrupt meanwhile.
    """

    def __init__(self) -> None:
        self._running_count = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `function` in a thread; it goes on where nobody waits for it any more."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        call = partial(contextvars.copy_context().run, function, *args, **kwargs)

        def work() -> None:
            try:
                settle = partial(_set_result, future, call())
            except BaseException as error:
                settle = partial(_set_exception, future, error)
            # The loop is gone where the process ends without waiting for this.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle)

        self._running_count += 1
        self._idle.clear()
        future.add_done_callback(self._note_end)
        threading.Thread(target=work, name="linkbound-query", daemon=True).start()
        return await asyncio.shield(future)

    def _note_end(self, _future: asyncio.Future[T]) -> None:
        self._running_count -= 1
        if self._running_count == 0:
            self._idle.set()

    async def close(self) -> None:
        """Wait until no call runs any more, but not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(QUERY_END_SECONDS):
                await self._idle.wait()


def _set_result(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _set_exception(future: asyncio.Future[T], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
        # Nobody may be waiting any more; that is no reason to say so.
        future.exception()


@frozen
class StoreThreads:
    """The threads of one server, by what they do."""

    commands: Threads = field(factory=partial(Threads, COMMAND_THREAD_COUNT, "command"))
    reads: Threads = field(factory=partial(Threads, READ_THREAD_COUNT, "read"))
    queries: QueryThreads = field(factory=QueryThreads)
    conversions: Threads = field(factory=partial(Threads, CONVERSION_THREAD_COUNT, "conversion"))

    async def convert_records(self, message_bytes: int, function: Callable[[], T]) -> T:
        """The result of `function`, which works on a message of records; in a thread where that takes long."""
        return function() if message_bytes <= INLINE_RECORDS_BYTES else await self.conversions.run(function)

    async def convert_batch(self, message_bytes: int, function: Callable[[], T]) -> T:
        """The result of `function`, which works on a batch of samples; in a thread where that takes long."""
        return function() if message_bytes <= INLINE_BATCH_BYTES else await self.conversions.run(function)

    async def close(self) -> None:
        """Wait until no call runs any more."""
        for threads in (self.commands, self.reads, self.queries, self.conversions):
            await threads.close()
