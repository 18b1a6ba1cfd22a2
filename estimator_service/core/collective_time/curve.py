"""A monotone curve of time over payload through measured points."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from attrs import frozen

from estimator_service.core.elementwise import larger, smaller

STRAIGHT_GAP_RATIO = 8.0
"""Up to this ratio of neighbouring sizes a straight line joins them. EMPIRICAL: `docs/accuracy.md`, Collective time."""
BENT_GAP_RATIO = 512.0
"""From this ratio on the exponent is at its lowest. EMPIRICAL, as above."""
LOWEST_EXPONENT = 0.7
"""Exponent of a wide gap: between a small and a large message, middle ones do not reach the full rate. EMPIRICAL."""


def monotone_seconds(seconds: Sequence[float]) -> tuple[float, ...]:
    """The nearest times that never fall, by least squares of logarithms: those that fall share their geometric mean.

    (`docs/formulas.md`, Collective time)
    """
    means: list[float] = []
    counts: list[int] = []
    for value in seconds:
        mean, count = math.log(value), 1
        while means and means[-1] > mean:
            count_before = counts.pop()
            mean = (mean * count + means.pop() * count_before) / (count + count_before)
            count += count_before
        means.append(mean)
        counts.append(count)
    return tuple(math.exp(mean) for mean, count in zip(means, counts, strict=True) for _ in range(count))


def gap_exponent(gap_ratio: float) -> float:
    """Exponent p between two sizes: 1 up to a ratio of 8, 0.7 from 512 on, straight in log2 between.

    (`docs/formulas.md`, Collective time)
    """
    share = math.log(gap_ratio / STRAIGHT_GAP_RATIO) / math.log(BENT_GAP_RATIO / STRAIGHT_GAP_RATIO)
    return 1 - (1 - LOWEST_EXPONENT) * smaller(larger(share, 0.0), 1.0)


@frozen
class SecondsBounds:
    """Between which times a collective lies whose time and whose bytes per second never fall with its size."""

    lower: float
    upper: float


@frozen
class TimeCurve:
    """Time over payload: knots in rising order of `message_bytes`, with `seconds` that never fall.

    Between two knots t^p = a + b P^p (`docs/formulas.md`, Collective time).
    """

    message_bytes: tuple[float, ...]
    seconds: tuple[float, ...]

    def segment_of(self, message_bytes: float) -> int:
        """Index of the knot at which the segment of `message_bytes` starts; beyond the ends, the segment there."""
        return min(max(bisect_right(self.message_bytes, message_bytes) - 1, 0), len(self.message_bytes) - 2)

    def octaves_outside(self, message_bytes: float) -> float:
        """How often `message_bytes` halves or doubles the nearest knot; 0 within the curve."""
        first, last = self.message_bytes[0], self.message_bytes[-1]
        return math.log2(larger(larger(first / message_bytes, message_bytes / last), 1.0))

    def seconds_at(self, message_bytes: float) -> float:
        """Time of `message_bytes`, never falling with them.

        Beyond the ends the last segment goes on, and neither the time nor the bytes per second fall with the size.
        """
        index = self.segment_of(message_bytes)
        first_bytes, last_bytes = self.message_bytes[index], self.message_bytes[index + 1]
        first, last = self.seconds[index], self.seconds[index + 1]
        exponent = gap_exponent(last_bytes / first_bytes)
        share = (message_bytes**exponent - first_bytes**exponent) / (last_bytes**exponent - first_bytes**exponent)
        power = first**exponent + (last**exponent - first**exponent) * share
        value = math.pow(larger(power, 0.0), 1 / exponent)
        if message_bytes < first_bytes:
            return smaller(larger(value, first * message_bytes / first_bytes), first)
        if message_bytes > last_bytes:
            return larger(smaller(value, last * message_bytes / last_bytes), last)
        return smaller(larger(value, first), last)

    def bounds_at(self, message_bytes: float) -> SecondsBounds:
        """What the knots leave open: time and bytes per second do not fall with the size.

        Beyond the ends the curve is no steeper below, and no flatter above, than its last segment.
        """
        index = self.segment_of(message_bytes)
        first_bytes, last_bytes = self.message_bytes[index], self.message_bytes[index + 1]
        first, last = self.seconds[index], self.seconds[index + 1]
        steepness = smaller(math.log(last / first) / math.log(last_bytes / first_bytes), 1.0)
        if message_bytes < first_bytes:
            return SecondsBounds(first * (message_bytes / first_bytes) ** steepness, first)
        if message_bytes > last_bytes:
            ratio = message_bytes / last_bytes
            return SecondsBounds(last * ratio**steepness, last * ratio)
        return SecondsBounds(
            larger(first, last * message_bytes / last_bytes), smaller(last, first * message_bytes / first_bytes)
        )


def curve_through(message_bytes: Sequence[float], seconds: Sequence[float]) -> TimeCurve:
    """The curve through measured times at rising sizes, made monotone (`docs/formulas.md`, Collective time)."""
    return TimeCurve(tuple(message_bytes), monotone_seconds(seconds))
