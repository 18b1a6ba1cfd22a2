"""Least squares with coefficients of 0 or more, for a handful of columns, in plain Python."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence

from attrs import frozen

LEAST_TOLD_APART = 1e-3
"""EMPIRICAL: squared share of a column that no other columns make up, below which it cannot be told from them. Such a
column differs from them by a thirtieth of its length, about what measured times scatter by."""


@frozen(kw_only=True)
class Equation:
    """One row of a system: `factors` of the coefficients, and the value that they add up to."""

    factors: tuple[float, ...]
    value: float


@frozen(kw_only=True)
class Normal:
    """The normal equations of a system."""

    gram: tuple[tuple[float, ...], ...]
    moments: tuple[float, ...]

    def plus(self, other: Normal) -> Normal:
        """Those of both systems together."""
        return Normal(
            gram=tuple(tuple(map(operator.add, *rows)) for rows in zip(self.gram, other.gram, strict=True)),
            moments=tuple(map(operator.add, self.moments, other.moments)),
        )

    @property
    def column_count(self) -> int:
        """How many coefficients the system has."""
        return len(self.moments)


def normal_of(equations: Iterable[Equation], column_count: int) -> Normal:
    """The normal equations of `equations` (`docs/formulas.md`, Engine times)."""
    gram = [[0.0] * column_count for _ in range(column_count)]
    moments = [0.0] * column_count
    for equation in equations:
        for row, factor in enumerate(equation.factors):
            if not factor:
                continue
            moments[row] += factor * equation.value
            for column, other in enumerate(equation.factors):
                gram[row][column] += factor * other
    return Normal(gram=tuple(map(tuple, gram)), moments=tuple(moments))


@frozen(kw_only=True)
class Triangle:
    """The normal equations of columns that are told apart, each over its length, as a product of triangles."""

    columns: tuple[int, ...]
    scales: tuple[float, ...]
    lower: tuple[tuple[float, ...], ...]

    def solved(self, moments: Sequence[float]) -> tuple[float, ...]:
        """Coefficients for one moment of each column."""
        forward = self._forward(moments)
        solved = [0.0] * len(self.columns)
        for row in reversed(range(len(self.columns))):
            dot = sum(self.lower[after][row] * solved[after] for after in range(row + 1, len(self.columns)))
            solved[row] = (forward[row] - dot) / self.lower[row][row]
        return tuple(x / scale for x, scale in zip(solved, self.scales, strict=True))

    def variance(self, factors: Sequence[float]) -> float:
        """Variance of the sum of `factors`, one of each column, times the coefficients, for equations of variance 1."""
        forward = self._forward(factors)
        return sum(x * x for x in forward)

    def _forward(self, values: Sequence[float]) -> list[float]:
        forward: list[float] = []
        for row, (value, scale) in enumerate(zip(values, self.scales, strict=True)):
            dot = sum(a * b for a, b in zip(forward, self.lower[row], strict=False))
            forward.append((value / scale - dot) / self.lower[row][row])
        return forward


def triangle(normal: Normal, columns: Sequence[int]) -> Triangle | None:
    """That of `columns`; None where one is nothing, or next to a sum of those before it.

    (`docs/formulas.md`, Engine times)
    """
    scales = [math.sqrt(normal.gram[column][column]) for column in columns]
    if not all(scales):
        return None
    lower: list[tuple[float, ...]] = []
    for row, column in enumerate(columns):
        entries: list[float] = []
        for before in range(row):
            scaled = normal.gram[column][columns[before]] / (scales[row] * scales[before])
            dot = sum(a * b for a, b in zip(entries, lower[before], strict=False))
            entries.append((scaled - dot) / lower[before][before])
        rest = 1.0 - sum(entry * entry for entry in entries)
        if rest < LEAST_TOLD_APART:
            return None
        lower.append((*entries, math.sqrt(rest)))
    return Triangle(columns=tuple(columns), scales=tuple(scales), lower=tuple(lower))


def told_apart(normal: Normal, columns: Sequence[int]) -> bool:
    """Whether no column is nothing, or next to a sum of the others (`docs/formulas.md`, Engine times)."""
    return triangle(normal, columns) is not None


def nonnegative_solution(normal: Normal, columns: Sequence[int]) -> tuple[float, ...] | None:
    """Coefficients of 0 or more with the least squares, in the order of `columns`; None where they cannot be told.

    (`docs/formulas.md`, Engine times) The one that needs no bound is the best where it keeps the bound; else the best
    of those with some of them at 0 that keep it.
    """
    if not told_apart(normal, columns):
        return None
    free = _solution(normal, columns)
    if min(free, default=0.0) >= 0:
        return free
    best, best_gain = tuple(0.0 for _ in columns), 0.0
    for size in range(1, len(columns)):
        for places in itertools.combinations(range(len(columns)), size):
            chosen = [columns[place] for place in places]
            some = _solution(normal, chosen)
            gain = sum(x * normal.moments[column] for x, column in zip(some, chosen, strict=True))
            if min(some) >= 0 and gain > best_gain:
                by_place = dict(zip(places, some, strict=True))
                best, best_gain = tuple(by_place.get(place, 0.0) for place in range(len(columns))), gain
    return best


def _solution(normal: Normal, columns: Sequence[int]) -> tuple[float, ...]:
    """Of columns that are told apart."""
    found = triangle(normal, columns)
    if found is None:
        raise ValueError("the columns cannot be told apart")
    return found.solved([normal.moments[column] for column in columns])
