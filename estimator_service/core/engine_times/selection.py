"""Which terms measured points can tell: those that predict best what they were not shown."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from estimator_service.core.engine_times.least_squares import (
    Equation,
    Normal,
    nonnegative_solution,
    normal_of,
    told_apart,
)
from estimator_service.core.engine_times.scatter import ROUND_SCATTER

TIE = 1e-9
"""Errors that differ by less are the same, and the fewer terms count."""


@frozen(kw_only=True)
class Sample:
    """One measured figure, by its place, with the point it belongs to and its equation over the measured value."""

    figure: int
    point: int
    equation: Equation


@frozen(kw_only=True)
class Selection:
    """The chosen columns with their coefficients.

    `left_out_errors`, one of each sample, are fitted over measured less one, without its point; None where a column
    cannot be told without it.
    """

    columns: tuple[int, ...]
    coefficients: tuple[float, ...]
    left_out_errors: tuple[float | None, ...]

    def by_column(self, column_count: int) -> tuple[float, ...]:
        """The coefficient of every column, 0 for those that were not chosen."""
        chosen = dict(zip(self.columns, self.coefficients, strict=True))
        return tuple(chosen.get(column, 0.0) for column in range(column_count))

    def error_ratio(self, equation: Equation) -> float:
        """What the fit leaves at an equation over its measured value."""
        return _error(equation, self.columns, self.coefficients)


def select(samples: Sequence[Sample], column_count: int, needs: Mapping[int, int]) -> Selection:
    """The columns, the first one among them, whose mean absolute error at points left out is the least.

    (`docs/formulas.md`, Engine times) `needs` are columns that stand for something beyond another one, and that one.
    Only those sets count whose columns every remaining set of points tells apart, so that no point alone vouches for a
    column. Where no set is so, the first column stands alone; of two points that it does not go through, the first
    other column that does join it.
    """
    whole = normal_of((sample.equation for sample in samples), column_count)
    without = normals_without(samples, column_count)
    best: tuple[int, ...] = (0,)
    best_error = math.inf
    for columns in _sets_of(column_count, needs):
        if len(columns) >= len(without) or not told_apart(whole, columns):
            continue
        errors = _left_out_errors(samples, without, columns)
        known = [abs(error) for error in errors if error is not None]
        if len(known) == len(errors) and sum(known) / len(known) < best_error - TIE:
            best, best_error = columns, sum(known) / len(known)
    if len(without) == 2:
        best = _through_both(samples, whole, needs)
    return _selection(samples, whole, without, best)


def _sets_of(column_count: int, needs: Mapping[int, int]) -> Iterator[tuple[int, ...]]:
    """All sets that hold the first column, and with a column what it needs; smaller ones first."""
    for size in range(column_count):
        for chosen in itertools.combinations(range(1, column_count), size):
            if all(needs.get(column, 0) in (0, *chosen) for column in chosen):
                yield (0, *chosen)


def _through_both(samples: Sequence[Sample], whole: Normal, needs: Mapping[int, int]) -> tuple[int, ...]:
    """Columns for two points: the first alone where it comes close to both."""
    alone = nonnegative_solution(whole, (0,))
    if alone is None or max(abs(_error(sample.equation, (0,), alone)) for sample in samples) <= ROUND_SCATTER:
        return (0,)
    for column in range(1, whole.column_count):
        found = None if column in needs else nonnegative_solution(whole, (0, column))
        if found is not None and min(found) > 0:
            return (0, column)
    return (0,)


def _selection(
    samples: Sequence[Sample], whole: Normal, without: dict[int, Normal], columns: tuple[int, ...]
) -> Selection:
    coefficients = nonnegative_solution(whole, columns)
    return Selection(
        columns=columns,
        coefficients=(0.0,) * len(columns) if coefficients is None else coefficients,
        left_out_errors=_left_out_errors(samples, without, columns),
    )


def normals_without(samples: Sequence[Sample], column_count: int) -> dict[int, Normal]:
    """The normal equations without one point, by its index (`docs/formulas.md`, Engine times).

    They are sums of those of the points before it and behind it: nothing is lost as in a difference.
    """
    by_point: dict[int, list[Equation]] = {}
    for sample in samples:
        by_point.setdefault(sample.point, []).append(sample.equation)
    normals = [normal_of(equations, column_count) for equations in by_point.values()]
    none = normal_of((), column_count)
    before = itertools.accumulate(normals, Normal.plus, initial=none)
    behind = list(itertools.accumulate(reversed(normals), Normal.plus, initial=none))[-2::-1]
    return {point: one.plus(other) for point, one, other in zip(by_point, before, behind, strict=False)}


def _left_out_errors(
    samples: Sequence[Sample], without: dict[int, Normal], columns: tuple[int, ...]
) -> tuple[float | None, ...]:
    solutions = {point: nonnegative_solution(normal, columns) for point, normal in without.items()}
    return tuple(
        None if (found := solutions[sample.point]) is None else _error(sample.equation, columns, found)
        for sample in samples
    )


def _error(equation: Equation, columns: Sequence[int], coefficients: Sequence[float]) -> float:
    fitted = sum(equation.factors[column] * x for column, x in zip(columns, coefficients, strict=True))
    return fitted - equation.value
