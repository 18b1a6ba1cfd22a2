"""A question that was measured as a point: what was measured there counts, not the fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from estimator_service.core.elementwise import larger, quotient
from estimator_service.core.engine_times.clock import LinkClock
from estimator_service.core.engine_times.figures import (
    PointSpans,
    SpanSums,
    mean_pass,
    point_spans,
    rising_order,
    tokens_per_pass,
)
from estimator_service.core.engine_times.terms import Coefficients
from estimator_service.core.engine_times.timeline import Timeline, timeline
from estimator_service.core.engine_times.work import pass_rows, pass_work
from estimator_service.core.schedule.passes import Pass
from linkbound.domain.engine import EnginePoint, EngineRequest, EngineTable, SchedulerSettings

_ROUND_COUNT = 20
"""After so many the ratio no longer changes."""


@frozen(kw_only=True)
class Ratio:
    """Measured over fitted arithmetic: the mean of all points that tell, from the least to the most."""

    least: float
    mean: float
    most: float


FITTED = Ratio(least=1.0, mean=1.0, most=1.0)
"""The fit as it is."""


@frozen(kw_only=True)
class Anchor:
    """Measured over fitted arithmetic: of each request up to its first token, and between tokens.

    `measured` are the requests whose own TTFT was measured. `decode_ratio` is None where no output speed was.
    """

    ratios: tuple[Ratio, ...]
    measured: tuple[bool, ...]
    is_mean_measured: bool
    decode_ratio: Ratio | None


@frozen(kw_only=True)
class _PointRatios:
    """The same of one point alone."""

    ratios: tuple[float, ...]
    measured: tuple[bool, ...]
    is_mean_measured: bool
    decode_ratio: float | None


def no_anchor(request_count: int) -> Anchor:
    """The fit as it is (`docs/formulas.md`, Engine times)."""
    return Anchor(
        ratios=(FITTED,) * request_count, measured=(False,) * request_count, is_mean_measured=False, decode_ratio=None
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
        found.append(_point_ratios(point, table, coefficients, spans, is_whole=is_whole))
    return _hull(found, len(requests)) if found else no_anchor(len(requests))


def _hull(found: Sequence[_PointRatios], request_count: int) -> Anchor:
    """Of each request the points that measured its own TTFT count, or else those that measured the mean."""
    with_mean = [one for one in found if one.is_mean_measured]
    chosen = [[one for one in found if one.measured[index]] or with_mean for index in range(request_count)]
    measured = tuple(any(one.measured[index] for one in found) for index in range(request_count))
    are_of_mean = all(points and all(one.is_mean_measured for one in points) for points in chosen)
    return Anchor(
        ratios=tuple(
            _over([one.ratios[index] for one in points]) if points else FITTED for index, points in enumerate(chosen)
        ),
        measured=measured,
        is_mean_measured=all(measured) or are_of_mean,
        decode_ratio=_over_known([one.decode_ratio for one in found]),
    )


def _over_known(ratios: Sequence[float | None]) -> Ratio | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return _over(known) if known else None


def _over(ratios: Sequence[float]) -> Ratio:
    return Ratio(least=min(ratios), mean=sum(ratios) / len(ratios), most=max(ratios))


def _is_alike(point: Sequence[EngineRequest], asked: Sequence[EngineRequest]) -> bool:
    return [_prompt(request) for request in point] == [_prompt(request) for request in asked]


def _prompt(request: EngineRequest) -> tuple[int, int, float | None]:
    return request.prompt_tokens, request.arrival_pass or 0, request.arrival_seconds


def _is_same_to_first_tokens(point: Timeline, asked: Timeline) -> bool:
    end = point.spans[point.last_request].first + 1
    return point.shares(end) == asked.shares(end)


def _point_ratios(
    point: EnginePoint, table: EngineTable, coefficients: Coefficients, spans: PointSpans, *, is_whole: bool
) -> _PointRatios:
    ratios, measured = [1.0] * len(point.requests), [False] * len(point.requests)
    if coefficients.prompt is not None:
        for chosen, seconds, is_own in _measured(point, spans, coefficients):
            ratio = _ratio(seconds, [spans.to_first[index] for index in chosen], coefficients)
            for index in chosen:
                ratios[index], measured[index] = ratio, is_own
    speed = point.output_tokens_per_second
    decode_ratio = None
    if is_whole and speed is not None and coefficients.decode is not None:
        decode_ratio = _decode_ratio(point, speed, table.scheduler, spans, coefficients)
    return _PointRatios(
        ratios=tuple(ratios),
        measured=tuple(measured),
        is_mean_measured=all(measured) or point.mean_ttft_seconds is not None,
        decode_ratio=decode_ratio,
    )


def _measured(
    point: EnginePoint, spans: PointSpans, coefficients: Coefficients
) -> Iterator[tuple[list[int], float, bool]]:
    """Requests, the sum of their TTFTs, and whether it is the TTFT of one alone."""
    order = rising_order(spans, coefficients)
    count, last, mean = len(order), point.last_ttft_seconds, point.mean_ttft_seconds
    for place, seconds in enumerate(point.ttft_seconds):
        yield [order[place]], seconds, True
    if last is not None:
        yield [order[-1]], last, True
        if mean is not None and count > 1:
            yield order[:-1], count * mean - last, False
    elif mean is not None:
        yield order, count * mean, count == 1


def _decode_ratio(
    point: EnginePoint,
    tokens_per_second: float,
    scheduler: SchedulerSettings,
    spans: PointSpans,
    coefficients: Coefficients,
) -> float:
    """The ratio at which the mean speed is the measured one; whom it is the mean of counts by speed, so in rounds."""
    ratio = 1.0
    for _ in range(_ROUND_COUNT):
        one = mean_pass(point, scheduler, spans, coefficients.times(ratio))
        ratio = _ratio(tokens_per_pass(scheduler) / tokens_per_second, [one], coefficients)
    return ratio


def _ratio(seconds: float, sums: Sequence[SpanSums], coefficients: Coefficients) -> float:
    """Measured arithmetic over fitted one; 1 where there is none to scale."""
    others = sum(one.transfer_seconds + one.waited_seconds for one in sums)
    fitted = sum(coefficients.compute(one.work).seconds for one in sums)
    return quotient(larger(seconds - others, 0.0), fitted, if_zero=1.0)
