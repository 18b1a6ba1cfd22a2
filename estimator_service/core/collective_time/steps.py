"""Sizes between which the lower end of a calibrated time is straight."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from attrs import frozen

from estimator_service.core.elementwise import larger

STEPS_PER_OCTAVE = 8
"""Steps of the sizes, at most 9 % apart, so that what is straight between two of them is near what bends."""


@frozen
class SizeSteps:
    """Numbered sizes in rising order: those of `knots`, and in equal ratios between them and beyond both ends.

    The first knot has the number 0, smaller sizes negative ones (`docs/formulas.md`, Collective time).
    """

    knots: tuple[float, ...]
    numbers_of_knots: tuple[int, ...]

    def knot_of(self, number: int) -> int:
        """Index of the last knot at or below the step; -1 below the first one."""
        return bisect_right(self.numbers_of_knots, number) - 1

    def size(self, number: int) -> float:
        """Bytes at a step; a knot to the last bit."""
        index = self.knot_of(number)
        if index < 0:
            return self.knots[0] * math.pow(2.0, number / STEPS_PER_OCTAVE)
        first, steps = self.knots[index], number - self.numbers_of_knots[index]
        if steps == 0:
            return first
        if index == len(self.knots) - 1:
            return first * math.pow(2.0, steps / STEPS_PER_OCTAVE)
        steps_of_gap = self.numbers_of_knots[index + 1] - self.numbers_of_knots[index]
        return first * math.pow(self.knots[index + 1] / first, steps / steps_of_gap)

    def number_below(self, message_bytes: float) -> int:
        """The last step at or below `message_bytes`, above 0."""
        index = max(bisect_right(self.knots, message_bytes) - 1, 0)
        octaves = math.log2(message_bytes / self.knots[index])
        number = self.numbers_of_knots[index] + math.floor(octaves * self._steps_per_octave_after(index, octaves))
        if self.size(number) > message_bytes:
            return number - 1
        return number + 1 if self.size(number + 1) <= message_bytes else number

    def _steps_per_octave_after(self, index: int, octaves: float) -> float:
        if octaves < 0 or index == len(self.knots) - 1:
            return STEPS_PER_OCTAVE
        steps_of_gap = self.numbers_of_knots[index + 1] - self.numbers_of_knots[index]
        return steps_of_gap / math.log2(self.knots[index + 1] / self.knots[index])


def size_steps(knots: Sequence[float]) -> SizeSteps:
    """Steps between and around `knots`, sizes that rise (`docs/formulas.md`, Collective time)."""
    steps = (math.ceil(larger(math.log2(after / before) * STEPS_PER_OCTAVE, 1.0)) for before, after in pairwise(knots))
    return SizeSteps(tuple(knots), tuple(accumulate(steps, initial=0)))
