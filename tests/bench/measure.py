"""Measuring: rounds that alternate between what is compared, and one line for each result."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from attrs import frozen

ROUND_COUNT = 9


@frozen(kw_only=True)
class Result:
    """One line: what was measured, the value with its unit, and the ratio that says whether it is good."""

    name: str
    value: str
    ratio: float
    ratio_of: str
    goal: str = ""


def alternating(*works: Callable[[], float], round_count: int = ROUND_COUNT) -> list[list[float]]:
    """What each of `works` measures in each round; all of them run in every round, so that they share its weather."""
    rounds = [[work() for work in works] for _ in range(round_count)]
    return [list(column) for column in zip(*rounds, strict=True)]


def seconds_of(work: Callable[[], object]) -> float:
    """Time that `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median_ratio(first: Sequence[float], second: Sequence[float]) -> float:
    """The median over the rounds of what `first` is of `second`."""
    return statistics.median(a / b for a, b in zip(first, second, strict=True))
