"""Counts and durations as people read them, in answers, reasons and errors alike."""

from __future__ import annotations

_WHOLE_SECONDS_FROM = 1000.0
_POWERS_OF_TEN_FROM = 1e9
_UNITS = ((1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


IF_OF_THE_DATA_TYPE = "if its weights are stored in the number type of its config"
"""What hangs on a config that names no quantisation, which a file beside it may do."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things: `1 node`, `8 nodes`, `1,024 nodes`, `2 switches`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def duration(seconds: float) -> str:
    """A duration that keeps at least two digits: `6.36 s`, `0.138 s`, `3.50 ms`, `4.30 us`, `12,600 s`."""
    size = abs(seconds)
    if size == 0:
        return "0 s"
    if size >= _POWERS_OF_TEN_FROM:
        return f"{seconds:.3g} s"
    if size >= _WHOLE_SECONDS_FROM:
        return f"{seconds:,.0f} s"
    if size >= 0.1:
        return f"{seconds:.2f} s" if size >= 1 else f"{seconds:.3f} s"
    for scale, unit in _UNITS:
        if size >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds:.3g} s"
