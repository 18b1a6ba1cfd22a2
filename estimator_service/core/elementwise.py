"""Minima, maxima and guarded division of numbers: the branches within formulas, in one place.

Formulas that return times and bytes are arithmetic and these. What else branches chooses what an answer says: `resolve`
(which rate counts), what binds a quantity, which parts there are, and the rounding to whole bytes and bits.
"""

from __future__ import annotations

from typing import TypeVar

Number = TypeVar("Number", int, float)


def smaller(first: Number, second: Number) -> Number:
    """min(first, second), in their unit (`docs/formulas.md`, Elementwise)."""
    return min(first, second)


def larger(first: Number, second: Number) -> Number:
    """max(first, second), in their unit (`docs/formulas.md`, Elementwise)."""
    return max(first, second)


def quotient(numerator: float, denominator: float, *, if_zero: float) -> float:
    """Numerator over denominator, and `if_zero` where the denominator is 0 (`docs/formulas.md`, Elementwise)."""
    return numerator / denominator if denominator else if_zero


def ceil_quotient(numerator: int, denominator: int) -> int:
    """The smallest whole number that is not below numerator / denominator (`docs/formulas.md`, Elementwise)."""
    return -(-numerator // denominator)
