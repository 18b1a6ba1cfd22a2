"""Minima, maxima and guarded division: the branches within formulas, in one place.

Formulas that return times and bytes are arithmetic and these, so they take numbers or arrays alike: plain Python
numbers for a single estimate, arrays of the Python array API standard, such as NumPy's, for a sweep. What else branches
chooses what an answer says: `resolve` (which rate counts), what binds a quantity, which parts there are, and the
rounding to whole bytes and bits.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar, overload


class Array(Protocol):
    """What a formula needs of an array. The namespace of the standard holds the functions of its library."""

    def __array_namespace__(self) -> Any: ...
    def __neg__(self) -> Self: ...
    def __add__(self, other: Any, /) -> Self: ...
    def __radd__(self, other: Any, /) -> Self: ...
    def __sub__(self, other: Any, /) -> Self: ...
    def __rsub__(self, other: Any, /) -> Self: ...
    def __mul__(self, other: Any, /) -> Self: ...
    def __rmul__(self, other: Any, /) -> Self: ...
    def __truediv__(self, other: Any, /) -> Self: ...
    def __rtruediv__(self, other: Any, /) -> Self: ...
    def __floordiv__(self, other: Any, /) -> Self: ...


Real = TypeVar("Real", float, Array)
"""The numbers of one formula: all of them plain, or all of them arrays."""
Whole = TypeVar("Whole", int, Array)
_NUMBERS = (int, float)


@overload
def smaller(first: Array, second: Array | float) -> Array: ...
@overload
def smaller(first: int, second: int) -> int: ...
@overload
def smaller(first: float, second: float) -> float: ...
def smaller(first: Any, second: Any) -> Any:
    """min(first, second), in their unit (`docs/formulas.md`, Elementwise)."""
    return min(first, second) if isinstance(first, _NUMBERS) else _namespace_of(first).minimum(first, second)


@overload
def larger(first: Array, second: Array | float) -> Array: ...
@overload
def larger(first: int, second: int) -> int: ...
@overload
def larger(first: float, second: float) -> float: ...
def larger(first: Any, second: Any) -> Any:
    """max(first, second), in their unit (`docs/formulas.md`, Elementwise)."""
    return max(first, second) if isinstance(first, _NUMBERS) else _namespace_of(first).maximum(first, second)


@overload
def quotient(numerator: Array, denominator: Array, *, if_zero: float) -> Array: ...
@overload
def quotient(numerator: float, denominator: float, *, if_zero: float) -> float: ...
def quotient(numerator: Any, denominator: Any, *, if_zero: float) -> Any:
    """Numerator over denominator, and `if_zero` where the denominator is 0 (`docs/formulas.md`, Elementwise)."""
    if isinstance(denominator, _NUMBERS):
        return numerator / denominator if denominator else if_zero
    namespace, is_zero = _namespace_of(denominator), denominator == 0
    return namespace.where(is_zero, if_zero, numerator / namespace.where(is_zero, 1, denominator))


def ceil_quotient(numerator: Whole, denominator: Whole) -> Whole:
    """The smallest whole number that is not below numerator / denominator (`docs/formulas.md`, Elementwise)."""
    return -(-numerator // denominator)


def _namespace_of(array: Array) -> Any:
    """The functions for arrays of the kind of `array`."""
    return array.__array_namespace__()
