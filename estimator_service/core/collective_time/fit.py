"""A table of measured times becomes a calibration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from attrs import evolve

from estimator_service.core.collective_time.curve import STRAIGHT_GAP_RATIO, monotone_seconds
from estimator_service.core.collective_time.scatter import (
    FEWEST_POINTS_WITH_SCATTER,
    Fall,
    averaged,
    largest_fall,
    protocol_changes,
    residuals,
    scatter_ratio,
)
from estimator_service.core.collectives import bus_factor
from linkbound.domain.calibration import Calibration, CollectivePoint, CollectiveTable, CollectiveTiming
from linkbound.domain.words import duration

COVERED = (
    "The calibration stands for {kind} among {ranks} ranks, {per_node} per node, on links as fast as the measured one:"
    " it says nothing about other groups."
)
BACK_TO_BACK = (
    "Times are those of collectives back to back; within a framework they take longer, small ones about twice."
)
IN_FRAMEWORK = "Times are those of one collective at a time within a framework, launch and synchronisation included."
WIDE_GAPS = (
    "Between sizes more than {ratio:g} times apart the curve has the shape that other systems show, an empirical one."
)
FALLING = (
    "Times fall with the size, {ratio:.3g} times from {first:,} to {last:,} bytes: no collective takes less time for"
    " more bytes, so the measurement is in doubt. They count as one time there, and the interval there is as wide."
)
IMPLAUSIBLE = (
    "The times may be in another unit than seconds: {bytes:,} bytes take {time}, and the bus bandwidth is {rate:.3g}"
    " bytes/s. nccl-tests prints microseconds."
)
SLOWEST_BUS_BANDWIDTH_BYTES_PER_SECOND = 1e6
"""Below any network that collectives run on: a tenth of 100 Mb/s Ethernet."""
SMALL_MESSAGE_BYTES = 64 * 1024
LONGEST_SMALL_SECONDS = 1.0
SHORTEST_SECONDS = 1e-7
"""Below the time in which a single write over NVLink arrives."""
NO_SCATTER = "So few points show no scatter: the interval is that of other systems."


def fit(table: CollectiveTable, calibration_id: str = "", sources: Iterable[str] = ()) -> Calibration:
    """The calibration of a table, with what the fit leaves at each size that it does not see.

    Times of one size are averaged. The fixed time is the monotone one of the smallest size, the bus bandwidth the
    largest that any size reaches: f P / t (`docs/formulas.md`, Collective time).
    """
    points = averaged(table.points)
    left = residuals(points)
    scatter = scatter_ratio(points, left)
    fall = largest_fall(points)
    if fall is not None and fall.ratio <= 1 + scatter:
        fall = None
    seconds = monotone_seconds([point.seconds for point in points])
    largest_rate = max(point.message_bytes / time for point, time in zip(points, seconds, strict=True))
    bus_bandwidth = largest_rate * bus_factor(table.kind, table.rank_count)
    fitted = evolve(table, points=points)
    return Calibration(
        calibration_id=calibration_id,
        table=fitted,
        fixed_seconds=seconds[0],
        bus_bandwidth_bytes_per_second=bus_bandwidth,
        residuals=left,
        interval_fraction=_interval_fraction(points, scatter, fall),
        protocol_changes=protocol_changes(points, scatter),
        assumptions=(*_implausible(points, bus_bandwidth), *_assumptions(fitted, fall)),
        sources=tuple(sources),
    )


def _interval_fraction(points: Sequence[CollectivePoint], scatter: float, fall: Fall | None) -> float:
    """The scatter; of points too few to show one, no less than what they contradict each other by."""
    if fall is None or len(points) >= FEWEST_POINTS_WITH_SCATTER:
        return scatter
    return fall.ratio - 1


def _implausible(points: Sequence[CollectivePoint], bus_bandwidth_bytes_per_second: float) -> tuple[str, ...]:
    """A remark on times that no network has; they count as they are (`docs/formulas.md`, Collective time)."""
    is_slow = bus_bandwidth_bytes_per_second < SLOWEST_BUS_BANDWIDTH_BYTES_PER_SECOND
    odd = (
        point
        for point in points
        if point.seconds < SHORTEST_SECONDS
        or (point.seconds > LONGEST_SMALL_SECONDS if point.message_bytes <= SMALL_MESSAGE_BYTES else is_slow)
    )
    point = next(odd, None)
    if point is None:
        return ()
    time = duration(point.seconds)
    return (IMPLAUSIBLE.format(bytes=point.message_bytes, time=time, rate=bus_bandwidth_bytes_per_second),)


def _assumptions(table: CollectiveTable, fall: Fall | None) -> tuple[str, ...]:
    sizes = [point.message_bytes for point in table.points]
    is_wide = any(last > STRAIGHT_GAP_RATIO * first for first, last in pairwise(sizes))
    covered = COVERED.format(
        kind=table.kind.name.lower().replace("_", "-"), ranks=table.rank_count, per_node=table.ranks_per_node
    )
    timing = IN_FRAMEWORK if table.timing is CollectiveTiming.IN_FRAMEWORK else BACK_TO_BACK
    said = (
        (covered, True),
        (timing, True),
        ("" if fall is None else _falling(fall), fall is not None),
        (WIDE_GAPS.format(ratio=STRAIGHT_GAP_RATIO), is_wide),
        (NO_SCATTER, fall is None and len(sizes) < FEWEST_POINTS_WITH_SCATTER),
    )
    return tuple(sentence for sentence, applies in said if applies)


def _falling(fall: Fall) -> str:
    return FALLING.format(ratio=fall.ratio, first=fall.from_message_bytes, last=fall.to_message_bytes)
