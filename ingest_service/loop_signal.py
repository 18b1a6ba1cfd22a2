"""What another thread tells a coroutine that waits."""

from __future__ import annotations

import asyncio


class LoopSignal:
    """An event of the running event loop that any thread may set."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def set(self) -> None:
        """Wake whoever waits. Safe from any thread."""
        self._loop.call_soon_threadsafe(self._event.set)

    def clear(self) -> None:
        """Forget what was told so far."""
        self._event.clear()

    async def is_set_within(self, limit_seconds: float) -> bool:
        """Whether something was told, or is within the time."""
        try:
            async with asyncio.timeout(limit_seconds):
                return await self._event.wait()
        except TimeoutError:
            return False
