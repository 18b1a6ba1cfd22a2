"""How tasks of one event loop tell each other that something changed."""

from __future__ import annotations

import asyncio


class Changes:
    """Wakes every waiter at each announcement; each looks again at what it waits for.

    Who waits takes `following` first and looks then, so that no announcement falls between the two.
    """

    def __init__(self) -> None:
        self._following = asyncio.Event()

    @property
    def following(self) -> asyncio.Event:
        """Set at the next announcement."""
        return self._following

    def announce(self) -> None:
        """Something changed."""
        self._following.set()
        self._following = asyncio.Event()
