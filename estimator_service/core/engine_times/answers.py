"""Replays become intervals: hulls over every way in which requests may arrive."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from estimator_service.core.elementwise import larger, quotient, smaller
from estimator_service.core.engine_times.parts import Parts
from estimator_service.core.engine_times.prices import Price
from estimator_service.core.engine_times.spread import Off
from estimator_service.core.engine_times.variants import PartsOf, Variants
from estimator_service.core.intervals import at_least, between, ends_of_change, ordered_effects
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.schedule import TtftEstimates


@frozen(kw_only=True)
class Wire:
    """What every answer says of transfers: the basis of their rates, what binds, and what they leave out.

    `is_baseline`: the link is the one that times were measured over.
    """

    basis: Basis
    change_basis: Basis
    constraint: Constraint
    effects: tuple[Effect, ...]
    has_change: bool
    is_baseline: bool


def ttft_estimates(variants: Variants, parts_of: PartsOf, wire: Wire) -> TtftEstimates:
    """A TTFT, and what a change of link adds, from bytes alone and calibrated (`docs/formulas.md`, Engine times)."""
    after = [parts_of(one) for one in variants.after]
    before = _over_old_link(variants, parts_of)
    is_calibrated = None not in before and all(one.expected is not None for one in after)
    return TtftEstimates(
        ttft_seconds=at_least(
            min(one.least for one in after),
            wire.basis,
            constraint=wire.constraint,
            effects=(Effect.COMPUTE_TIME, Effect.FIXED_OVERHEAD, *wire.effects),
        ),
        extra_ttft_seconds=_bandwidth_extra(after, wire) if wire.has_change else None,
        calibrated_ttft_seconds=_calibrated(after, wire) if is_calibrated else None,
        calibrated_extra_ttft_seconds=_calibrated_extra(after, before, wire)
        if is_calibrated and wire.has_change
        else None,
    )


def _bandwidth_extra(after: Sequence[Parts], wire: Wire) -> Estimate:
    """Between nothing and the bandwidth term, which depends a little on who arrives with whom."""
    least, most = zip(*(ends_of_change(one.bandwidth_seconds) for one in after), strict=True)
    return between(
        min(least),
        max(most),
        wire.change_basis,
        constraint=wire.constraint,
        effects=(Effect.COMPUTE_OVERLAP, *wire.effects),
    )


def _calibrated(after: Sequence[Parts], wire: Wire) -> Estimate:
    base = after[0]
    basis = Basis.CALIBRATED
    if base.is_measured:
        basis = Basis.MEASURED if wire.is_baseline else Basis.MIXED
    uppers = [one.upper for one in after]
    known = [upper for upper in uppers if upper is not None]
    return _interval(
        min(one.lower for one in after),
        base.expected or 0.0,
        max(known) if len(known) == len(uppers) else None,
        basis,
    )


def _over_old_link(variants: Variants, parts_of: PartsOf) -> list[float | None]:
    """Expected times over the link that the change is from, of every replay there."""
    return [
        parts_of(one).before_change if any(one is new for new in variants.after) else parts_of(one).expected
        for one in variants.before
    ]


def _calibrated_extra(after: Sequence[Parts], before: Sequence[float | None], wire: Wire) -> Estimate:
    """Arithmetic cancels where the passes are the same, and counts where requests may arrive otherwise."""
    shifts = [[(new.before_change or 0.0) - (old or 0.0) for old in before] for new in after]
    interval = _interval(
        min(min(shift) + new.change.lower for shift, new in zip(shifts, after, strict=True)),
        shifts[0][0] + after[0].change.expected,
        max(max(shift) + new.change.upper for shift, new in zip(shifts, after, strict=True)),
        Basis.CALIBRATED,
    )
    return evolve(interval, binding_constraint=wire.constraint)


def _interval(lower: float, expected: float, upper: float | None, basis: Basis) -> Estimate:
    """With its ends in order whatever rounding does."""
    least = smaller(lower, expected)
    most = None if upper is None else larger(upper, expected)
    return Estimate(
        lower=least,
        expected=expected,
        upper=most,
        lower_basis=basis,
        expected_basis=basis,
        upper_basis=Basis.UNSPECIFIED if most is None else basis,
        effects_left_out=ordered_effects(Effect.COMPUTE_OVERLAP),
    )


def pass_estimate(price: Price, compute_seconds: float, off: Off | None) -> Estimate | None:
    """Time of all passes of a stretch; None where nothing says what they take (`docs/formulas.md`, Engine times).

    `compute_seconds` are those beside likely transfers, as measured or fitted, `off` how far the fit may be off.
    """
    if price.unknown_passes:
        return None
    expected = compute_seconds + price.transfers.expected
    if off is None:
        return _interval(price.least_seconds, expected, None, Basis.CALIBRATED)
    ratio = quotient(larger(compute_seconds, 0.0), price.compute_seconds, if_zero=1.0)
    fixed_more = ratio * (price.compute_fixed_seconds - price.compute_seconds)
    below = off.below + price.transfers.expected - price.transfers.lower - smaller(fixed_more, 0.0)
    above = price.transfers.upper - price.transfers.expected + larger(fixed_more, 0.0)
    return _interval(
        larger(price.least_seconds, expected - below),
        expected,
        None if off.above is None else expected + above + off.above,
        Basis.CALIBRATED,
    )


def speed_estimate(variants: Variants, request: int, token_count: int) -> Estimate | None:
    """Tokens per second of a request after its first; None for a single token, and where nothing says what passes take.

    (`docs/formulas.md`, Engine times)
    """
    parts = [one.generating[request] for one in variants.after]
    expected = parts[0].expected
    if token_count < 2 or not expected:
        return None
    count = token_count - 1
    slowest = [one.upper for one in parts]
    known = [seconds for seconds in slowest if seconds is not None]
    fastest = min(one.lower for one in parts)
    return _interval(
        count / max(known) if len(known) == len(slowest) else 0.0,
        count / expected,
        count / fastest if fastest else None,
        Basis.CALIBRATED,
    )
