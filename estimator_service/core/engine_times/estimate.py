"""The schedule question: passes, what links take of them, and when tokens come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from attrs import evolve, frozen

from estimator_service.core.engine_times import words
from estimator_service.core.engine_times.anchors import Anchor, anchor_of, no_anchor
from estimator_service.core.engine_times.answers import Wire, speed_estimate, ttft_estimates
from estimator_service.core.engine_times.clock import LinkClock
from estimator_service.core.engine_times.fit_spread import fit_spread
from estimator_service.core.engine_times.network import path_over
from estimator_service.core.engine_times.parts import Parts, PricedReplay, Pricing
from estimator_service.core.engine_times.pass_times import PassTimes, pass_times
from estimator_service.core.engine_times.prices import Prices
from estimator_service.core.engine_times.question import Instance, instance_of, scheduler_of
from estimator_service.core.engine_times.shown import bare_parts, bare_summary, schedule_assumptions, timed_passes
from estimator_service.core.engine_times.terms import coefficients_of
from estimator_service.core.engine_times.timeline import Timeline
from estimator_service.core.engine_times.variants import Variants, mean_of, priced_variants, timelines, with_old_link
from estimator_service.core.intervals import link_basis, link_effects, network_constraint
from estimator_service.core.layouts.rows import stage_kinds
from linkbound.domain.calibration import Calibration
from linkbound.domain.catalog import Model
from linkbound.domain.engine import EngineCalibration, SchedulerSettings
from linkbound.domain.schedule import RequestTimes, ScheduleEstimate, SchedulePass, ScheduleRequest, ScheduleSummary


@frozen(kw_only=True)
class _Question:
    """What is asked, with what the calibration fills in."""

    request: ScheduleRequest
    scheduler: SchedulerSettings
    instance: Instance
    engine: EngineCalibration | None


def estimate_schedule(
    request: ScheduleRequest,
    model: Model | None = None,
    engine: EngineCalibration | None = None,
    calibration: Calibration | None = None,
) -> ScheduleEstimate:
    """Passes of requests, and with a model what links take of them and when tokens come.

    (`docs/formulas.md`, Engine times) `engine` is the calibration that the request names, or the fit of its table;
    `calibration` that of collectives. Raises InvalidArgumentError for what the engine refuses and what does not fit
    together.
    """
    *passes, summary = schedule_parts(request, model, engine, calibration)
    return ScheduleEstimate(passes=tuple(cast("list[SchedulePass]", passes)), summary=cast("ScheduleSummary", summary))


def schedule_parts(
    request: ScheduleRequest,
    model: Model | None = None,
    engine: EngineCalibration | None = None,
    calibration: Calibration | None = None,
) -> Iterator[SchedulePass | ScheduleSummary]:
    """The same one by one: passes in their order, then the summary (`docs/formulas.md`, Engine times).

    Without a model no pass is kept. Raises the same errors, from the iterator.
    """
    scheduler = scheduler_of(request, engine)
    if model is None:
        yield from bare_parts(request, scheduler)
        return
    instance = instance_of(request, model, engine, calibration)
    question = _Question(request=request, scheduler=scheduler, instance=instance, engine=engine)
    prices = Prices(instance, engine)
    found = timelines(scheduler, request.requests, prices, may_split=request.arrivals_may_split)
    pricing = Pricing(prices=prices, anchor=_anchor(question, found[0]), spread=fit_spread(engine, model))
    variants = _variants(question, found, pricing)
    times = pass_times(variants.base, pricing.anchor)
    yield from timed_passes(variants.base, pricing, times.compute_seconds)
    yield _summary(question, variants, times)


def _variants(question: _Question, found: tuple[Timeline, ...], pricing: Pricing) -> Variants:
    """The replays over the link that times are of, and where requests arrive by time those over the old link."""
    request, instance = question.request, question.instance
    variants = priced_variants(found, pricing)
    if instance.to_path is None or request.requests[0].arrival_seconds is None:
        return variants
    old_prices = Prices(evolve(instance, to_path=None), question.engine)
    old = timelines(question.scheduler, request.requests, old_prices, may_split=request.arrivals_may_split)
    return with_old_link(variants, old, evolve(pricing, prices=old_prices))


def _anchor(question: _Question, asked: Timeline) -> Anchor:
    """What was measured of the question itself, where it was."""
    engine, requests = question.engine, question.request.requests
    if engine is None:
        return no_anchor(len(requests))
    table = engine.table
    baseline = path_over(table.link, table.bursts, table.inner_link, table.layout)
    clock = LinkClock(stage_kinds(question.instance.model, table.layout), baseline)
    return anchor_of(table, coefficients_of(engine.terms), clock, requests, asked)


def _summary(question: _Question, variants: Variants, times: PassTimes) -> ScheduleSummary:
    request, instance, engine, anchor = question.request, question.instance, question.engine, variants.anchor
    asked = variants.base.timeline
    bare = bare_summary(request, question.scheduler, asked.outcomes, asked.pass_count)
    wire = _wire(question)
    tells_output = engine is not None and coefficients_of(engine.terms).decode is not None

    def timed(one: RequestTimes) -> RequestTimes:
        speed = speed_estimate(variants, one.request, one.output_tokens) if tells_output else None
        ttft = ttft_estimates(variants, _ttft_of(one.request), wire)
        return evolve(one, ttft=ttft, output_tokens_per_second=speed)

    of_times = schedule_assumptions(request, instance, engine, tuple(_of_times(question, variants, times)))
    return evolve(
        bare,
        requests=tuple(map(timed, bare.requests)),
        last_ttft=ttft_estimates(variants, lambda replay: replay.last_ttft, wire),
        mean_ttft=ttft_estimates(variants, mean_of(_whole(anchor, question)), wire),
        model=instance.model.model_id,
        layout=instance.layout,
        link=instance.path.fabric.outer,
        to_link=None if instance.to_path is None else instance.to_path.fabric.outer,
        engine_calibration=engine,
        assumptions=(*bare.assumptions, *of_times),
    )


def _is_measured_layout(question: _Question) -> bool:
    return question.engine is not None and question.instance.layout == question.engine.table.layout


def _whole(anchor: Anchor, question: _Question) -> Anchor:
    """On other ranks no mean was measured: it is that of its requests."""
    return anchor if _is_measured_layout(question) else evolve(anchor, mean_ratio=None)


def _of_times(question: _Question, variants: Variants, times: PassTimes) -> Iterator[str]:
    """What was assumed of the times of these very requests."""
    engine, anchor = question.engine, variants.anchor
    if engine is not None and question.scheduler.draft_token_count != engine.table.scheduler.draft_token_count:
        measured, asked = engine.table.scheduler.draft_token_count, question.scheduler.draft_token_count
        yield words.OTHER_DRAFTS.format(measured, asked)
    if anchor.has_ttft:
        yield words.MEASURED_ITSELF if _is_measured_layout(question) else words.MEASURED_ELSEWHERE
        if not times.add_up:
            yield words.APART_FROM_PASSES
    parts = [one for replay in variants.after for one in (*replay.ttft, *replay.generating)]
    found = [one.scatter for one in parts if one.expected is not None]
    if engine is not None and None in found:
        yield words.NO_POINT_LEFT_OUT
    if any(one is not None and one.above is None for one in found):
        yield words.FAR_BEYOND


def _ttft_of(request: int) -> Callable[[PricedReplay], Parts]:
    return lambda replay: replay.ttft[request]


def _wire(question: _Question) -> Wire:
    instance, engine = question.instance, question.engine
    final = instance.final_path.fabric.links
    both = (*instance.path.fabric.links, *final)
    is_sending = any(kind.sends for kind in stage_kinds(instance.model, instance.layout))
    return Wire(
        basis=link_basis(*final),
        change_basis=link_basis(*both),
        constraint=network_constraint(float(is_sending)),
        effects=link_effects(*both),
        has_change=instance.to_path is not None,
        is_baseline=engine is not None
        and instance.layout == engine.table.layout
        and instance.final_path.fabric.outer.link == engine.table.link,
    )
