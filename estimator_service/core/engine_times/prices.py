"""What stretches of passes take over a link, in parts that add up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from attrs import frozen

from estimator_service.core.engine_times.clock import ChangeClock, LinkClock
from estimator_service.core.engine_times.network import Path, path_over, unwatched_ratio
from estimator_service.core.engine_times.question import Instance
from estimator_service.core.engine_times.reach import NO_CHANGE, Change
from estimator_service.core.engine_times.terms import coefficients_of
from estimator_service.core.engine_times.work import NO_WORK, Work, is_generating, pass_rows, pass_work
from estimator_service.core.intervals import upper_end
from estimator_service.core.layouts.load import RowCounts
from estimator_service.core.layouts.rows import stage_kinds
from estimator_service.core.schedule.passes import Pass
from linkbound.domain.engine import EngineCalibration
from linkbound.domain.estimate import Estimate


@frozen(kw_only=True)
class Price:
    """Seconds of some passes.

    `compute_seconds` is arithmetic in proportion to the ranks, `compute_fixed_seconds` the same with the fixed part of
    each pass as it was; `fitted_seconds` is what the fit says of the passes, with this `work`, where it was made.
    `fitted_generating_seconds` of it are of passes that only generate. `likely_transfer_seconds` are those of which
    measured ratios are: over the link of the calibration, or of the ranks asked for where these are others.
    `transfers` are those over the link asked for, `least_seconds` their bytes alone. `change` and `bandwidth_seconds`
    are what the change to that link adds. `unknown_passes` have no arithmetic here, since nothing says what it takes.
    """

    work: Work = NO_WORK
    compute_seconds: float = 0.0
    compute_fixed_seconds: float = 0.0
    fitted_seconds: float = 0.0
    fitted_generating_seconds: float = 0.0
    likely_transfer_seconds: float = 0.0
    transfers: Change = NO_CHANGE
    least_seconds: float = 0.0
    change: Change = NO_CHANGE
    bandwidth_seconds: float = 0.0
    unknown_passes: int = 0

    @property
    def likely_seconds(self) -> float:
        """Arithmetic and transfers, one after the other."""
        return self.compute_seconds + self.transfers.expected

    def plus(self, other: Price) -> Price:
        """Of both."""
        return Price(
            work=self.work.plus(other.work),
            compute_seconds=self.compute_seconds + other.compute_seconds,
            compute_fixed_seconds=self.compute_fixed_seconds + other.compute_fixed_seconds,
            fitted_seconds=self.fitted_seconds + other.fitted_seconds,
            fitted_generating_seconds=self.fitted_generating_seconds + other.fitted_generating_seconds,
            likely_transfer_seconds=self.likely_transfer_seconds + other.likely_transfer_seconds,
            transfers=self.transfers.plus(other.transfers),
            least_seconds=self.least_seconds + other.least_seconds,
            change=self.change.plus(other.change),
            bandwidth_seconds=self.bandwidth_seconds + other.bandwidth_seconds,
            unknown_passes=self.unknown_passes + other.unknown_passes,
        )

    def minus(self, other: Price) -> Price:
        """Of passes beyond others that they include."""
        return Price(
            work=self.work.minus(other.work),
            compute_seconds=self.compute_seconds - other.compute_seconds,
            compute_fixed_seconds=self.compute_fixed_seconds - other.compute_fixed_seconds,
            fitted_seconds=self.fitted_seconds - other.fitted_seconds,
            fitted_generating_seconds=self.fitted_generating_seconds - other.fitted_generating_seconds,
            likely_transfer_seconds=self.likely_transfer_seconds - other.likely_transfer_seconds,
            transfers=self.transfers.minus(other.transfers),
            least_seconds=self.least_seconds - other.least_seconds,
            change=self.change.minus(other.change),
            bandwidth_seconds=self.bandwidth_seconds - other.bandwidth_seconds,
            unknown_passes=self.unknown_passes - other.unknown_passes,
        )


NO_PRICE = Price()


class Prices:
    """Prices of passes of one instance, over the link that times are of. For one answer, not for threads."""

    def __init__(self, instance: Instance, engine: EngineCalibration | None) -> None:
        kinds = stage_kinds(instance.model, instance.layout)
        path, calibration = instance.final_path, instance.calibration
        self._link = LinkClock(kinds, path, calibration, _counted_ratio(instance, engine))
        self._change = None if instance.to_path is None else ChangeClock(kinds, instance.path, path, calibration)
        self._engine = None if engine is None else _EngineClock(instance, engine)

    @property
    def layout_ratio(self) -> float:
        """Arithmetic of a rank over that where the calibration was made."""
        return 1.0 if self._engine is None else self._engine.ratio

    def network_seconds(self, found: Pass) -> Estimate:
        """Transfers of one of the passes."""
        return self._link.seconds(pass_rows(found))

    def price(self, found: Pass) -> Price:
        """All passes of a stretch."""
        repeat, counts = found.repeat, pass_rows(found)
        change, bandwidth = NO_CHANGE, 0.0
        if self._change is not None:
            change, bandwidth = self._change.change(counts).times(repeat), self._change.bandwidth_seconds(counts)
        own = NO_PRICE if self._engine is None else self._engine.price(found, counts, self._link)
        is_unknown = bool(found.requests) and (self._engine is None or not self._engine.knows(found))
        return own.plus(
            Price(
                least_seconds=repeat * self._link.least_seconds(counts),
                change=change,
                bandwidth_seconds=repeat * bandwidth,
                unknown_passes=repeat if is_unknown else 0,
            )
        )

    def likely_seconds(self, found: Pass) -> float:
        """Seconds of all passes of a stretch together."""
        return self.price(found).likely_seconds


class _EngineClock:
    """What a calibration says of passes: where it was made, and at the layout and over the link asked for."""

    def __init__(self, instance: Instance, engine: EngineCalibration) -> None:
        table = engine.table
        baseline = _baseline(engine)
        kinds = stage_kinds(instance.model, table.layout)
        self._coefficients = coefficients_of(engine.terms)
        self.ratio = table.layout.tensor_parallel_size / instance.layout.tensor_parallel_size
        self._baseline = LinkClock(kinds, baseline)
        self._from_baseline = (
            ChangeClock(kinds, baseline, instance.final_path, instance.calibration)
            if instance.layout == table.layout
            else None
        )

    def knows(self, found: Pass) -> bool:
        """Whether the fit has seen such passes."""
        known = self._coefficients.decode if is_generating(found) else self._coefficients.prompt
        return known is not None

    def price(self, found: Pass, counts: RowCounts, link: LinkClock) -> Price:
        """Arithmetic and transfers: those of the baseline and what the link adds; at another layout the link's own."""
        repeat, baseline_seconds = found.repeat, self._baseline.likely_seconds(counts)
        if self._from_baseline is None:
            seconds, likely = link.seconds(counts), link.likely_seconds(counts)
            one = Change(lower=seconds.lower, expected=likely, upper=upper_end(seconds))
            likely_transfers = repeat * likely
        else:
            one = self._from_baseline.change(counts).plus(Change.exactly(baseline_seconds))
            likely_transfers = repeat * baseline_seconds
        work = pass_work(found)
        compute = self._coefficients.compute(work)
        in_proportion, with_fixed = compute.rescaled(self.ratio)
        fitted = compute.seconds + repeat * baseline_seconds
        return Price(
            work=work,
            compute_seconds=in_proportion,
            compute_fixed_seconds=with_fixed,
            fitted_seconds=fitted,
            fitted_generating_seconds=fitted if is_generating(found) else 0.0,
            likely_transfer_seconds=likely_transfers,
            transfers=one.times(repeat),
        )


def _baseline(engine: EngineCalibration) -> Path:
    table = engine.table
    return path_over(table.link, table.bursts, table.inner_link, table.layout)


def _counted_ratio(instance: Instance, engine: EngineCalibration | None) -> float:
    """What the rate of a link that nobody watched may count, where that of the calibration was watched."""
    if engine is None or instance.final_path.rates.are_known:
        return 1.0
    return unwatched_ratio(_baseline(engine), instance.final_path)


def running_prices(prices: Sequence[Price]) -> list[Price]:
    """Sums of the first so many stretches, from none to all (`docs/formulas.md`, Engine times)."""
    return list(itertools.accumulate(prices, Price.plus, initial=NO_PRICE))
