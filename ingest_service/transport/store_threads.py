"""Threads for what would keep the event loop: calls that block on the store, and the conversion of large messages."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from attrs import field, frozen

COMMAND_THREAD_COUNT = 16
"""Changes that may wait for the store at the same time; the store itself works on one at a time."""

READ_THREAD_COUNT = 8
"""Reads at the same time. They have threads of their own, so that slow ones do not keep changes waiting."""

CONVERSION_THREAD_COUNT = 2
"""Messages that are converted at the same time. One holds the interpreter at any moment, so more do not help."""

INLINE_MESSAGE_BYTES = 4096
"""Size up to which a message is converted and queued on the event loop. Measured: that takes about 2 ms then."""

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


@frozen
class StoreThreads:
    """The threads of one server, by what they do."""

    commands: Threads = field(factory=partial(Threads, COMMAND_THREAD_COUNT, "command"))
    reads: Threads = field(factory=partial(Threads, READ_THREAD_COUNT, "read"))
    conversions: Threads = field(factory=partial(Threads, CONVERSION_THREAD_COUNT, "conversion"))

    async def convert(self, message_bytes: int, function: Callable[[], T]) -> T:
        """The result of `function`, which works on a message of that size; in a thread where that takes long."""
        if message_bytes <= INLINE_MESSAGE_BYTES:
            return function()
        return await self.conversions.run(function)

    async def close(self) -> None:
        """Wait until no call runs any more."""
        for threads in (self.commands, self.reads, self.conversions):
            await threads.close()
