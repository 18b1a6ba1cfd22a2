"""How long to wait before something is tried again."""

from __future__ import annotations

import math

SHORTEST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
_LONGEST_DOUBLING_COUNT = 10
"""The pause has long been the longest by then; a service may be away for days, and floats end at 1024 doublings."""


def pause_seconds(failure_count: int) -> float:
    """The pause after so many failures in a row, at least one: each is twice the one before, up to the longest."""
    doubled = math.ldexp(SHORTEST_PAUSE_SECONDS, min(failure_count - 1, _LONGEST_DOUBLING_COUNT))
    return min(doubled, LONGEST_PAUSE_SECONDS)
