"""Passes of a question that was measured: seconds beside their transfers that add up to what was."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from estimator_service.core.elementwise import larger, quotient
from estimator_service.core.engine_times.anchors import Anchor
from estimator_service.core.engine_times.parts import PricedReplay
from estimator_service.core.engine_times.prices import Price
from estimator_service.core.engine_times.scales import FITTED, Ratio
from estimator_service.core.engine_times.timeline import RequestSpan, running_sums

_SAME = 1e-9
"""Relative difference of times that add up."""


@frozen(kw_only=True)
class PassTimes:
    """Seconds of every pass beside its likely transfers, below 0 where these took less.

    `add_up`: every measured TTFT is the sum of its passes.
    """

    compute_seconds: tuple[float, ...]
    add_up: bool


@frozen(kw_only=True)
class _Knot:
    """Up to a pass with a first token: seconds beside likely transfers, and with these less their bytes."""

    index: int
    compute: float
    beyond_bytes: float


class _Sums:
    """Up to each stretch: fitted arithmetic, likely transfers, and what these take beyond their bytes."""

    def __init__(self, prices: Sequence[Price]) -> None:
        beyond = [price.transfers.expected - price.least_seconds for price in prices]
        self.fitted = running_sums(price.compute_seconds for price in prices)
        self.transfers = running_sums(price.likely_transfer_seconds for price in prices)
        self.beyond_bytes = running_sums(beyond)
        self._givable = running_sums(larger(seconds, 0.0) for seconds in beyond)

    def weights(self, before: _Knot, after: _Knot) -> list[float]:
        """What the seconds between two knots are in proportion to.

        That is arithmetic; transfers where there is none; and where transfers took less than is likely, what they may
        take beyond their bytes.
        """
        if after.compute < before.compute:
            return self._givable
        has_arithmetic = self.fitted[after.index] > self.fitted[before.index]
        return self.fitted if has_arithmetic else self.transfers


def pass_times(replay: PricedReplay, anchor: Anchor) -> PassTimes:
    """Between two passes with first tokens all have one ratio; behind the last one that between tokens.

    (`docs/formulas.md`, Engine times) Of several first tokens of one pass, the last request's counts. One that was
    measured later than the next one gives way, so that passes always add up to the last first token.
    """
    sums = _Sums(replay.prices)
    is_measured = any(ratio != FITTED for ratio in anchor.ratios)
    knots = _knots(replay, anchor, sums) if is_measured else []
    end = replay.timeline.spans[replay.timeline.last_request].first + 1
    behind = FITTED if anchor.decode_ratio is None else anchor.decode_ratio
    times = [
        _at(knots, sums, index + 1) - _at(knots, sums, index) if is_measured else price.compute_seconds
        for index, price in enumerate(replay.prices[:end])
    ]
    times += [
        behind.mean.measured_compute(price.compute_seconds, price.likely_transfer_seconds)
        for price in replay.prices[end:]
    ]
    return PassTimes(compute_seconds=tuple(times), add_up=all(_add_up(replay, anchor, knots, sums)))


def _knots(replay: PricedReplay, anchor: Anchor, sums: _Sums) -> list[_Knot]:
    spans = replay.timeline.spans
    by_first = {span.first: request for request, span in enumerate(spans)}
    knots = [_Knot(index=0, compute=0.0, beyond_bytes=0.0)]
    for first in sorted(by_first):
        request = by_first[first]
        knot = _next_knot(knots, spans[request], anchor.ratios[request], sums)
        while len(knots) > 1 and knots[-1].beyond_bytes > knot.beyond_bytes:
            knots.pop()
            knot = _next_knot(knots, spans[request], anchor.ratios[request], sums)
        # Where a mean leaves less to a request than its bytes take, these count.
        missing = larger(knots[-1].beyond_bytes - knot.beyond_bytes, 0.0)
        knots.append(evolve(knot, compute=knot.compute + missing, beyond_bytes=knot.beyond_bytes + missing))
    return knots


def _next_knot(knots: Sequence[_Knot], span: RequestSpan, ratio: Ratio, sums: _Sums) -> _Knot:
    end = span.first + 1
    compute = _at(knots, sums, span.begin) + _measured(span, ratio, sums)
    return _Knot(index=end, compute=compute, beyond_bytes=compute + sums.beyond_bytes[end])


def _measured(span: RequestSpan, ratio: Ratio, sums: _Sums) -> float:
    """Seconds of a request beside likely transfers, up to its first token."""
    begin, end = span.begin, span.first + 1
    return ratio.mean.measured_compute(
        sums.fitted[end] - sums.fitted[begin], sums.transfers[end] - sums.transfers[begin]
    )


def _at(knots: Sequence[_Knot], sums: _Sums, index: int) -> float:
    """Seconds beside transfers up to a stretch: in proportion between two knots, as fitted behind the last one."""
    place = bisect_right(knots, index, key=lambda knot: knot.index)
    before = knots[place - 1]
    if place == len(knots):
        return before.compute + sums.fitted[index] - sums.fitted[before.index]
    after = knots[place]
    weights = sums.weights(before, after)
    share = quotient(weights[index] - weights[before.index], weights[after.index] - weights[before.index], if_zero=0.0)
    return before.compute + share * (after.compute - before.compute)


def _add_up(replay: PricedReplay, anchor: Anchor, knots: Sequence[_Knot], sums: _Sums) -> Iterator[bool]:
    """Of every request, whether its passes add up to its TTFT."""
    if not knots:
        return
    for span, ratio in zip(replay.timeline.spans, anchor.ratios, strict=True):
        measured = _measured(span, ratio, sums)
        added = _at(knots, sums, span.first + 1) - _at(knots, sums, span.begin)
        yield abs(added - measured) <= _SAME * max(abs(added), abs(measured), sums.fitted[span.first + 1])
