"""Layer indexes as ranges: `0-2,5` for layers 0, 1, 2 and 5."""

from __future__ import annotations

import re
from collections.abc import Sequence

_RANGE = r"[0-9]{1,6}(-[0-9]{1,6})?"
_RANGES = re.compile(f"{_RANGE}(,{_RANGE})*")


def ranges_of(indexes: Sequence[int]) -> str:
    """The rising `indexes` as ranges."""
    parts: list[list[int]] = []
    for index in indexes:
        if parts and index == parts[-1][1] + 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in parts)


def is_ranges(text: str, limit: int) -> bool:
    """Whether `text` is ranges of indexes below `limit`, each with its ends in order."""
    if not _RANGES.fullmatch(text):
        return False
    return all(first <= last < limit for first, last in _ends(text))


def indexes_of(ranges: str) -> tuple[int, ...]:
    """The indexes in `ranges`, which `is_ranges`."""
    return tuple(index for first, last in _ends(ranges) for index in range(first, last + 1))


def _ends(ranges: str) -> list[tuple[int, int]]:
    ends = []
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        ends.append((int(first), int(last or first)))
    return ends
