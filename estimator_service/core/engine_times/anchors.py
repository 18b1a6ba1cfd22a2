"""A question that was measured as a point: what was measured there counts, not the fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from estimator_service.core.elementwise import larger
from estimator_service.core.engine_times.clock import LinkClock
from estimator_service.core.engine_times.figures import (
    PointSpans,
    SpanSums,
    mean_pass,
    point_spans,
    rising_order,
    tokens_per_pass,
)
from estimator_service.core.engine_times.scales import FITTED, Ratio, Scale, over_points, ratio_of, scale_of
from estimator_service.core.engine_times.scatter import range_of
from estimator_service.core.engine_times.terms import Coefficients
from estimator_service.core.engine_times.timeline import SAME_TIME, Timeline, timeline
from estimator_service.core.engine_times.work import pass_rows, pass_work
from estimator_service.core.schedule.passes import Pass
from linkbound.domain.engine import EnginePoint, EngineRequest, EngineTable, SchedulerSettings
from linkbound.domain.measured_range import MeasuredRange

_ROUND_COUNT = 20
"""After so many the ratio no longer changes."""
_SETTLED = 1e-12
"""Relative change below which another round changes nothing."""


@frozen(kw_only=True)
class Anchor:
    """Measured over fitted times: of each request up to its first token, and between tokens.

    `measured` are the requests whose own TTFT was measured. `mean_ratio`, of all requests together, is None where no
    mean TTFT was measured, and `decode_ratio` where no output speed was.
    """

    ratios: tuple[Ratio, ...]
    measured: tuple[bool, ...]
    mean_ratio: Ratio | None
    decode_ratio: Ratio | None

    @property
    def has_ttft(self) -> bool:
        """Whether any TTFT was measured."""
        return any(self.measured) or self.mean_ratio is not None


@frozen(kw_only=True)
class _Figure:
    """A measured sum of TTFTs, and the requests that it is of; `is_own`: that of one alone."""

    requests: tuple[int, ...]
    seconds: MeasuredRange
    mean_seconds: float
    is_own: bool


def no_anchor(request_count: int) -> Anchor:
    """The fit as it is (`docs/formulas.md`, Engine times)."""
    return Anchor(
        ratios=(FITTED,) * request_count, measured=(False,) * request_count, mean_ratio=None, decode_ratio=None
    )


def anchor_of(
    table: EngineTable,
    coefficients: Coefficients,
    clock: LinkClock,
    requests: tuple[EngineRequest, ...],
    asked: Timeline,
) -> Anchor:
    """The points of `table` whose passes are those of the question `asked`, up to the last first token.

    (`docs/formulas.md`, Engine times) `clock` is that of the table's link. Several give the hull of what was measured;
    without one the fit counts.
    """

    def seconds(found: Pass) -> float:
        return coefficients.compute(pass_work(found)).seconds + found.repeat * clock.likely_seconds(pass_rows(found))

    found = []
    for point in table.points:
        if not _is_alike(point.requests, requests):
            continue
        measured = timeline(table.scheduler, point.requests, seconds)
        if not _is_same_to_first_tokens(measured, asked):
            continue
        spans = point_spans(measured, clock)
        is_whole = measured.shares() == asked.shares()
        found.append(_point_anchor(point, table, coefficients, spans, is_whole=is_whole))
    return _hull(found, len(requests)) if found else no_anchor(len(requests))


def _hull(found: Sequence[Anchor], request_count: int) -> Anchor:
    """Of each request the points that measured its own TTFT count, or else those that measured the mean."""
    with_mean = [one for one in found if one.mean_ratio is not None]
    chosen = [[one for one in found if one.measured[index]] or with_mean for index in range(request_count)]
    return Anchor(
        ratios=tuple(
            over_points([one.ratios[index] for one in points]) or FITTED for index, points in enumerate(chosen)
        ),
        measured=tuple(any(one.measured[index] for one in found) for index in range(request_count)),
        mean_ratio=over_points(one.mean_ratio for one in with_mean),
        decode_ratio=over_points(one.decode_ratio for one in found),
    )


def _is_alike(point: Sequence[EngineRequest], asked: Sequence[EngineRequest]) -> bool:
    """The same prompts, as long after the first one: the engine is idle before that."""
    if [request.prompt_tokens for request in point] != [request.prompt_tokens for request in asked]:
        return False
    return all(
        _passes_after(one, point[0]) == _passes_after(other, asked[0]) and _arrive_alike(one, point[0], other, asked[0])
        for one, other in zip(point, asked, strict=True)
    )


def _passes_after(request: EngineRequest, first: EngineRequest) -> int:
    return (request.arrival_pass or 0) - (first.arrival_pass or 0)


def _arrive_alike(one: EngineRequest, first: EngineRequest, other: EngineRequest, other_first: EngineRequest) -> bool:
    """By time, but for what a difference of arrivals rounds; without a time all arrive with the first pass."""
    ends = [request.arrival_seconds or 0.0 for request in (one, first, other, other_first)]
    return abs((ends[0] - ends[1]) - (ends[2] - ends[3])) <= SAME_TIME * max(1.0, *ends)


def _is_same_to_first_tokens(point: Timeline, asked: Timeline) -> bool:
    end = point.spans[point.last_request].first + 1 - point.idle_count
    return point.shares(end) == asked.shares(end)


def _point_anchor(
    point: EnginePoint, table: EngineTable, coefficients: Coefficients, spans: PointSpans, *, is_whole: bool
) -> Anchor:
    count = len(point.requests)
    ratios, measured, mean_ratio = [FITTED] * count, [False] * count, None
    if coefficients.prompt is not None:
        for figure in _measured(point, rising_order(spans, coefficients)):
            ratio = _ratio(figure, [spans.to_first[index] for index in figure.requests], coefficients)
            for index in figure.requests:
                ratios[index], measured[index] = ratio, figure.is_own
        total = _sum_of_all(point)
        if total is not None:
            mean_ratio = _ratio(total, spans.to_first, coefficients)
    decode_ratio = None
    if is_whole and point.output_tokens_per_second is not None and coefficients.decode is not None:
        decode_ratio = _decode_ratio(point, point.output_tokens_per_second, table.scheduler, spans, coefficients)
    return Anchor(ratios=tuple(ratios), measured=tuple(measured), mean_ratio=mean_ratio, decode_ratio=decode_ratio)


def _measured(point: EnginePoint, order: Sequence[int]) -> Iterator[_Figure]:
    """Every request is in one of them, unless only the last TTFT is known."""
    count, last, mean = len(order), point.last_ttft_seconds, point.mean_ttft_seconds
    for place, (seconds, found) in enumerate(zip(point.ttft_seconds, _ttft_ranges(point), strict=True)):
        yield _Figure(requests=(order[place],), seconds=found, mean_seconds=seconds, is_own=True)
    if last is not None:
        found = range_of(last, point.last_ttft_range_seconds)
        yield _Figure(requests=(order[-1],), seconds=found, mean_seconds=last, is_own=True)
        if mean is not None and count > 1:
            rest = larger(count * mean - last, 0.0)
            exactly = MeasuredRange(least=rest, largest=rest)
            yield _Figure(requests=tuple(order[:-1]), seconds=exactly, mean_seconds=rest, is_own=False)
    elif mean is not None:
        total = count * mean
        exactly = MeasuredRange(least=total, largest=total)
        found = range_of(mean, point.mean_ttft_range_seconds) if count == 1 else exactly
        yield _Figure(requests=tuple(order), seconds=found, mean_seconds=total, is_own=count == 1)


def _sum_of_all(point: EnginePoint) -> _Figure | None:
    """The sum of all TTFTs, where they or their mean were measured."""
    requests = tuple(range(len(point.requests)))
    if point.ttft_seconds:
        ranges = _ttft_ranges(point)
        found = MeasuredRange(least=sum(one.least for one in ranges), largest=sum(one.largest for one in ranges))
        return _Figure(requests=requests, seconds=found, mean_seconds=sum(point.ttft_seconds), is_own=False)
    count, last, mean = len(requests), point.last_ttft_seconds, point.mean_ttft_seconds
    if mean is not None:
        found = range_of(mean, point.mean_ttft_range_seconds)
    elif last is not None and count == 1:
        mean, found = last, range_of(last, point.last_ttft_range_seconds)
    else:
        return None
    total = MeasuredRange(least=count * found.least, largest=count * found.largest)
    return _Figure(requests=requests, seconds=total, mean_seconds=count * mean, is_own=False)


def _ttft_ranges(point: EnginePoint) -> list[MeasuredRange]:
    known = point.ttft_range_seconds or (None,) * len(point.ttft_seconds)
    return [range_of(seconds, found) for seconds, found in zip(point.ttft_seconds, known, strict=True)]


def _decode_ratio(
    point: EnginePoint,
    tokens_per_second: float,
    scheduler: SchedulerSettings,
    spans: PointSpans,
    coefficients: Coefficients,
) -> Ratio:
    """The ratio at which the mean speed is the measured one; whom it is the mean of counts by speed, so in rounds."""

    def scale_at(speed: float) -> Scale:
        scale = Scale()
        for _ in range(_ROUND_COUNT):
            one = mean_pass(point, scheduler, spans, coefficients, scale)
            before, scale = scale, _over_fitted(tokens_per_pass(scheduler) / speed, [one], coefficients)
            if _is_settled(before, scale):
                break
        return scale

    found = range_of(tokens_per_second, point.output_range_tokens_per_second)
    return ratio_of(scale_at, found.largest, tokens_per_second, found.least)


def _is_settled(before: Scale, after: Scale) -> bool:
    return (
        abs(after.compute - before.compute) <= _SETTLED * before.compute
        and abs(after.transfers - before.transfers) <= _SETTLED * before.transfers
    )


def _ratio(figure: _Figure, sums: Sequence[SpanSums], coefficients: Coefficients) -> Ratio:
    def scale_at(seconds: float) -> Scale:
        return _over_fitted(seconds, sums, coefficients)

    return ratio_of(scale_at, figure.seconds.least, figure.mean_seconds, figure.seconds.largest)


def _over_fitted(seconds: float, sums: Sequence[SpanSums], coefficients: Coefficients) -> Scale:
    """Measured over fitted, apart from what was waited before."""
    return scale_of(
        seconds - sum(one.waited_seconds for one in sums),
        sum(coefficients.compute(one.work).seconds for one in sums),
        sum(one.transfer_seconds for one in sums),
    )
