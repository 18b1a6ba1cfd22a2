"""One replay priced: what each request waits for its tokens, in the parts that its interval is made of."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from estimator_service.core.elementwise import larger
from estimator_service.core.engine_times.anchors import FITTED, Anchor, Ratio
from estimator_service.core.engine_times.prices import Price, Prices, running_prices
from estimator_service.core.engine_times.reach import NO_CHANGE, Change
from estimator_service.core.engine_times.timeline import Timeline


@frozen(kw_only=True)
class FitErrors:
    """How far fitted times may be off, as shares: of TTFTs, and between tokens. None: nothing tells."""

    ttft_fraction: float | None
    decode_fraction: float | None


@frozen(kw_only=True)
class Parts:
    """A time of a request, or the mean of several, in s.

    `expected` is None where nothing says what passes take. `scatter` is how far the fit may be off either way, None
    where nothing tells; `below` and `above` are what transfers, the fixed part of passes at another number of ranks,
    and points that were measured more than once leave open. `least` are the bytes alone. `change` and
    `bandwidth_seconds` are what the change of link adds to the same passes.
    """

    expected: float | None
    scatter: float | None
    below: float
    above: float
    least: float
    change: Change = NO_CHANGE
    bandwidth_seconds: float = 0.0
    is_measured: bool = False

    @property
    def lower(self) -> float:
        """No less than the bytes alone."""
        if self.expected is None or self.scatter is None:
            return self.least
        return larger(self.least, self.expected - self.scatter - self.below)

    @property
    def upper(self) -> float | None:
        """None where nothing bounds it."""
        if self.expected is None or self.scatter is None:
            return None
        return larger(self.least, self.expected + self.scatter + self.above)

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
    """What gives a replay its times: prices of passes, what was measured of the question itself, errors of the fit."""

    prices: Prices
    anchor: Anchor
    errors: FitErrors


def priced_replay(found: Timeline, pricing: Pricing) -> PricedReplay:
    """What every request waits in a replay, in s (`docs/formulas.md`, Engine times)."""
    prices, anchor, errors = pricing.prices, pricing.anchor, pricing.errors
    listed = tuple(map(prices.price, found.passes))
    sums = running_prices(listed)
    ttft, generating = [], []
    decode_ratio = FITTED if anchor.decode_ratio is None else anchor.decode_ratio
    decode_fraction = errors.decode_fraction if anchor.decode_ratio is None else 0.0
    for span, ratio, is_measured in zip(found.spans, anchor.ratios, anchor.measured, strict=True):
        own = sums[span.first + 1].minus(sums[span.begin])
        least = sums[span.first + 1].least_seconds - sums[span.arrival].least_seconds
        fraction = 0.0 if is_measured else errors.ttft_fraction
        ttft.append(_parts(own, least, span.waited_seconds, ratio, fraction, is_measured=is_measured))
        after = sums[span.last + 1].minus(sums[span.first + 1])
        generating.append(_parts(after, after.least_seconds, 0.0, decode_ratio, decode_fraction, is_measured=False))
    return PricedReplay(timeline=found, prices=listed, ttft=tuple(ttft), generating=tuple(generating))


def _parts(
    price: Price, least: float, waited: float, ratio: Ratio, fraction: float | None, *, is_measured: bool
) -> Parts:
    """`ratio` is measured over fitted arithmetic, `fraction` how far the fit may be off."""
    transfers, compute = price.transfers, price.compute_seconds
    fixed_more = ratio.mean * (price.compute_fixed_seconds - price.compute_seconds)
    return Parts(
        expected=None if price.unknown_passes else larger(least, ratio.mean * compute + transfers.expected + waited),
        scatter=None if fraction is None else fraction * price.fitted_seconds,
        below=transfers.expected - transfers.lower + larger(-fixed_more, 0.0) + (ratio.mean - ratio.least) * compute,
        above=transfers.upper - transfers.expected + larger(fixed_more, 0.0) + (ratio.most - ratio.mean) * compute,
        least=least,
        change=price.change,
        bandwidth_seconds=price.bandwidth_seconds,
        is_measured=is_measured,
    )


def mean_parts(parts: Sequence[Parts], *, is_measured: bool) -> Parts:
    """The mean of several times; where it was measured itself, no fit is off (`docs/formulas.md`, Engine times)."""
    count = len(parts)

    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / count if len(known) == count else None

    total = NO_CHANGE
    for one in parts:
        total = total.plus(one.change)
    return Parts(
        expected=mean([one.expected for one in parts]),
        scatter=0.0 if is_measured else mean([one.scatter for one in parts]),
        below=sum(one.below for one in parts) / count,
        above=sum(one.above for one in parts) / count,
        least=sum(one.least for one in parts) / count,
        change=total.times(1 / count),
        bandwidth_seconds=sum(one.bandwidth_seconds for one in parts) / count,
        is_measured=is_measured,
    )
