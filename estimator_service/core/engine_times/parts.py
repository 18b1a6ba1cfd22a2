"""One replay priced: what each request waits for its tokens, in the parts that its interval is made of."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from estimator_service.core.elementwise import larger, quotient, smaller
from estimator_service.core.engine_times.anchors import Anchor
from estimator_service.core.engine_times.prices import Price, Prices, running_prices
from estimator_service.core.engine_times.reach import NO_CHANGE, Change
from estimator_service.core.engine_times.scales import FITTED, Ratio
from estimator_service.core.engine_times.spread import FitSpread, Off, mean_off
from estimator_service.core.engine_times.timeline import Timeline
from estimator_service.core.wanted import while_wanted


@frozen(kw_only=True)
class Parts:
    """A time of a request, or the mean of several, in s.

    `expected` is None where nothing says what passes take. `scatter` is how far the fit may be off, or how far rounds
    of what was measured lie apart, None where nothing tells; `below` and `above` are what transfers and the fixed part
    of passes at another number of ranks leave open. `compute_seconds` and `transfer_seconds` are what measured ratios
    are of, `scaled_seconds` both together in the ratio that counts; `least` are the bytes alone.
    `change` and `bandwidth_seconds` are what the change of link adds to the same passes. `earliest` and `latest` are
    what first tokens before and behind leave, `latest` None where nothing does.
    """

    expected: float | None
    scatter: Off | None
    below: float
    above: float
    compute_seconds: float
    transfer_seconds: float
    scaled_seconds: float
    least: float
    change: Change = NO_CHANGE
    bandwidth_seconds: float = 0.0
    is_measured: bool = False
    earliest: float = 0.0
    latest: float | None = None

    @property
    def lower(self) -> float:
        """No less than the bytes alone."""
        if self.expected is None:
            return self.least
        own = self.least if self.scatter is None else self.expected - self.scatter.below - self.below
        return larger(self.least, larger(own, smaller(self.earliest, self.expected)))

    @property
    def upper(self) -> float | None:
        """None where nothing bounds it."""
        if self.expected is None:
            return None
        latest = None if self.latest is None else larger(self.latest, self.expected)
        if self.scatter is None or self.scatter.above is None:
            return latest
        own = larger(self.least, self.expected + self.scatter.above + self.above)
        return own if latest is None else smaller(own, latest)

    @property
    def before_change(self) -> float | None:
        """Expected over the link that the change is from."""
        return None if self.expected is None else self.expected - self.change.expected


@frozen(kw_only=True)
class PricedReplay:
    """A replay with the TTFT of every request, and the time from its first token to its last."""

    timeline: Timeline
    prices: tuple[Price, ...]
    ttft: tuple[Parts, ...]
    generating: tuple[Parts, ...]

    @property
    def last_ttft(self) -> Parts:
        """That of the last first token."""
        return self.ttft[self.timeline.last_request]


@frozen(kw_only=True)
class Pricing:
    """What gives a replay its times: prices, what was measured of the question itself, and how far fits may be off."""

    prices: Prices
    anchor: Anchor
    spread: FitSpread

    def off(self, price: Price) -> Off | None:
        """How far the fit may be off in some passes; None where nothing tells.

        At another layout by the same share of the whole time there; what each pass may hold beyond the fit that is
        fixed does not shrink with arithmetic.
        """
        off = self.spread.off(price.work, price.fitted_seconds, price.fitted_generating_seconds)
        ratio = self.prices.layout_ratio
        if off is None or ratio == 1.0:
            return off
        share = quotient(price.compute_seconds + price.likely_transfer_seconds, price.fitted_seconds, if_zero=ratio)
        return off.times(share).wider(self._fixed(price))

    def _fixed(self, price: Price) -> Off:
        """What arithmetic may hold beyond the fit that is not in proportion to ranks."""
        ratio = self.prices.layout_ratio
        fixed = smaller(self.spread.fixed_seconds(price.work), price.compute_seconds / ratio) * (1 - ratio)
        return Off(below=larger(-fixed, 0.0), above=larger(fixed, 0.0))

    def rounds(self, price: Price, ratio: Ratio) -> Off:
        """How far rounds of what was measured lie apart: at another layout as large a share of the whole time there."""
        layout_ratio = self.prices.layout_ratio
        compute = price.compute_seconds / layout_ratio
        transfers = price.likely_transfer_seconds if layout_ratio == 1.0 else price.fitted_seconds - compute
        expected = ratio.mean.seconds(compute, transfers)
        found = ratio.rounds(compute, transfers, expected)
        there = ratio.mean.seconds(price.compute_seconds, price.likely_transfer_seconds)
        return found.times(quotient(there, expected, if_zero=1.0))

    def off_in(self, price: Price, ratio: Ratio, *, is_measured: bool) -> Off | None:
        """How far a time in a ratio may be off: what was measured is, where it was, no further than its rounds.

        Elsewhere the fit is off in proportion to what was measured, beside the rounds. Where nothing tells how far it
        is, rounds and the fixed part of passes do.
        """
        if is_measured and self.prices.layout_ratio == 1.0:
            return self.rounds(price, ratio)
        off = self.off(price)
        if off is None and is_measured:
            return self.rounds(price, ratio).wider(self._fixed(price))
        if off is None or (ratio == FITTED and not is_measured):
            return off
        compute, transfers = price.compute_seconds, price.likely_transfer_seconds
        share = quotient(ratio.mean.seconds(compute, transfers), compute + transfers, if_zero=1.0)
        return off.times(share).wider(self.rounds(price, ratio))


def priced_replay(found: Timeline, pricing: Pricing) -> PricedReplay:
    """What every request waits in a replay, in s (`docs/formulas.md`, Engine times)."""
    anchor = pricing.anchor
    listed = tuple(map(pricing.prices.price, while_wanted(found.passes)))
    sums = running_prices(listed)
    ttft, generating = [], []
    for span, ratio, is_measured in zip(found.spans, anchor.ratios, anchor.measured, strict=True):
        own = sums[span.first + 1].minus(sums[span.begin])
        least = sums[span.first + 1].least_seconds - sums[span.arrival].least_seconds
        scatter = pricing.off_in(own, ratio, is_measured=is_measured)
        ttft.append(_parts(own, least, span.waited_seconds, ratio, scatter, is_measured=is_measured))
        after = sums[span.last + 1].minus(sums[span.first + 1])
        decode_ratio = anchor.decode_ratio
        between = pricing.off_in(after, decode_ratio or FITTED, is_measured=decode_ratio is not None)
        generating.append(_parts(after, after.least_seconds, 0.0, decode_ratio or FITTED, between, is_measured=False))
    return PricedReplay(timeline=found, prices=listed, ttft=tuple(ttft), generating=tuple(generating))


def _parts(price: Price, least: float, waited: float, ratio: Ratio, scatter: Off | None, *, is_measured: bool) -> Parts:
    """`ratio` is measured over fitted arithmetic."""
    transfers, compute, likely = price.transfers, price.compute_seconds, price.likely_transfer_seconds
    measured = ratio.mean.measured_compute(compute, likely)
    fixed_more = ratio.mean.compute * (price.compute_fixed_seconds - compute)
    return Parts(
        expected=None if price.unknown_passes else larger(least, measured + transfers.expected + waited),
        scatter=scatter,
        below=transfers.expected - transfers.lower + larger(-fixed_more, 0.0),
        above=transfers.upper - transfers.expected + larger(fixed_more, 0.0),
        compute_seconds=compute,
        transfer_seconds=likely,
        scaled_seconds=ratio.mean.seconds(compute, likely),
        least=least,
        change=price.change,
        bandwidth_seconds=price.bandwidth_seconds,
        is_measured=is_measured,
    )


def mean_parts(parts: Sequence[Parts], ratio: Ratio | None) -> Parts:
    """The mean of several times; `ratio` is that of all together where their mean was measured.

    (`docs/formulas.md`, Engine times)
    """
    count = len(parts)
    total = NO_CHANGE
    for one in parts:
        total = total.plus(one.change)
    expected = [one.expected for one in parts if one.expected is not None]
    compute = sum(one.compute_seconds for one in parts) / count
    transfers = sum(one.transfer_seconds for one in parts) / count
    scaled = sum(one.scaled_seconds for one in parts) / count
    measured = None if ratio is None else ratio.rounds(compute, transfers, scaled)
    uppers = [one.upper for one in parts if one.upper is not None]
    is_bounded = measured is None and len(uppers) == count
    return Parts(
        expected=sum(expected) / count if len(expected) == count else None,
        scatter=measured or mean_off([one.scatter for one in parts]),
        below=sum(one.below for one in parts) / count,
        above=sum(one.above for one in parts) / count,
        compute_seconds=compute,
        transfer_seconds=transfers,
        scaled_seconds=scaled,
        least=sum(one.least for one in parts) / count,
        change=total.times(1 / count),
        bandwidth_seconds=sum(one.bandwidth_seconds for one in parts) / count,
        is_measured=ratio is not None,
        earliest=sum(one.lower for one in parts) / count if measured is None else 0.0,
        latest=sum(uppers) / count if is_bounded else None,
    )
