"""Work of the estimator beside an event loop: in a thread, for as long as somebody waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from estimator_service.core.wanted import wanted_until

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


async def in_thread(work: Callable[P, ResultT], *args: P.args, **keywords: P.kwargs) -> ResultT:
    """What `work` returns.

    A thread cannot be cancelled. Where the caller is, long work learns that it is not wanted any more and ends soon: it
    holds neither the thread nor the end of the process.
    """
    is_left = threading.Event()

    def watched() -> ResultT:
        with wanted_until(is_left.is_set):
            return work(*args, **keywords)

    try:
        return await asyncio.to_thread(watched)
    finally:
        is_left.set()
