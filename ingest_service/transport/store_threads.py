"""Threads for calls that block on the store, so that the event loop does not."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

THREAD_COUNT = 16
"""Calls that may wait for the store at the same time; the store itself works on one change at a time."""

P = ParamSpec("P")
T = TypeVar("T")


class StoreThreads:
    """Runs blocking calls. One that its caller gave up goes on, so the store may be closed only after `close`."""

    def __init__(self, thread_count: int = THREAD_COUNT) -> None:
        self._executor = ThreadPoolExecutor(thread_count, thread_name_prefix="linkbound-store")

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `function` in a thread; its log lines carry the request id of the caller."""
        call = partial(contextvars.copy_context().run, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    async def close(self) -> None:
        """Wait until no call runs any more."""
        await asyncio.to_thread(self._executor.shutdown)
