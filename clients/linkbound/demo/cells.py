"""Cells of the demo's tables."""

from __future__ import annotations

from linkbound.cli import text
from linkbound.cli.comparison_text import NOTHING
from linkbound.data.study import StudyTest
from linkbound.domain.estimate import Estimate
from linkbound.domain.link import BITS_PER_BYTE
from linkbound.domain.run_comparison import ComparisonRow

_TOKENS_PER_K = 1024


def test_name(test: StudyTest) -> str:
    """A test and its prompts: `P4: 4 x 8K`."""
    requests = f"{test.request_count} x " if test.request_count > 1 else ""
    return f"{test.id}: {requests}{test.prompt_tokens // _TOKENS_PER_K}K"


def with_range(row: ComparisonRow | None) -> str:
    """A measured mean with its range over rounds, where that is stated."""
    if row is None or row.measured is None:
        return NOTHING
    if row.measured_min is None or row.measured_max is None:
        return number(row.measured)
    return f"{row.measured:.2f} ({row.measured_min:.2f} to {row.measured_max:.2f})"


def number(value: float | None) -> str:
    """Two decimals."""
    return NOTHING if value is None else f"{value:.2f}"


def signed(value: float | None) -> str:
    """A difference with two decimals."""
    return NOTHING if value is None else f"{value:+.2f}"


def percent(fraction: float | None) -> str:
    """A relative difference."""
    return NOTHING if fraction is None else text.signed_percent(fraction)


def at_most(estimate: Estimate | None) -> str:
    """The upper end of a predicted difference."""
    return NOTHING if estimate is None or estimate.upper is None else f"<= {estimate.upper:+.2f}"


def at_least(estimate: Estimate | None) -> str:
    """The lower end of a prediction."""
    return NOTHING if estimate is None else f">= {estimate.lower:.2f}"


def interval(estimate: Estimate | None) -> str:
    """Both ends of a prediction."""
    if estimate is None:
        return NOTHING
    return f">= {estimate.lower:.3f}" if estimate.upper is None else f"{estimate.lower:.3f} to {estimate.upper:.3f}"


def implied_bits(row: ComparisonRow) -> str:
    """The implied bandwidth in Gb/s."""
    implied = row.implied_bytes_per_second
    return NOTHING if implied is None else f"{implied * BITS_PER_BYTE / 1e9:.0f} Gb/s"


def assumed(row: ComparisonRow) -> str:
    """The bandwidth that the prediction assumed, which the share is counted from."""
    assumed_rate = row.assumed_bytes_per_second
    return NOTHING if assumed_rate is None else text.bytes_per_second(assumed_rate)
