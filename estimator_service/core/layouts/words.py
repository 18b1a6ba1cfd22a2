"""Quantities as reasons name them."""

from __future__ import annotations


def in_seconds(value: float) -> str:
    """A duration of three digits: `1.11 s`, `64.2 ms`, `8.57 us` (`docs/formulas.md`, Layouts)."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}" if value < 1000 * scale else f"{value / scale:.0f} {unit}"
    return f"{value / 1e-6:.3g} us"


def in_bytes(value: float) -> str:
    """A byte count of three digits: `27.7 GB` (`docs/formulas.md`, Layouts)."""
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}" if value < 1000 * scale else f"{value / scale:.0f} {unit}"
    return f"{value:.0f} B"
