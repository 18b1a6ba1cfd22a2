"""A calibration over one link held against what was measured over another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from attrs import frozen

from estimator_service.core.engine_times.estimate import estimate_schedule
from estimator_service.core.intervals import upper_end
from linkbound.domain.catalog import Model
from linkbound.domain.engine import EngineCalibration, EngineMetric, EnginePoint, EngineTable
from linkbound.domain.estimate import Estimate
from linkbound.domain.schedule import ScheduleEstimate, ScheduleRequest, TtftEstimates

Present = TypeVar("Present")


@frozen(kw_only=True)
class ChangeRow:
    """One TTFT over two links: measured, and predicted from what was measured over the first.

    `bound_seconds` is what the bytes over both effective rates add at most. `extra` is what the change of link adds if
    requests reach the engine as they are sent over both, `extra_if_parted`, of several requests, if the first of those
    that arrive together may have a pass to themselves over either.
    """

    label: str
    metric: EngineMetric
    request: int
    old_seconds: float
    new_seconds: float
    bound_seconds: float
    extra: Estimate
    extra_if_parted: Estimate | None
    seconds: Estimate

    @property
    def measured_extra_seconds(self) -> float:
        """What the change of link added."""
        return self.new_seconds - self.old_seconds

    @property
    def is_inside(self) -> bool:
        """Whether the measured change lies in the interval."""
        return self.extra.contains(self.measured_extra_seconds)

    @property
    def is_inside_if_parted(self) -> bool | None:
        """Whether it does where requests may be parted; None for a request alone."""
        return None if self.extra_if_parted is None else self.extra_if_parted.contains(self.measured_extra_seconds)

    @property
    def extra_error_ratio(self) -> float:
        """Expected over measured change, less one."""
        return _expected(self.extra) / self.measured_extra_seconds - 1

    @property
    def half_width_ratio(self) -> float:
        """Half of the interval of the change over what is expected."""
        return ((self.extra.upper or 0.0) - self.extra.lower) / 2 / _expected(self.extra)

    @property
    def seconds_error_ratio(self) -> float:
        """Expected over measured TTFT, less one."""
        return _expected(self.seconds) / self.new_seconds - 1


@frozen(kw_only=True)
class SpeedRow:
    """The mean output speed of the requests of a point over another link, in tokens per second."""

    label: str
    old_tokens_per_second: float
    new_tokens_per_second: float
    expected_tokens_per_second: float

    @property
    def error_ratio(self) -> float:
        """Expected over measured, less one."""
        return self.expected_tokens_per_second / self.new_tokens_per_second - 1


def change_rows(engine: EngineCalibration, measured: EngineTable, model: Model) -> Iterator[ChangeRow]:
    """The TTFTs of every point that both tables have, by label (`docs/formulas.md`, Engine times).

    `measured` says which link was changed to and which bursts were seen there; its times are held against, not used.
    """
    for old, new in _pairs(engine, measured):
        found = _estimate(engine, measured, model, old, may_split=False)
        parted = _estimate(engine, measured, model, old, may_split=True) if len(old.requests) > 1 else None
        new_seconds = dict(_measured(new))
        for figure, old_seconds in _measured(old):
            ttft = _ttft(found, figure)
            if figure in new_seconds and ttft.calibrated_ttft_seconds is not None:
                yield ChangeRow(
                    label=old.label,
                    metric=figure.metric,
                    request=figure.request,
                    old_seconds=old_seconds,
                    new_seconds=new_seconds[figure],
                    bound_seconds=upper_end(_present(ttft.extra_ttft_seconds)),
                    extra=_present(ttft.calibrated_extra_ttft_seconds),
                    extra_if_parted=None if parted is None else _ttft(parted, figure).calibrated_extra_ttft_seconds,
                    seconds=ttft.calibrated_ttft_seconds,
                )


def speed_rows(engine: EngineCalibration, measured: EngineTable, model: Model) -> Iterator[SpeedRow]:
    """The output speeds of every point of both tables that has them (`docs/formulas.md`, Engine times)."""
    for old, new in _pairs(engine, measured):
        found = _estimate(engine, measured, model, old, may_split=False)
        speeds = [one.output_tokens_per_second for one in found.summary.requests]
        known = [speed.expected for speed in speeds if speed is not None and speed.expected is not None]
        if old.output_tokens_per_second and new.output_tokens_per_second and known:
            yield SpeedRow(
                label=old.label,
                old_tokens_per_second=old.output_tokens_per_second,
                new_tokens_per_second=new.output_tokens_per_second,
                expected_tokens_per_second=sum(known) / len(known),
            )


@frozen
class _FigureName:
    """What a TTFT is of: one of the requests in rising order, the last first token, or the mean."""

    metric: EngineMetric
    request: int = 0


def _pairs(engine: EngineCalibration, measured: EngineTable) -> Iterator[tuple[EnginePoint, EnginePoint]]:
    by_label = {point.label: point for point in measured.points}
    for point in engine.table.points:
        if point.label in by_label:
            yield point, by_label[point.label]


def _estimate(
    engine: EngineCalibration, measured: EngineTable, model: Model, point: EnginePoint, *, may_split: bool
) -> ScheduleEstimate:
    request = ScheduleRequest(
        requests=point.requests,
        arrivals_may_split=may_split,
        to_link=measured.link,
        to_bursts=measured.bursts,
        engine_table=engine.table,
    )
    return estimate_schedule(request, model, engine)


def _measured(point: EnginePoint) -> Iterator[tuple[_FigureName, float]]:
    for place, seconds in enumerate(point.ttft_seconds):
        yield _FigureName(EngineMetric.TTFT, place), seconds
    if point.last_ttft_seconds is not None:
        yield _FigureName(EngineMetric.LAST_TTFT), point.last_ttft_seconds
    if point.mean_ttft_seconds is not None:
        yield _FigureName(EngineMetric.MEAN_TTFT), point.mean_ttft_seconds


def _ttft(found: ScheduleEstimate, figure: _FigureName) -> TtftEstimates:
    summary = found.summary
    if figure.metric is EngineMetric.LAST_TTFT:
        return _present(summary.last_ttft)
    if figure.metric is EngineMetric.MEAN_TTFT:
        return _present(summary.mean_ttft)
    rising = sorted((_present(one.ttft) for one in summary.requests), key=_expected_ttft)
    return rising[figure.request]


def _expected_ttft(ttft: TtftEstimates) -> float:
    return 0.0 if ttft.calibrated_ttft_seconds is None else _expected(ttft.calibrated_ttft_seconds)


def _expected(estimate: Estimate) -> float:
    return estimate.lower if estimate.expected is None else estimate.expected


def _present(value: Present | None) -> Present:
    """What an answer about a model and a change of link always has."""
    if value is None:
        raise ValueError("the answer has no such part")
    return value
