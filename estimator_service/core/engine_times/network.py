"""Transfers of one pass over a link, and what another link adds to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from estimator_service.core.elementwise import larger, smaller
from estimator_service.core.engine_times.bursts import BurstRates, burst_rates
from estimator_service.core.engine_times.reach import NO_CHANGE, Change, Reach, either_change, reach_change
from estimator_service.core.intervals import ends_of_change, ordered_effects, upper_end
from estimator_service.core.layouts.calibrated import CalibratedSeconds, Passes, calibrated_transfers, with_calibration
from estimator_service.core.layouts.fabric import Fabric, fabric_seconds, resolve_fabric
from estimator_service.core.layouts.load import RowCounts, fabric_load
from estimator_service.core.layouts.rows import StageKind, StageRow
from estimator_service.core.links import send_seconds
from linkbound.domain.calibration import Calibration
from linkbound.domain.engine import BurstTable
from linkbound.domain.estimate import Effect, Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link, RateSource

_WITHOUT_HEADERS = (RateSource.WIRE_EFFICIENCY, RateSource.PCIE)
"""Rates that headers were taken from, so that they are those of payloads."""


@frozen(kw_only=True)
class Path:
    """The links under an instance, and what the bursts between its nodes say."""

    fabric: Fabric
    rates: BurstRates


@frozen(kw_only=True)
class RowTime:
    """One kind of collective in a pass: `count` of them, each over the link between nodes and that within one."""

    count: int
    reach: Reach
    inner_seconds: float


def path_over(link: Link, bursts: BurstTable | None, inner_link: Link | None, layout: ParallelLayout) -> Path:
    """The links of an instance as resolved, with their bursts (`docs/formulas.md`, Engine times)."""
    fabric = resolve_fabric(link, (), inner_link, layout)
    return Path(fabric=fabric, rates=burst_rates(fabric.outer, bursts))


def pass_seconds(
    kinds: Sequence[StageKind],
    counts: RowCounts,
    path: Path,
    calibration: Calibration | None = None,
    counted_ratio: float = 1.0,
) -> Estimate:
    """Transfers of one pass: bytes over the effective rate, and what bursts or a calibration expect.

    (`docs/formulas.md`, Engine times) A calibration that covers a collective of the pass stands for the bursts. Without
    both, the rate may be one of counters, which show `counted_ratio` times as many bytes.
    """
    seconds = fabric_seconds(fabric_load(kinds, counts), path.fabric)
    calibrated = calibrated_transfers(kinds, (Passes(counts=counts, repeat_count=1),), calibration, path.fabric)
    if calibrated is not None:
        return with_calibration(seconds, calibrated)
    if not path.rates.are_known:
        if counted_ratio == 1.0:
            return seconds
        return _either_seconds(seconds, kinds, counts, _as_counted(path, counted_ratio))
    of_bursts = _burst_seconds(_row_times(kinds, counts, path))
    return evolve(
        with_calibration(seconds, of_bursts),
        effects_left_out=ordered_effects(*(it for it in seconds.effects_left_out if it is not Effect.RATE_RAMP)),
    )


def likely_seconds(seconds: Estimate) -> float:
    """The expectation of a time, else its upper end: every size reaches the effective rate.

    (`docs/formulas.md`, Engine times)
    """
    return upper_end(seconds) if seconds.expected is None else seconds.expected


def pass_change(
    kinds: Sequence[StageKind], counts: RowCounts, old: Path, new: Path, calibration: Calibration | None = None
) -> Change:
    """What the transfers of one pass take longer over `new` (`docs/formulas.md`, Engine times).

    With a calibration that covers a collective of the pass: between nothing and the bandwidth term, as it expects. The
    rate of a link that nobody watched, beside one that was, may be one of payloads or one that counters show.
    """
    if old == new:
        return NO_CHANGE
    passes = (Passes(counts=counts, repeat_count=1),)
    before = calibrated_transfers(kinds, passes, calibration, old.fabric)
    after = calibrated_transfers(kinds, passes, calibration, new.fabric)
    if before is not None and after is not None:
        return _calibrated_change(before, after, bandwidth_change(kinds, counts, old, new))
    as_payload = _burst_change(kinds, counts, old, new)
    ratio = unwatched_ratio(old, new)
    if ratio == 1.0:
        return as_payload
    return either_change(as_payload, _burst_change(kinds, counts, _as_counted(old, ratio), _as_counted(new, ratio)))


def unwatched_ratio(old: Path, new: Path) -> float:
    """Counter over payload bytes that the rate of a link may include whose bursts nobody saw, beside one that has some.

    (`docs/formulas.md`, Engine times) 1 where both were watched, or neither was, and where the rate is one of payloads
    because the headers were taken from it.
    """
    if old.rates.are_known == new.rates.are_known:
        return 1.0
    watched, other = (old, new) if old.rates.are_known else (new, old)
    return 1.0 if other.fabric.outer.rate_source in _WITHOUT_HEADERS else watched.rates.header_ratio


def bandwidth_change(kinds: Sequence[StageKind], counts: RowCounts, old: Path, new: Path) -> float:
    """Bytes of one pass over both effective rates, in s: what `new` adds where none of it is hidden.

    (`docs/formulas.md`, Engine times)
    """
    load = fabric_load(kinds, counts)
    before, after = (upper_end(fabric_seconds(load, path.fabric)) for path in (old, new))
    return after - before


def _as_counted(path: Path, ratio: float) -> Path:
    """The same where the rate of a link that nobody watched is one that counters show."""
    if path.rates.are_known:
        return path
    return evolve(path, rates=evolve(path.rates, full_bits_per_second=path.rates.full_bits_per_second / ratio))


def _either_seconds(seconds: Estimate, kinds: Sequence[StageKind], counts: RowCounts, counted: Path) -> Estimate:
    """Between the bytes at the rate as it is and at that of the other reading, expected halfway."""
    most = _burst_seconds(_row_times(kinds, counts, counted)).upper_seconds
    expected = (upper_end(seconds) + most) / 2
    return evolve(seconds, expected=expected, upper=most, expected_basis=seconds.upper_basis)


def _burst_change(kinds: Sequence[StageKind], counts: RowCounts, old: Path, new: Path) -> Change:
    total = NO_CHANGE
    for one, other in zip(_row_times(kinds, counts, old), _row_times(kinds, counts, new), strict=True):
        total = total.plus(_row_change(one, other).times(one.count))
    return total


def _burst_seconds(rows: Iterator[RowTime]) -> CalibratedSeconds:
    lower = expected = upper = 0.0
    for row in rows:
        lower += row.count * larger(row.reach.wire_seconds, row.inner_seconds)
        expected += row.count * (row.reach.middle_seconds + row.inner_seconds)
        upper += row.count * (row.reach.burst_seconds + row.inner_seconds)
    return CalibratedSeconds(lower_seconds=lower, expected_seconds=expected, upper_seconds=upper, is_measured=False)


def _row_times(kinds: Sequence[StageKind], counts: RowCounts, path: Path) -> Iterator[RowTime]:
    for kind in kinds:
        for row in kind.rows:
            yield _row_time(row, kind.stage_count, counts, path)


def _row_time(row: StageRow, stage_count: int, counts: RowCounts, path: Path) -> RowTime:
    collective, rates, inner = row.collective, path.rates, path.fabric.inner
    row_count = counts.of(collective.payload)
    message_bytes = row_count * collective.message_bytes
    sent_bytes = row_count * collective.sent.outer_bytes
    inner_bytes = row_count * collective.sent.inner_bytes
    # Bursts are rates at a size of the payload; what one rank sends of it is in proportion.
    sent_share = sent_bytes / message_bytes if message_bytes else 0.0
    wire_seconds = send_seconds(sent_bytes, rates.full_bits_per_second)
    return RowTime(
        count=row.count * stage_count,
        reach=Reach(
            effective_seconds=send_seconds(sent_bytes, path.fabric.outer.effective_bits_per_second),
            wire_seconds=wire_seconds,
            burst_seconds=larger(wire_seconds, sent_share * rates.seconds(message_bytes))
            if rates.are_known
            else wire_seconds,
            is_seen=rates.covers(message_bytes),
            has_bursts=rates.are_known,
        ),
        inner_seconds=0.0 if inner is None else send_seconds(inner_bytes, inner.effective_bits_per_second),
    )


def _row_change(old: RowTime, new: RowTime) -> Change:
    """Of one collective: where links within nodes are busy too, less of the change may be felt."""
    outer = reach_change(old.reach, new.reach)
    if old.inner_seconds or new.inner_seconds:
        outer = Change(lower=smaller(outer.lower, 0.0), expected=outer.expected, upper=larger(outer.upper, 0.0))
    inner = new.inner_seconds - old.inner_seconds
    least, most = ends_of_change(inner)
    return outer.plus(Change(lower=least, expected=inner, upper=most))


def _calibrated_change(before: CalibratedSeconds, after: CalibratedSeconds, bandwidth_seconds: float) -> Change:
    least, most = ends_of_change(bandwidth_seconds)
    expected = after.expected_seconds - before.expected_seconds
    return Change(lower=least, expected=larger(least, smaller(expected, most)), upper=most)
