"""Laws of the times of one answer to each other: their order, and what does not depend on when the clock starts."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from estimator_service.core.engine_times import words
from linkbound.domain.engine import EngineCalibration, EnginePoint, EngineRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.schedule import ScheduleEstimate
from tests.property.engine_strategies import LAYOUT, REQUESTS, TIMED_REQUESTS, answered, engines, ttfts

SAME = 1e-6
"""Times count from another start: what that rounds."""


def calibrated(found: ScheduleEstimate) -> list[Estimate | None]:
    return [one.calibrated_ttft_seconds for one in ttfts(found)]


def is_same(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return abs(first - second) <= SAME * max(abs(first), abs(second), 1e-3)


def later(request: EngineRequest, pass_count: int, seconds: float) -> EngineRequest:
    if request.arrival_seconds is not None:
        return evolve(request, arrival_seconds=request.arrival_seconds + seconds)
    return evolve(request, arrival_pass=(request.arrival_pass or 0) + pass_count)


@given(st.data(), engines(), st.integers(1, 9), st.sampled_from([0.5, 5.0, 64.0]))
def test_a_shift_of_all_arrivals_changes_no_ttft(
    data: st.DataObject, engine: EngineCalibration, pass_count: int, seconds: float
) -> None:
    point: EnginePoint = data.draw(st.sampled_from(engine.table.points))
    at_once = tuple(evolve(one, arrival_seconds=0.0) for one in point.requests)
    for requests in (point.requests, at_once, data.draw(REQUESTS)):
        shifted = tuple(later(one, pass_count, seconds) for one in requests)
        found, then = answered(engine, requests), answered(engine, shifted)
        for first, second in zip(calibrated(found), calibrated(then), strict=True):
            assert (first is None) == (second is None)
            if first is not None and second is not None:
                assert is_same(first.lower, second.lower)
                assert is_same(first.expected, second.expected)
                assert is_same(first.upper, second.upper)


@given(st.data(), engines(has_ranges=st.booleans()))
def test_first_tokens_of_later_passes_have_later_intervals(data: st.DataObject, engine: EngineCalibration) -> None:
    """But for those that were measured themselves, which are answered as they were."""
    point: EnginePoint = data.draw(st.sampled_from(engine.table.points))
    others = tuple(evolve(one, prompt_tokens=one.prompt_tokens + 100) for one in point.requests)
    for requests in (point.requests, others, data.draw(REQUESTS), data.draw(TIMED_REQUESTS)):
        found = answered(engine, requests)
        if words.APART_FROM_PASSES in found.summary.assumptions:
            continue
        is_measured = words.MEASURED_ITSELF in found.summary.assumptions and bool(point.ttft_seconds)
        instants = [
            (one.first_token_pass, (requests[one.request].arrival_seconds or 0.0), one.ttft.calibrated_ttft_seconds)
            for one in found.summary.requests
            if one.ttft is not None and (requests[one.request].arrival_pass or 0) == (requests[0].arrival_pass or 0)
        ]
        for first, arrival, before in instants if not is_measured else ():
            for later_first, later_arrival, after in instants:
                if first > later_first or before is None or after is None:
                    continue
                assert arrival + before.lower <= (later_arrival + after.lower) * (1 + SAME)
                if after.upper is not None:
                    assert before.upper is not None
                    assert arrival + before.upper <= (later_arrival + after.upper) * (1 + SAME)


@given(engines(has_ranges=st.booleans()), st.integers(1, 20_000))
def test_passes_of_a_lone_prompt_shown_as_one_take_what_its_first_token_does(
    engine: EngineCalibration, tokens: int
) -> None:
    for point in (None, *engine.table.points):
        requests = (EngineRequest(prompt_tokens=tokens, output_tokens=2),) if point is None else point.requests
        found = answered(engine, requests)
        last, only = found.summary.last_ttft, found.passes[0]
        if last is None or last.calibrated_ttft_seconds is None or only.seconds is None:
            continue
        if only.repeat == 1 + max(one.first_token_pass for one in found.summary.requests):
            ttft = last.calibrated_ttft_seconds
            assert only.seconds.lower >= ttft.lower * (1 - SAME)
            assert ttft.upper is None or (only.seconds.upper or 0.0) <= ttft.upper * (1 + SAME)


@given(st.data(), engines(has_ranges=st.booleans()), st.sampled_from([1, 2, 4, 16]))
def test_an_interval_on_other_ranks_is_no_narrower_than_on_those_measured(
    data: st.DataObject, engine: EngineCalibration, ranks: int
) -> None:
    """As a share of the time; but for what the bytes alone and other first tokens leave."""
    tokens = data.draw(st.integers(1, 20_000))
    alone = tuple(one.requests for one in engine.table.points if len(one.requests) == 1)
    for requests in (*alone, (EngineRequest(prompt_tokens=tokens, output_tokens=2),)):
        found, then = (
            answered(engine, requests),
            answered(engine, requests, layout=evolve(LAYOUT, tensor_parallel_size=ranks)),
        )
        for first, second in zip(ttfts(found), ttfts(then), strict=True):
            here, there = first.calibrated_ttft_seconds, second.calibrated_ttft_seconds
            if here is None or there is None or not here.expected or not there.expected:
                continue
            if there.upper is not None:
                assert here.upper is not None
                assert there.upper / there.expected >= here.upper / here.expected * (1 - SAME)
            if there.lower > second.ttft_seconds.lower * (1 + SAME):
                assert there.lower / there.expected <= here.lower / here.expected * (1 + SAME)
