"""Measured figures of an engine as equations: which passes lie in each, and what their transfers take."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

from attrs import frozen

from estimator_service.core.engine_times.clock import LinkClock
from estimator_service.core.engine_times.scales import Scale
from estimator_service.core.engine_times.scatter import scatter_ratio
from estimator_service.core.engine_times.terms import Coefficients
from estimator_service.core.engine_times.timeline import Timeline, running_sums, running_work
from estimator_service.core.engine_times.work import NO_WORK, Work, pass_rows
from estimator_service.core.schedule.limits import length_limit_tokens, limits_of
from linkbound.domain.engine import EngineMetric, EnginePoint, SchedulerSettings


@frozen(kw_only=True)
class Figure:
    """A measured time: the work in it, and `other_seconds` of it that are no work, such as transfers.

    `request` is the place in rising order of TTFT. `least_seconds` are needed for the bytes alone. `scatter_ratio` is
    half of the range of its rounds over it.
    """

    point: int
    metric: EngineMetric
    request: int
    measured_seconds: float
    work: Work
    other_seconds: float
    least_seconds: float
    scatter_ratio: float


@frozen(kw_only=True)
class SpanSums:
    """Sums over one span of passes."""

    work: Work
    transfer_seconds: float
    least_seconds: float
    waited_seconds: float

    def plus(self, other: SpanSums) -> SpanSums:
        """Of both."""
        return SpanSums(
            work=self.work.plus(other.work),
            transfer_seconds=self.transfer_seconds + other.transfer_seconds,
            least_seconds=self.least_seconds + other.least_seconds,
            waited_seconds=self.waited_seconds + other.waited_seconds,
        )

    def times(self, factor: float) -> SpanSums:
        """So many times as much."""
        return SpanSums(
            work=self.work.times(factor),
            transfer_seconds=self.transfer_seconds * factor,
            least_seconds=self.least_seconds * factor,
            waited_seconds=self.waited_seconds * factor,
        )


NO_SPAN = SpanSums(work=NO_WORK, transfer_seconds=0.0, least_seconds=0.0, waited_seconds=0.0)


@frozen(kw_only=True)
class PointSpans:
    """Sums of every request of a point: up to its first token, and from there to its last."""

    to_first: tuple[SpanSums, ...]
    generating: tuple[SpanSums, ...]


def point_spans(found: Timeline, clock: LinkClock) -> PointSpans:
    """The spans of a replay over the link of `clock`, in s and counts (`docs/formulas.md`, Engine times)."""
    rows = list(map(pass_rows, found.passes))
    repeats = [one.repeat for one in found.passes]
    work = running_work(found.passes)
    transfers = running_sums(map(operator.mul, repeats, map(clock.likely_seconds, rows)))
    least = running_sums(map(operator.mul, repeats, map(clock.least_seconds, rows)))

    def between(begin: int, end: int, waited_seconds: float = 0.0) -> SpanSums:
        return SpanSums(
            work=work[end].minus(work[begin]),
            transfer_seconds=transfers[end] - transfers[begin],
            least_seconds=least[end] - least[begin],
            waited_seconds=waited_seconds,
        )

    return PointSpans(
        to_first=tuple(between(span.begin, span.first + 1, span.waited_seconds) for span in found.spans),
        generating=tuple(between(span.first + 1, span.last + 1) for span in found.spans),
    )


def point_figures(
    index: int,
    point: EnginePoint,
    scheduler: SchedulerSettings,
    spans: PointSpans,
    coefficients: Coefficients,
) -> Iterator[Figure]:
    """What was measured at point `index` (`docs/formulas.md`, Engine times).

    Measured TTFTs are those of the requests in the order in which `coefficients` expect them, shortest first.
    """
    order = rising_order(spans, coefficients)

    def figure(metric: EngineMetric, measured: float, scatter: float, sums: SpanSums, place: int = 0) -> Figure:
        return Figure(
            point=index,
            metric=metric,
            request=place,
            measured_seconds=measured,
            work=sums.work,
            other_seconds=sums.transfer_seconds + sums.waited_seconds,
            least_seconds=sums.least_seconds,
            scatter_ratio=scatter,
        )

    ranges = point.ttft_range_seconds or (None,) * len(point.ttft_seconds)
    for place, (measured, known) in enumerate(zip(point.ttft_seconds, ranges, strict=True)):
        scatter = scatter_ratio(measured, known)
        yield figure(EngineMetric.TTFT, measured, scatter, spans.to_first[order[place]], place)
    last, mean, speed = point.last_ttft_seconds, point.mean_ttft_seconds, point.output_tokens_per_second
    if last is not None:
        scatter = scatter_ratio(last, point.last_ttft_range_seconds)
        yield figure(EngineMetric.LAST_TTFT, last, scatter, spans.to_first[order[-1]])
    if mean is not None:
        scatter = scatter_ratio(mean, point.mean_ttft_range_seconds)
        yield figure(EngineMetric.MEAN_TTFT, mean, scatter, _mean(spans.to_first))
    if speed is not None:
        scatter = scatter_ratio(speed, point.output_range_tokens_per_second)
        sums = mean_pass(point, scheduler, spans, coefficients)
        yield figure(EngineMetric.DECODE_PASS, tokens_per_pass(scheduler) / speed, scatter, sums)


def rising_order(spans: PointSpans, coefficients: Coefficients) -> list[int]:
    """Requests by their expected TTFT, shortest first (`docs/formulas.md`, Engine times)."""
    expected = [expected_seconds(sums, coefficients) for sums in spans.to_first]
    return sorted(range(len(expected)), key=expected.__getitem__)


def tokens_per_pass(scheduler: SchedulerSettings) -> float:
    """Tokens that a pass yields for a request that generates, on average (`docs/formulas.md`, Engine times)."""
    return 1.0 + (scheduler.accepted_draft_tokens_per_pass or 0.0)


def output_tokens(point: EnginePoint, scheduler: SchedulerSettings) -> tuple[int, ...]:
    """Tokens that each request generates before its length ends it (`docs/formulas.md`, Engine times)."""
    limits = limits_of(scheduler)
    return tuple(length_limit_tokens(request, limits) - request.prompt_tokens for request in point.requests)


def _mean(sums: Sequence[SpanSums]) -> SpanSums:
    total = NO_SPAN
    for one in sums:
        total = total.plus(one)
    return total.times(1 / len(sums))


def speed_shares(seconds_per_token: Sequence[float]) -> list[float]:
    """Shares of each request in the reciprocal of their mean speed (`docs/formulas.md`, Engine times).

    1 / v for v = mean(1 / s_i) grows with s_i by v^-2 s_i^-2 / R, and as it is in proportion to all s together, these
    shares times the s_i add up to it.
    """
    if not all(seconds_per_token):
        return [1 / len(seconds_per_token)] * len(seconds_per_token)
    speeds = [1 / seconds for seconds in seconds_per_token]
    mean_speed = sum(speeds) / len(speeds)
    return [speed**2 / (len(speeds) * mean_speed**2) for speed in speeds]


def mean_pass(
    point: EnginePoint,
    scheduler: SchedulerSettings,
    spans: PointSpans,
    coefficients: Coefficients,
    scale: Scale | None = None,
) -> SpanSums:
    """What lies between two passes that give a request its tokens, at the mean speed of requests with more than one.

    (`docs/formulas.md`, Engine times) Shares of the requests are those at the times of `coefficients`, in that scale.
    """
    tokens = output_tokens(point, scheduler)
    per_token = [sums.times(1 / (count - 1)) for sums, count in zip(spans.generating, tokens, strict=True) if count > 1]
    known = scale or Scale()
    shares = speed_shares(
        [known.seconds(coefficients.compute(one.work).seconds, one.transfer_seconds) for one in per_token]
    )
    total = NO_SPAN
    for one, share in zip(per_token, shares, strict=True):
        total = total.plus(one.times(share))
    return total.times(tokens_per_pass(scheduler))


def expected_seconds(sums: SpanSums, coefficients: Coefficients) -> float:
    """Work, transfers and what was waited before, in s (`docs/formulas.md`, Engine times)."""
    return coefficients.compute(sums.work).seconds + sums.transfer_seconds + sums.waited_seconds
