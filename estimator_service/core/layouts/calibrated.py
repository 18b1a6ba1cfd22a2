"""Times of transfers from a calibration, where it was measured on such a group."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from estimator_service.core.collective_time.calibrated import CalibratedTime, WireTime, calibrated_time, covers
from estimator_service.core.elementwise import larger, smaller
from estimator_service.core.intervals import combined_basis, link_basis, upper_end
from estimator_service.core.layouts.fabric import Fabric
from estimator_service.core.layouts.load import RowCounts, stage_bytes
from estimator_service.core.layouts.rows import StageKind, StageRow
from estimator_service.core.links import send_seconds
from linkbound.domain.calibration import Calibration, CollectiveTiming
from linkbound.domain.estimate import Basis, Effect, Estimate

_MEASURED_EFFECTS = (Effect.RATE_RAMP, Effect.ALGORITHM_CHOICE)
"""What a measured time of a collective has in it, and a fixed time with bytes over a rate has not."""


@frozen(kw_only=True)
class Passes:
    """`repeat_count` passes with the same rows."""

    counts: RowCounts
    repeat_count: int


@frozen(kw_only=True)
class CalibratedSeconds:
    """Time of transfers: at least, expected with passes that follow each other, at most with stages in sequence.

    `is_measured` where every collective that sends anything is covered by the calibration.
    """

    lower_seconds: float
    expected_seconds: float
    upper_seconds: float
    is_measured: bool


def calibrated_transfers(
    kinds: Sequence[StageKind], passes: Sequence[Passes], calibration: Calibration | None, fabric: Fabric
) -> CalibratedSeconds | None:
    """Time of all transfers of `passes`; None where the calibration covers no collective (`docs/formulas.md`, Layouts).

    Expected: the busiest stage with every pass, and the first pass through the others. A collective that is not
    covered, such as the gather of the logits, takes the fixed time of the calibration and the time of its own bytes.
    """
    if calibration is None or not any(_is_covered(row, calibration) for kind in kinds for row in kind.rows):
        return None
    time = calibrated_time(calibration)
    of_passes = [[_stage_seconds(kind, one.counts, time, fabric) for kind in kinds] for one in passes]
    totals = [
        _sum([(stages[index], one.repeat_count) for stages, one in zip(of_passes, passes, strict=True)])
        for index in range(len(kinds))
    ]
    first, whole = _sum(_counted(of_passes[0], kinds)), _sum(_counted(totals, kinds))
    index = max(range(len(kinds)), key=lambda at: totals[at].expected_seconds)
    through = {
        name: getattr(first, name) + getattr(totals[index], name) - getattr(of_passes[0][index], name)
        for name in ("lower_seconds", "expected_seconds")
    }
    return CalibratedSeconds(**through, upper_seconds=whole.upper_seconds, is_measured=whole.is_measured)


def with_calibration(seconds: Estimate, calibrated: CalibratedSeconds | None) -> Estimate:
    """Wire time with what a calibration says: expected never below the wire, upper never below expected.

    (`docs/formulas.md`, Layouts)
    """
    if calibrated is None:
        return seconds
    expected = larger(seconds.lower, calibrated.expected_seconds)
    upper = larger(larger(upper_end(seconds), calibrated.upper_seconds), expected)
    return evolve(
        seconds,
        expected=expected,
        upper=upper,
        expected_basis=Basis.CALIBRATED,
        upper_basis=Basis.CALIBRATED if upper == calibrated.upper_seconds else seconds.upper_basis,
        effects_left_out=_left_out(seconds, calibrated),
    )


def with_calibrated_change(extra: Estimate, old: CalibratedSeconds | None, new: CalibratedSeconds | None) -> Estimate:
    """A change of link with what a calibration says of both, within its ends (`docs/formulas.md`, Layouts)."""
    if old is None or new is None:
        return extra
    change = new.expected_seconds - old.expected_seconds
    return evolve(
        extra,
        expected=larger(extra.lower, smaller(change, upper_end(extra))),
        expected_basis=combined_basis(Basis.CALIBRATED, extra.lower_basis),
        effects_left_out=_left_out(extra, old, new),
    )


def _left_out(seconds: Estimate, *calibrated: CalibratedSeconds) -> tuple[Effect, ...]:
    """Every collective has a fixed time, measured or that of the calibration; the rest only where all were measured."""
    held = (Effect.COLLECTIVE_LATENCY, *(_MEASURED_EFFECTS if all(one.is_measured for one in calibrated) else ()))
    return tuple(effect for effect in seconds.effects_left_out if effect not in held)


def _is_covered(row: StageRow, calibration: Calibration) -> bool:
    placement = row.collective.placement
    return covers(calibration, row.collective.kind, placement.rank_count, placement.ranks_in_node)


def _stage_seconds(kind: StageKind, counts: RowCounts, time: CalibratedTime, fabric: Fabric) -> CalibratedSeconds:
    return _sum([(_row_seconds(row, counts, time, fabric), row.count) for row in kind.rows])


def _row_seconds(row: StageRow, counts: RowCounts, time: CalibratedTime, fabric: Fabric) -> CalibratedSeconds:
    """One collective of a pass."""
    message_bytes = row.collective.message_bytes * counts.of(row.collective.payload)
    if row.collective.placement.rank_count == 1 or not message_bytes:
        return CalibratedSeconds(lower_seconds=0.0, expected_seconds=0.0, upper_seconds=0.0, is_measured=True)
    outer_seconds, inner_seconds = _link_seconds(row, counts, fabric)
    least_busy_seconds = row.collective.least_share * larger(*_link_seconds(row, counts, fabric.at_best))
    if _is_covered(row, time.calibration):
        busy_seconds = larger(outer_seconds, inner_seconds)
        share, basis = row.collective.least_share, link_basis(*fabric.links)
        answer = time.seconds(message_bytes, WireTime(seconds=busy_seconds, basis=basis))
        least = time.seconds(share * message_bytes, WireTime(seconds=least_busy_seconds, basis=basis))
        return CalibratedSeconds(
            lower_seconds=larger(least.lower - _avoidable_seconds(time.calibration), least_busy_seconds),
            expected_seconds=answer.lower if answer.expected is None else answer.expected,
            upper_seconds=upper_end(answer),
            is_measured=True,
        )
    in_turn_seconds = outer_seconds + inner_seconds
    smallest = time.seconds(time.calibration.table.points[0].message_bytes)
    return CalibratedSeconds(
        lower_seconds=least_busy_seconds,
        expected_seconds=in_turn_seconds + time.calibration.fixed_seconds,
        upper_seconds=in_turn_seconds + larger(upper_end(smallest), time.calibration.fixed_seconds),
        is_measured=False,
    )


def _avoidable_seconds(calibration: Calibration) -> float:
    """Launch and synchronisation within a framework, which an engine that replays a captured graph does not pay."""
    return calibration.fixed_seconds if calibration.table.timing is CollectiveTiming.IN_FRAMEWORK else 0.0


def _link_seconds(row: StageRow, counts: RowCounts, fabric: Fabric) -> tuple[float, float]:
    """Time for which one collective keeps the link between nodes busy, and that within a node."""
    one = (StageRow(collective=row.collective, count=1),)
    outer_bytes = stage_bytes(one, counts, lambda it: it.outer_bytes)
    outer_seconds = send_seconds(outer_bytes, fabric.outer.effective_bits_per_second)
    if fabric.inner is None:
        return outer_seconds, 0.0
    inner_bytes = stage_bytes(one, counts, lambda it: it.inner_bytes)
    return outer_seconds, send_seconds(inner_bytes, fabric.inner.effective_bits_per_second)


def _counted(seconds: Sequence[CalibratedSeconds], kinds: Sequence[StageKind]) -> list[tuple[CalibratedSeconds, int]]:
    return [(one, kind.stage_count) for one, kind in zip(seconds, kinds, strict=True)]


def _sum(counted: Sequence[tuple[CalibratedSeconds, int]]) -> CalibratedSeconds:
    return CalibratedSeconds(
        lower_seconds=sum(one.lower_seconds * count for one, count in counted),
        expected_seconds=sum(one.expected_seconds * count for one, count in counted),
        upper_seconds=sum(one.upper_seconds * count for one, count in counted),
        is_measured=all(one.is_measured for one, count in counted if count),
    )
