"""Measured points of an engine: what their figures and ranges must keep."""

from __future__ import annotations

from typing import Any

import pytest

from linkbound.domain.engine import EnginePoint, EngineRequest
from linkbound.domain.measured_range import MeasuredRange
from linkbound.domain.rules import violations_of

ONE = (EngineRequest(prompt_tokens=100, output_tokens=10),)


def ranged(least: float, largest: float) -> MeasuredRange:
    return MeasuredRange(least=least, largest=largest)


def violated(**figures: Any) -> dict[str, str]:
    found = violations_of(EnginePoint(label="P1", requests=ONE, **figures))
    return {violation.field: violation.description for violation in found}


@pytest.mark.parametrize(
    "figures",
    [
        {"ttft_seconds": (1.0,), "ttft_range_seconds": (ranged(0.9, 1.2),)},
        {"ttft_seconds": (1.0,), "ttft_range_seconds": (ranged(1.0, 1.0),)},
        {"last_ttft_seconds": 2.0, "last_ttft_range_seconds": ranged(1.9, 2.0)},
        {"mean_ttft_seconds": 2.0, "mean_ttft_range_seconds": ranged(2.0, 2.5)},
        {"output_tokens_per_second": 20.0, "output_range_tokens_per_second": ranged(18, 21)},
    ],
)
def test_a_figure_may_have_the_range_of_its_rounds(figures: dict[str, Any]) -> None:
    assert violated(**figures) == {}


@pytest.mark.parametrize(
    ("figures", "field", "description"),
    [
        (
            {"ttft_seconds": (1.0,), "ttft_range_seconds": (ranged(0.9, 1.2),) * 2},
            "ttft_range_seconds",
            "2 ranges are not those of 1 times",
        ),
        (
            {"ttft_seconds": (1.0,), "ttft_range_seconds": (ranged(1.1, 1.2),)},
            "ttft_range_seconds[0]",
            "1.1 to 1.2 does not hold 1.0",
        ),
        (
            {"ttft_seconds": (1.0,), "ttft_range_seconds": (ranged(1.2, 0.9),)},
            "ttft_range_seconds[0].least",
            "1.2 is above the largest, 0.9",
        ),
        (
            {"ttft_seconds": (1.0,), "last_ttft_range_seconds": ranged(0.9, 1.2)},
            "last_ttft_range_seconds",
            "is given without what it is the range of",
        ),
        (
            {"mean_ttft_seconds": 1.0, "mean_ttft_range_seconds": ranged(0.5, 0.9)},
            "mean_ttft_range_seconds",
            "0.5 to 0.9 does not hold 1.0",
        ),
        (
            {"output_tokens_per_second": 20.0, "output_range_tokens_per_second": ranged(21.0, 22.0)},
            "output_range_tokens_per_second",
            "21.0 to 22.0 does not hold 20.0",
        ),
    ],
)
def test_a_range_holds_what_it_is_the_range_of(figures: dict[str, Any], field: str, description: str) -> None:
    assert violated(**figures)[field] == description
