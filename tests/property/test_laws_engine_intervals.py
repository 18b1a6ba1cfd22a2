"""Laws of the intervals of a calibrated engine: none without width, none that ends beside a measured point."""

from __future__ import annotations

import itertools
from typing import Any

from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from estimator_service.core.engine_times.scatter import range_of
from linkbound.domain.engine import EngineCalibration, EnginePoint, EngineRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.schedule import ScheduleEstimate
from tests.property.engine_strategies import (
    BURSTS,
    LINKS,
    REQUESTS,
    TIMED_REQUESTS,
    TOLERANCE,
    answered,
    close,
    engines,
    expected,
    ttfts,
    upper,
)


def calibrated(found: ScheduleEstimate) -> list[Estimate]:
    times = [one.calibrated_ttft_seconds for one in ttfts(found)]
    return [one for one in times if one is not None]


def overlap(first: Estimate, second: Estimate) -> bool:
    lowest = min(one.upper for one in (first, second) if one.upper is not None) if first.upper or second.upper else None
    return lowest is None or max(first.lower, second.lower) <= lowest


def shape(found: ScheduleEstimate) -> list[tuple[int, int, int]]:
    """How many passes each request is in, and how many rows the last one of its prompt has."""
    return [(one.request, one.first_token_pass, one.last_token_pass) for one in found.summary.requests]


@given(st.data(), engines(has_ranges=st.booleans()), st.sampled_from([-1, 1]))
def test_a_measured_question_and_one_token_beside_it_have_intervals_that_overlap(
    data: st.DataObject, engine: EngineCalibration, step: int
) -> None:
    point: EnginePoint = data.draw(st.sampled_from(engine.table.points))
    changed = data.draw(st.integers(0, len(point.requests) - 1))
    beside = tuple(
        evolve(request, prompt_tokens=request.prompt_tokens + step) if index == changed else request
        for index, request in enumerate(point.requests)
    )
    measured, near = answered(engine, point.requests), answered(engine, beside)
    assume(shape(measured) == shape(near))
    for first, second in zip(calibrated(measured), calibrated(near), strict=True):
        assert overlap(first, second)


@given(engines(has_ranges=st.booleans()), REQUESTS | TIMED_REQUESTS, st.sampled_from([2, 4, 8]))
def test_no_time_that_was_fitted_or_measured_is_without_width(
    engine: EngineCalibration, requests: tuple[EngineRequest, ...], ranks: int
) -> None:
    layout = ParallelLayout(tensor_parallel_size=ranks)
    for asked in (requests, engine.table.points[0].requests):
        for answer in calibrated(answered(engine, asked, layout=layout)):
            assert answer.lower <= expected(answer)
            assert answer.upper is None or answer.upper > answer.lower
            assert answer.upper is None or answer.upper >= expected(answer)


@given(st.data(), engines(has_ranges=st.booleans()), LINKS, BURSTS)
def test_passes_add_up_to_the_last_first_token_of_a_measured_question(
    data: st.DataObject, engine: EngineCalibration, link: Link, bursts: Any
) -> None:
    point: EnginePoint = data.draw(st.sampled_from(engine.table.points))
    found = answered(engine, point.requests, to_link=link, to_bursts=bursts)
    check_parts(found)


@given(engines(has_ranges=st.booleans()), REQUESTS)
def test_passes_add_up_to_the_last_first_token_of_any_question(
    engine: EngineCalibration, requests: tuple[EngineRequest, ...]
) -> None:
    if all(not request.arrival_pass for request in requests):
        check_parts(answered(engine, requests))


@given(st.data(), engines(has_ranges=st.booleans()))
def test_a_measured_question_is_answered_as_it_was_measured_with_its_rounds(
    data: st.DataObject, engine: EngineCalibration
) -> None:
    point: EnginePoint = data.draw(st.sampled_from(engine.table.points))
    summary = answered(engine, point.requests).summary
    assert summary.last_ttft is not None
    last, least = summary.last_ttft.calibrated_ttft_seconds, summary.last_ttft.ttft_seconds.lower
    seconds, rounds = point.last_ttft_seconds, point.last_ttft_range_seconds
    if point.ttft_seconds:
        seconds = point.ttft_seconds[-1]
        rounds = point.ttft_range_seconds[-1] if point.ttft_range_seconds else None
    if seconds is not None and last is not None:
        found = range_of(seconds, rounds)
        assert close(expected(last), seconds)
        assert close(last.lower, max(found.least, least))
        assert close(upper(last), found.largest)
    speeds = [one.output_tokens_per_second for one in summary.requests]
    if point.output_tokens_per_second is not None and None not in speeds:
        assert close(sum(map(expected, speeds)) / len(speeds), point.output_tokens_per_second)


def check_parts(found: ScheduleEstimate) -> None:
    """Of requests that all arrive with the first pass."""
    last = found.summary.last_ttft
    if last is None or last.calibrated_ttft_seconds is None:
        return
    first_tokens = max(one.first_token_pass for one in found.summary.requests)
    shown = list(zip(found.passes, itertools.accumulate(one.repeat for one in found.passes), strict=True))
    parts = [one.seconds for one, end in shown if end - one.repeat <= first_tokens]
    if any(end - one.repeat <= first_tokens < end - 1 for one, end in shown):
        # Passes of as many rows that generate are shown together with the last one of the prompt.
        return
    total = sum(expected(part) for part in parts)
    # But for a link that would need longer for the bytes than the measured time leaves.
    if expected(last.calibrated_ttft_seconds) > last.ttft_seconds.lower * (1 + TOLERANCE):
        assert close(total, expected(last.calibrated_ttft_seconds))
