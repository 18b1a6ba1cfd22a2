"""How far the rounds of one measurement lie apart: as they were, else as rounds usually do."""

from __future__ import annotations

from linkbound.domain.measured_range import MeasuredRange

ROUND_SCATTER = 0.05
"""EMPIRICAL: measured times scatter by up to a twentieth from round to round."""


def range_of(measured: float, known: MeasuredRange | None) -> MeasuredRange:
    """The range of the rounds; a twentieth either way where they do not tell (`docs/formulas.md`, Engine times).

    Rounds that are all alike, as one alone is, tell nothing of how they scatter.
    """
    if known is not None and known.least < known.largest:
        return known
    return MeasuredRange(least=measured * (1 - ROUND_SCATTER), largest=measured * (1 + ROUND_SCATTER))


def scatter_ratio(measured: float, known: MeasuredRange | None) -> float:
    """Half of the range of the rounds over what stands for them (`docs/formulas.md`, Engine times)."""
    found = range_of(measured, known)
    return (found.largest - found.least) / 2 / measured
