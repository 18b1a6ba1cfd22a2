"""Counts and durations in words: one of a thing is singular, and no duration reads as nothing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkbound.domain.words import counted, duration


@pytest.mark.parametrize(
    ("count", "noun", "plural", "words"),
    [
        (1, "node", "", "1 node"),
        (0, "node", "", "0 nodes"),
        (2, "switch", "switches", "2 switches"),
        (1, "switch", "switches", "1 switch"),
        (1024, "prompt token", "", "1,024 prompt tokens"),
    ],
)
def test_counts(count: int, noun: str, plural: str, words: str) -> None:
    assert counted(count, noun, plural) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"),
        (6.36, "6.36 s"),
        (0.138, "0.138 s"),
        (3.523e-3, "3.52 ms"),
        (4.3e-6, "4.30 us"),
        (3e-9, "3.00 ns"),
        (1e-15, "1e-15 s"),
        (-1.11, "-1.11 s"),
        (7344.0, "7,344 s"),
        (1_000_000.0, "1,000,000 s"),
        (1e30, "1e+30 s"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@given(st.floats(1e-300, 1e300))
def test_a_duration_reads_as_what_it_is(seconds: float) -> None:
    number, unit = duration(seconds).replace(",", "").split(" ")
    scale = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * scale == pytest.approx(seconds, rel=0.01)
    assert re.fullmatch(r"-?[\d.]+(e[+-]\d+)?", number)
