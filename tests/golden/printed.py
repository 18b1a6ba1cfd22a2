"""Figures as a text prints them."""

from decimal import ROUND_HALF_UP, Decimal


def as_printed(value: float, printed: str) -> str:
    """`value` with as many decimals as `printed` has."""
    return str(Decimal(value).quantize(Decimal(printed), rounding=ROUND_HALF_UP))
