"""How far a measured time may lie from the curve: scatter, disorder between neighbours, and protocol changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from attrs import frozen

from estimator_service.core.collective_time.curve import curve_through
from estimator_service.core.elementwise import larger
from linkbound.domain.calibration import CalibrationResidual, CollectivePoint, ProtocolChange

SMALLEST_SCATTER_RATIO = 0.04
"""Repeated runs differ by at least this. EMPIRICAL: `docs/accuracy.md`, Collective time."""
RESIDUAL_SHARE = 0.4
"""Scatter over the median residual: without a point, the gap that is bridged is twice as wide. EMPIRICAL, as above."""
UNSEEN_SCATTER_RATIO = 0.08
"""Scatter of a table too small to show it. EMPIRICAL, as above."""
FEWEST_POINTS_WITH_SCATTER = 4
SMALLEST_RATIO = 1e-12
"""Of a fitted over a measured time that can be told from nothing."""
RESIDUAL_WINDOW = 4
"""Points on each side that a residual is computed from."""


def residuals(points: Sequence[CollectivePoint]) -> tuple[CalibrationResidual, ...]:
    """Fitted over measured time less one at each point, by the curve through the points around it, without it.

    `points` hold each size once, in rising order; none for fewer than three. A curve is local, so that four points on
    each side stand for all (`docs/formulas.md`, Collective time).
    """
    if len(points) < 3:
        return ()
    return tuple(_residual(points, index) for index in range(len(points)))


def scatter_ratio(points: Sequence[CollectivePoint], left: Sequence[CalibrationResidual]) -> float:
    """Half width of the interval at a measured size: max(0.04, 0.4 x median |ln(1 + residual)|) as a ratio.

    0.08 for fewer than four points, which show none (`docs/formulas.md`, Collective time).
    """
    if len(points) < FEWEST_POINTS_WITH_SCATTER:
        return UNSEEN_SCATTER_RATIO
    typical = _median([abs(math.log(larger(1 + residual.error_ratio, SMALLEST_RATIO))) for residual in left])
    return larger(SMALLEST_SCATTER_RATIO, math.expm1(RESIDUAL_SHARE * typical))


@frozen
class Fall:
    """Two sizes of which the larger took less time; `ratio` is how many times less, above 1."""

    from_message_bytes: int
    to_message_bytes: int
    ratio: float


def largest_fall(points: Sequence[CollectivePoint]) -> Fall | None:
    """The two sizes, in rising order, between which times fall most; None where they never do.

    max of t_i / t_j over i < j (`docs/formulas.md`, Collective time).
    """
    found: Fall | None = None
    slowest = points[0]
    for point in points[1:]:
        if point.seconds >= slowest.seconds:
            slowest = point
        elif found is None or slowest.seconds / point.seconds > found.ratio:
            found = Fall(slowest.message_bytes, point.message_bytes, slowest.seconds / point.seconds)
    return found


def disorder_ratios(points: Sequence[CollectivePoint]) -> tuple[float, ...]:
    """By how much each gap between neighbours breaks the rule that time and bytes per second rise with the size.

    One ratio for each gap, 0 where the rule holds: how far the worse of its two points lies outside what its
    neighbours allow (`docs/formulas.md`, Collective time).
    """
    broken = [_broken(first, last) for first, last in pairwise(points)]
    around = [0.0, *broken, 0.0]
    return tuple(math.expm1(max(around[index : index + 3])) for index in range(len(broken)))


def protocol_changes(points: Sequence[CollectivePoint], scatter: float) -> tuple[ProtocolChange, ...]:
    """Stretches whose disorder is above `scatter`, neighbouring ones as one (`docs/formulas.md`, Collective time)."""
    stretches: list[ProtocolChange] = []
    gaps = pairwise(points)
    for (first, last), disorder in zip(gaps, disorder_ratios(points), strict=True):
        if disorder <= scatter:
            continue
        if stretches and stretches[-1].to_message_bytes == first.message_bytes:
            start = stretches.pop().from_message_bytes
        else:
            start = first.message_bytes
        stretches.append(ProtocolChange(from_message_bytes=start, to_message_bytes=last.message_bytes))
    return tuple(stretches)


def averaged(points: Sequence[CollectivePoint]) -> tuple[CollectivePoint, ...]:
    """Each size once, in rising order, with the mean of its times (`docs/formulas.md`, Collective time)."""
    return tuple(_averaged(sorted(points, key=lambda point: point.message_bytes)))


def _averaged(ordered: Sequence[CollectivePoint]) -> Iterator[CollectivePoint]:
    times: list[float] = []
    for point, following in zip(ordered, [*ordered[1:], None], strict=True):
        times.append(point.seconds)
        if following is None or following.message_bytes != point.message_bytes:
            yield CollectivePoint(message_bytes=point.message_bytes, seconds=math.fsum(times) / len(times))
            times = []


def _residual(points: Sequence[CollectivePoint], index: int) -> CalibrationResidual:
    left_out = points[index]
    around = [*points[max(index - RESIDUAL_WINDOW, 0) : index], *points[index + 1 : index + 1 + RESIDUAL_WINDOW]]
    curve = curve_through([point.message_bytes for point in around], [point.seconds for point in around])
    fitted = curve.seconds_at(left_out.message_bytes)
    return CalibrationResidual(message_bytes=left_out.message_bytes, error_ratio=fitted / left_out.seconds - 1)


def _median(values: Sequence[float]) -> float:
    # That of the standard library would load decimals, fractions and random numbers.
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _broken(first: CollectivePoint, last: CollectivePoint) -> float:
    """By how much, in the logarithm, the time falls or rises faster than the size."""
    rise = math.log(last.seconds / first.seconds)
    return larger(larger(-rise, rise - math.log(last.message_bytes / first.message_bytes)), 0.0)
