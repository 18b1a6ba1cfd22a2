"""What is answered of a replay: its passes, its requests, and what was assumed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve

from estimator_service.core import assumptions
from estimator_service.core.collective_time.calibrated import covers
from estimator_service.core.engine_times import words
from estimator_service.core.engine_times.answers import pass_estimate
from estimator_service.core.engine_times.order import within_first_tokens
from estimator_service.core.engine_times.parts import PricedReplay, Pricing
from estimator_service.core.engine_times.prices import NO_PRICE
from estimator_service.core.engine_times.question import Instance
from estimator_service.core.layouts.rows import stage_kinds
from estimator_service.core.schedule import (
    OutcomeCounter,
    Pass,
    RequestOutcome,
    replay,
    schedule_pass,
    schedule_words,
    stretches,
)
from estimator_service.core.version import ESTIMATOR_VERSION
from linkbound.domain.engine import EngineCalibration, SchedulerSettings
from linkbound.domain.estimate import Estimate
from linkbound.domain.schedule import RequestTimes, SchedulePass, ScheduleRequest, ScheduleSummary


def timed_passes(replay: PricedReplay, pricing: Pricing, measured: Sequence[float]) -> Iterator[SchedulePass]:
    """Passes with what links take of one of them, and the time of all together (`docs/formulas.md`, Engine times).

    `measured` are the seconds of each beside its likely transfers.
    """
    listed = iter(zip(replay.prices, measured, strict=True))
    parted = tuple(stretches(replay.timeline.passes))
    times: list[Estimate | None] = []
    for stretch in parted:
        total, compute = NO_PRICE, 0.0
        for _ in stretch:
            price, seconds = next(listed)
            total, compute = total.plus(price), compute + seconds
        has_rows = bool(stretch[0].requests)
        times.append(pass_estimate(total, compute, pricing.off(total)) if has_rows else None)
    ends = tuple(itertools.accumulate(map(len, parted)))
    for stretch, time in zip(parted, within_first_tokens(replay, ends, times), strict=True):
        shown = schedule_pass(stretch)
        if not shown.scheduled:
            yield shown
            continue
        yield evolve(shown, network_seconds=pricing.prices.network_seconds(stretch[0]), seconds=time)


def bare_requests(outcomes: Iterable[RequestOutcome]) -> tuple[RequestTimes, ...]:
    """What becomes of every request, without times (`docs/formulas.md`, Engine times)."""
    return tuple(
        RequestTimes(
            request=one.request,
            first_token_pass=one.first_token_pass,
            last_token_pass=one.last_token_pass,
            preemption_count=one.preemption_count,
            output_tokens=one.output_tokens,
        )
        for one in outcomes
    )


def bare_summary(
    request: ScheduleRequest, scheduler: SchedulerSettings, outcomes: Iterable[RequestOutcome], pass_count: int
) -> ScheduleSummary:
    """What follows from passes alone (`docs/formulas.md`, Engine times)."""
    return ScheduleSummary(
        requests=bare_requests(outcomes),
        pass_count=pass_count,
        scheduler=scheduler,
        assumptions=schedule_words(scheduler, request.requests),
        estimator_version=ESTIMATOR_VERSION,
    )


def bare_parts(request: ScheduleRequest, scheduler: SchedulerSettings) -> Iterator[SchedulePass | ScheduleSummary]:
    """Passes without times as the replay makes them, none of which is kept, and the summary at the end.

    (`docs/formulas.md`, Engine times) Raises InvalidArgumentError, from the iterator, for what the engine refuses.
    """
    counter = OutcomeCounter.of(scheduler, request.requests)
    yield from map(schedule_pass, stretches(_counted(replay(scheduler, request.requests), counter)))
    yield bare_summary(request, scheduler, counter.outcomes(), counter.pass_count)


def _counted(passes: Iterable[Pass], counter: OutcomeCounter) -> Iterator[Pass]:
    for found in passes:
        counter.count(found)
        yield found


def schedule_assumptions(
    request: ScheduleRequest, instance: Instance, engine: EngineCalibration | None, of_times: Sequence[str]
) -> Iterator[str]:
    """What the times of a replay assume, beside its passes (`docs/formulas.md`, Engine times).

    `of_times` is what was found about these requests.
    """
    paths = (instance.path, *(() if instance.to_path is None else (instance.to_path,)))
    links = tuple(dict.fromkeys(link for path in paths for link in path.fabric.links))
    yield from assumptions.of_fabric(instance.layout, links, None)
    yield from assumptions.of_layout(instance.layout)
    yield from assumptions.of_calibrated_layout(instance.calibration, is_covering=_is_covering(instance))
    if request.arrivals_may_split:
        yield words.MAY_SPLIT
    if engine is not None:
        yield from _of_engine(instance, engine)
        yield from of_times
    elif instance.to_path is not None and instance.to_path.rates.are_known:
        yield words.TOP_OF_BURSTS


def _is_covering(instance: Instance) -> bool:
    calibration = instance.calibration
    if calibration is None:
        return False
    collectives = (row.collective for kind in stage_kinds(instance.model, instance.layout) for row in kind.rows)
    return any(
        covers(calibration, one.kind, one.placement.rank_count, one.placement.ranks_in_node) for one in collectives
    )


def _of_engine(instance: Instance, engine: EngineCalibration) -> Iterator[str]:
    yield from engine.assumptions
    if instance.to_path is not None and instance.to_path.rates.are_known and engine.table.bursts is None:
        yield words.TOP_OF_BURSTS
    old, new = engine.table.layout, instance.layout
    if old != new:
        yield words.SCALED.format(old.tensor_parallel_size, new.tensor_parallel_size)
