"""Numbers in the sentences of a plan."""

from __future__ import annotations

from estimator_service.core.intervals import upper_end
from linkbound.domain.estimate import Estimate
from linkbound.domain.link import ResolvedLink
from linkbound.domain.words import duration


def rate(bits_per_second: float) -> str:
    """`109 Gb/s` (`docs/formulas.md`, Plan)."""
    return f"{bits_per_second / 1e9:.4g} Gb/s"


def link_rate(link: ResolvedLink) -> str:
    """The effective rate of a link (`docs/formulas.md`, Plan)."""
    return rate(link.effective_bits_per_second)


def seconds(value: float) -> str:
    """`6.36 s`, `3.52 ms`, `4.30 us` (`docs/formulas.md`, Plan)."""
    return duration(value)


def megabytes(size_bytes: float) -> str:
    """`3.38 MB`, `110.6 GB` (`docs/formulas.md`, Plan)."""
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.2f} MB"


def percent(fraction: float) -> str:
    """`17.4 %` (`docs/formulas.md`, Plan)."""
    return f"{fraction * 100:.1f} %"


def interval(estimate: Estimate) -> str:
    """A time in words: `27.02 s to 31.45 s`, `at least 4.42 s` (`docs/formulas.md`, Plan)."""
    if estimate.upper is None:
        return f"at least {seconds(estimate.lower)}"
    lower, upper = seconds(estimate.lower), seconds(estimate.upper)
    return lower if lower == upper else f"{lower} to {upper}"


def change(extra: Estimate, what: str) -> str:
    """What a change of link does: `adds at most 4.42 s to TTFT`, `takes at most 0.92 s from TTFT`.

    (`docs/formulas.md`, Plan)
    """
    upper = upper_end(extra)
    if extra.lower < 0:
        return f"takes at most {seconds(-extra.lower)} from {what}"
    return f"adds at most {seconds(upper)} to {what}" if upper else f"changes nothing of {what}"
