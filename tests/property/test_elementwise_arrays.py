"""A formula over arrays gives what it gives for each entry alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_service.core.elementwise import ceil_quotient, larger, quotient, smaller
from estimator_service.core.intervals import ends_of_change
from estimator_service.core.links import extra_send_seconds, send_seconds

NUMBERS = st.floats(-1e18, 1e18)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20)
AMOUNTS_AND_RATES = st.lists(
    st.tuples(st.floats(0, 1e18), st.integers(1, 10**15), st.integers(1, 10**15)), min_size=1, max_size=20
)


def entry_by_entry(formula: Callable[..., Any], columns: list[Any]) -> list[Any]:
    return [formula(*(entry.item() for entry in row)) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("formula", [smaller, larger])
@given(rows=ROWS)
def test_the_smaller_and_the_larger_of_two(formula: Callable[..., Any], rows: list[tuple[float, float]]) -> None:
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    assert list(formula(*columns)) == entry_by_entry(formula, columns)
    assert list(formula(columns[0], 0.0)) == [formula(first, 0.0) for first, _ in rows]


@given(rows=st.lists(st.tuples(NUMBERS, st.just(0.0) | st.floats(1e-3, 1e18)), min_size=1, max_size=20))
def test_a_quotient_that_may_have_no_denominator(rows: list[tuple[float, float]]) -> None:
    columns: list[Any] = [np.array(column) for column in zip(*rows, strict=True)]
    expected = entry_by_entry(lambda numerator, denominator: quotient(numerator, denominator, if_zero=7.0), columns)
    assert list(np.asarray(quotient(*columns, if_zero=7.0))) == expected


@given(rows=st.lists(st.tuples(st.integers(0, 2**62), st.integers(1, 2**62)), min_size=1, max_size=20))
def test_a_quotient_that_is_rounded_up(rows: list[tuple[int, int]]) -> None:
    columns: list[Any] = [np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)]
    assert list(np.asarray(ceil_quotient(*columns))) == entry_by_entry(ceil_quotient, columns)


@given(rows=AMOUNTS_AND_RATES)
def test_times_on_links(rows: list[tuple[float, int, int]]) -> None:
    columns: list[Any] = [np.array(column) for column in zip(*rows, strict=True)]
    assert list(send_seconds(*columns[:2])) == entry_by_entry(send_seconds, columns[:2])
    assert list(extra_send_seconds(*columns)) == entry_by_entry(extra_send_seconds, columns)


@given(values=st.lists(NUMBERS, min_size=1, max_size=20))
def test_the_ends_of_a_change(values: list[float]) -> None:
    lower, upper = ends_of_change(np.array(values))
    assert list(zip(np.asarray(lower), np.asarray(upper), strict=True)) == [ends_of_change(value) for value in values]
