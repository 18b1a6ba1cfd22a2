"""Least squares with bounds, and which columns points can tell."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_service.core.engine_times.least_squares import Equation, nonnegative_solution, normal_of, told_apart
from estimator_service.core.engine_times.selection import Sample, select

NONE_NEEDED: dict[int, int] = {}


def equations(*rows: tuple[tuple[float, ...], float]) -> list[Equation]:
    return [Equation(factors=factors, value=value) for factors, value in rows]


def samples(*rows: tuple[int, tuple[float, ...], float]) -> list[Sample]:
    return [
        Sample(figure=index, point=point, equation=Equation(factors=factors, value=value))
        for index, (point, factors, value) in enumerate(rows)
    ]


def test_a_system_without_error_is_solved() -> None:
    normal = normal_of(equations(((1, 2), 8), ((3, 1), 9), ((1, 1), 5)), 2)
    assert nonnegative_solution(normal, (0, 1)) == pytest.approx((2, 3))
    assert nonnegative_solution(normal, (1, 0)) == pytest.approx((3, 2))


def test_columns_of_very_different_size_are_solved_as_well() -> None:
    normal = normal_of(equations(((1e9, 1), 1e-3 + 2), ((3e9, 1), 3e-3 + 2), ((7e9, 1), 7e-3 + 2)), 2)
    assert nonnegative_solution(normal, (0, 1)) == pytest.approx((1e-12, 2), rel=1e-6)


def test_a_coefficient_below_zero_becomes_zero_and_the_others_are_the_best_without_it() -> None:
    normal = normal_of(equations(((1, 1), 2), ((2, 1), 3.2), ((4, 1), 8)), 2)
    assert nonnegative_solution(normal, (0, 1)) == pytest.approx((40.4 / 21, 0))


def test_columns_that_are_alike_or_empty_are_not_told_apart() -> None:
    normal = normal_of(equations(((1, 2, 0), 1), ((2, 4.0001, 0), 2), ((3, 6, 0), 3)), 3)
    assert told_apart(normal, (0,))
    assert not told_apart(normal, (0, 1))
    assert not told_apart(normal, (2,))
    assert nonnegative_solution(normal, (0, 1)) is None


ROWS = st.tuples(st.tuples(*[st.floats(0.1, 10) for _ in range(3)]), st.floats(-5, 20))


@given(st.lists(ROWS, min_size=3, max_size=8))
def test_no_step_from_the_solution_that_keeps_the_bound_is_better(rows: list[tuple[tuple[float, ...], float]]) -> None:
    normal = normal_of(equations(*rows), 3)
    solution = nonnegative_solution(normal, (0, 1, 2))
    if solution is None:
        return

    def squares(coefficients: tuple[float, ...]) -> float:
        return sum((sum(a * b for a, b in zip(row, coefficients, strict=True)) - value) ** 2 for row, value in rows)

    assert min(solution) >= 0
    least = squares(solution)
    for place, step in itertools.product(range(3), (-1e-3, 1e-3)):
        moved = list(solution)
        moved[place] = max(0.0, moved[place] + step)
        assert squares(tuple(moved)) >= least - 1e-9 * (1 + least)


def test_one_point_tells_of_the_first_column_alone() -> None:
    found = select(samples((0, (2, 1), 6), (0, (4, 3), 13)), 2, NONE_NEEDED)
    assert found.columns == (0,)
    assert found.left_out_errors == (None, None)


def test_two_points_that_one_column_comes_close_to_have_no_second_one() -> None:
    found = select(samples((0, (1, 1), 1.0), (1, (1, 0.1), 0.97)), 2, NONE_NEEDED)
    assert found.columns == (0,)
    assert found.left_out_errors == pytest.approx((-0.03, 0.03))


def test_two_points_that_one_column_does_not_fit_have_the_first_other_one_that_joins_them() -> None:
    # Relative times of 1 and 4 units that share a fixed part: a column that grows faster than the first does not fit.
    rows = samples((0, (0.5, 0.2, 0.5), 1.0), (1, (0.8, 1.4, 0.2), 1.0))
    found = select(rows, 3, NONE_NEEDED)
    assert found.columns == (0, 2)
    assert found.coefficients == pytest.approx((1, 1))
    assert found.left_out_errors == (None, None)


def test_a_column_that_one_point_alone_has_is_left_out() -> None:
    rows = samples((0, (1, 0), 1), (1, (1, 0), 1.02), (2, (1, 0), 0.98), (3, (1, 1), 1.5))
    assert select(rows, 2, NONE_NEEDED).columns == (0,)


def test_a_column_is_taken_where_it_predicts_points_left_out_better() -> None:
    exact = samples(*((point, (1, share), 1 + 0.5 * share) for point, share in enumerate((0.0, 0.3, 0.5, 0.9))))
    found = select(exact, 2, NONE_NEEDED)
    assert found.columns == (0, 1)
    assert found.coefficients == pytest.approx((1, 0.5))
    assert found.left_out_errors == pytest.approx((0, 0, 0, 0), abs=1e-12)


def test_a_column_comes_only_with_the_one_that_it_needs() -> None:
    rows = samples(*((point, (1, 0.01 * point, share), 1 + share) for point, share in enumerate((0.0, 0.9, 0.1, 0.5))))
    assert select(rows, 3, NONE_NEEDED).columns == (0, 2)
    assert select(rows, 3, {2: 1}).columns in {(0,), (0, 1), (0, 1, 2)}
