"""A bound for tests of code that waits: one that never returns fails."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

LIMIT_SECONDS = 60.0
"""Far more than any test takes; it measures nothing."""


@contextmanager
def bounded(limit_seconds: float = LIMIT_SECONDS) -> Iterator[None]:
    """Raise TimeoutError in the main thread if the block, or an event loop in it, still runs after `limit_seconds`."""

    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"still waiting after {limit_seconds:g} s")

    earlier = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, limit_seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
