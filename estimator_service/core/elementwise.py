"""Minima, maxima and guarded division: the branches of the formulas, in one place.

Every other formula is plain arithmetic, so arrays in place of numbers need another version of this module only.
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
