"""Quantities as reasons name them."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_service.core.layouts.candidates import Span


def in_seconds(value: float) -> str:
    """A duration of three digits: `1.11 s`, `64.2 ms`, `8.57 us` (`docs/formulas.md`, Layouts)."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}" if value < 1000 * scale else f"{value / scale:.0f} {unit}"
    return f"{value / 1e-6:.3g} us"


def in_span(span: Span) -> str:
    """Both ends: `3.19 s to 10.5 s`; one where they read the same (`docs/formulas.md`, Layouts)."""
    least, most = in_seconds(span.least_seconds), in_seconds(span.most_seconds)
    return least if least == most else f"{least} to {most}"


def in_bytes(value: float) -> str:
    """A byte count of three digits: `27.7 GB` (`docs/formulas.md`, Layouts)."""
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}" if value < 1000 * scale else f"{value / scale:.0f} {unit}"
    return f"{value:.0f} B"


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names in a sentence: `TP4, PP4 and TP2 x PP2` (`docs/formulas.md`, Layouts)."""
    between = "; " if any("," in name for name in names) else ", "
    return f" {last} ".join((between.join(names[:-1]), names[-1])) if len(names) > 1 else names[0]
