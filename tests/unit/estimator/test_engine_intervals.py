"""How far times of a calibrated engine may be off: at a measured point, within what was measured, and beyond it."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from attrs import evolve

from estimator_service.core.engine_times import words
from estimator_service.core.engine_times.estimate import estimate_schedule
from estimator_service.core.engine_times.fit import fit_engine
from estimator_service.core.engine_times.spread import EXACT, FitSpread
from estimator_service.core.engine_times.work import Counts, Work
from linkbound.domain.engine import EnginePoint, EngineRequest, EngineTable
from linkbound.domain.estimate import Estimate
from linkbound.domain.measured_range import MeasuredRange
from linkbound.domain.schedule import ScheduleEstimate, ScheduleRequest, TtftEstimates
from tests.unit.estimator.engine_models import MODEL, Parts, engine_table, measured_point, measured_table, request

# A lone prompt is read 400 rows a pass; transfers take nothing.
SECONDS_PER_ROW = 1e-3


def point(label: str, *tokens: int, **figures: Any) -> EnginePoint:
    return EnginePoint(label=label, requests=tuple(map(request, tokens)), **figures)


def asked(table: EngineTable, *requests: EngineRequest) -> ScheduleEstimate:
    question = ScheduleRequest(requests=requests, engine_table=table)
    return estimate_schedule(question, MODEL, fit_engine(table, MODEL))


def seconds_of(ttft: TtftEstimates | None) -> Estimate:
    assert ttft is not None
    assert ttft.calibrated_ttft_seconds is not None
    return ttft.calibrated_ttft_seconds


def ttft(table: EngineTable, *tokens: int) -> Estimate:
    return seconds_of(asked(table, *map(request, tokens)).summary.last_ttft)


def speed(table: EngineTable, *requests: EngineRequest) -> Estimate:
    found = asked(table, *requests).summary.requests[0].output_tokens_per_second
    assert found is not None
    return found


def proportional(*tokens: int, ranges: float | None = None) -> EngineTable:
    """Prompts alone, each in proportion to its length, with rounds that lie so far apart either way."""
    points = []
    for count in tokens:
        seconds = SECONDS_PER_ROW * count
        found = () if ranges is None else (MeasuredRange(least=seconds * (1 - ranges), largest=seconds * (1 + ranges)),)
        points.append(point(f"{count}", count, ttft_seconds=(seconds,), ttft_range_seconds=found))
    return engine_table(*points)


FULL_PASSES = (400, 800, 1200, 1600)


@pytest.mark.parametrize(("tokens", "scatter"), [(2000, None), (6400, None), (6400, 0.02), (32_000, 0.01)])
def test_beyond_what_was_measured_the_interval_is_that_of_least_squares(tokens: int, scatter: float | None) -> None:
    """Seconds per row on a straight line over n = 1, 2, 3, 4: at n it scatters by (1/4 + (n - 2.5)^2 / 5)^(1/2)."""
    found = ttft(proportional(*FULL_PASSES, ranges=scatter), tokens)
    noise = scatter or 0.05
    off = math.hypot(noise, noise * math.sqrt(1 / 4 + (tokens / 400 - 2.5) ** 2 / 5))
    expected = SECONDS_PER_ROW * tokens
    assert found.expected == pytest.approx(expected)
    assert found.lower == pytest.approx(expected / (1 + off), rel=1e-3)
    assert found.upper == pytest.approx(expected / (1 - off), rel=1e-3)


def test_where_scatter_alone_explains_any_time_nothing_bounds_it_from_above() -> None:
    found = asked(proportional(*FULL_PASSES), request(32_000))
    far = seconds_of(found.summary.last_ttft)
    assert far.upper is None
    assert 0 < far.lower < 0.5 * (far.expected or 0)
    assert words.FAR_BEYOND in found.summary.assumptions
    near = asked(proportional(*FULL_PASSES), request(6400))
    assert words.FAR_BEYOND not in near.summary.assumptions


def test_within_what_was_measured_the_interval_stays_close_to_the_scatter_of_rounds() -> None:
    within = ttft(proportional(400, 800, 1600), 1200)
    assert (within.upper or 0) / (within.expected or 1) < 1.08
    assert within.lower / (within.expected or 1) > 0.92


ONE_LENGTH = engine_table(*(evolve(point("", 400, ttft_seconds=(0.4,)), label=label) for label in "abc"))


def test_what_no_point_tells_apart_may_take_all_of_the_time() -> None:
    """600 tokens in passes of 400 and 200 beside points of 400.

    Attention to 180,300 tokens where the points have 80,200, and two passes where they have one; but fewer pairs of
    rows in a pass, 200,000 beside 160,000: each may be all that a point took, and a twentieth more.
    """
    found = ttft(ONE_LENGTH, 600)
    most = 0.4 * 1.05
    attention, chunk = (180_300 / 80_200 - 1.5) * most, (1.5 - 200_000 / 160_000) * most
    off = math.hypot(0.05, 0.05 / math.sqrt(3))
    assert found.lower == pytest.approx(0.6 / (1 + off) - chunk)
    assert found.upper == pytest.approx(0.6 / (1 - off) + attention)


def test_points_of_one_length_bound_no_long_prompt_from_above() -> None:
    found = asked(ONE_LENGTH, request(6400))
    assert seconds_of(found.summary.last_ttft).upper is None
    assert words.FAR_BEYOND in found.summary.assumptions


def test_single_prompts_bound_no_prompts_together_from_above() -> None:
    table = measured_table(Parts(attended_token=2e-6, prompt_pass=0.05))
    alone = evolve(table, points=tuple(one for one in table.points if len(one.requests) == 1))
    assert ttft(alone, 900).upper is not None
    assert ttft(alone, 450, 450).upper is None
    assert ttft(table, 450, 450).upper is not None


def test_output_speeds_beyond_measured_contexts_and_counts_are_less_certain() -> None:
    parts = Parts(attended_token=2e-6, prompt_pass=0.05, context_token=2e-6)
    table = measured_table(parts)

    def width(*requests: EngineRequest) -> float:
        found = speed(table, *requests)
        assert found.upper is not None
        return (found.upper - found.lower) / (found.expected or 1)

    assert 0.1 < width(request(1000)) < 0.15
    assert width(request(40_000)) > 1.05 * width(request(1000))
    assert width(*map(request, [100] * 8)) > 1.5 * width(*map(request, [100] * 4))
    alone = evolve(table, points=tuple(one for one in table.points if len(one.requests) == 1))
    together = speed(alone, request(100), request(100))
    assert together.lower == 0
    assert (together.upper or 0) > (together.expected or 0)


def test_passes_of_each_kind_are_off_as_the_fit_of_their_kind_is() -> None:
    """6 s of prompts off by half and 4 s of generating off by a tenth: by 0.34 together."""
    spread = FitSpread(ttft_error_ratio=0.5, decode_error_ratio=0.1)
    one, none = Counts(passes=1.0, rows=1.0), Counts()
    both = spread.off(Work(prompt=one, generating=one), 10.0, 4.0)
    assert both is not None
    assert (both.below, both.above) == pytest.approx((3.4 / 1.34, 3.4 / 0.66))
    untold = FitSpread(ttft_error_ratio=0.5)
    assert untold.off(Work(prompt=one, generating=one), 10.0, 4.0) is None
    assert untold.off(Work(prompt=one, generating=none), 10.0, 0.0) == spread.off(Work(prompt=one), 10.0, 0.0)
    assert untold.off(Work(), 0.0, 0.0) == EXACT


def test_a_time_between_tokens_is_as_uncertain_as_the_prompts_that_others_read_meanwhile() -> None:
    """TTFTs that the fit misses by half, and output speeds that it does not miss."""
    table = measured_table(Parts(attended_token=2e-6, prompt_pass=0.05))
    factors = itertools.cycle((0.6, 1.4, 1.0))
    points = tuple(
        evolve(one, ttft_seconds=tuple(sorted(factor * seconds for seconds in one.ttft_seconds)))
        for one, factor in zip(table.points, factors, strict=False)
    )
    found = asked(evolve(table, points=points), request(400, 60), request(6000, 2, arrival_pass=3))
    generated, of_prompt = found.summary.requests[0].output_tokens_per_second, found.summary.requests[1].ttft
    assert generated is not None
    seconds, read = [59 / (speed or 1) for speed in (generated.upper, generated.expected)], seconds_of(of_prompt)
    # Nearly all of it is that prompt.
    assert (read.expected or 0) > 0.9 * seconds[1]
    assert seconds[0] / seconds[1] == pytest.approx(read.lower / (read.expected or 1), rel=0.05)


def test_parted_requests_that_lie_beyond_what_was_measured_are_said_to() -> None:
    """Where the first one has a pass to itself, more of what the second one takes to answer lies beyond the points."""
    together = (measured_point(f"2 x {count}", (request(count), request(count)), Parts()) for count in (300, 600, 900))
    table = engine_table(*proportional(*FULL_PASSES).points, *together)
    engine = fit_engine(table, MODEL)
    for may_split in (False, True):
        question = ScheduleRequest(
            requests=(request(14_850), request(7425)), engine_table=table, arrivals_may_split=may_split
        )
        summary = estimate_schedule(question, MODEL, engine).summary
        slowest = [one.output_tokens_per_second.lower for one in summary.requests if one.output_tokens_per_second]
        assert (0.0 in slowest) is may_split
        assert (words.FAR_BEYOND in summary.assumptions) is may_split


def test_a_measured_question_has_the_range_of_its_rounds() -> None:
    rounds = MeasuredRange(least=0.78, largest=0.9)
    speeds = MeasuredRange(least=40.0, largest=55.0)
    table = engine_table(
        point(
            "a",
            800,
            ttft_seconds=(0.8,),
            ttft_range_seconds=(rounds,),
            output_tokens_per_second=50.0,
            output_range_tokens_per_second=speeds,
        ),
        point("b", 400, ttft_seconds=(0.5,), output_tokens_per_second=50.0),
    )
    found = ttft(table, 800)
    assert (found.lower, found.expected, found.upper) == pytest.approx((0.78, 0.8, 0.9))
    generated = speed(table, request(800))
    assert (generated.lower, generated.expected, generated.upper) == pytest.approx((40, 50, 55))


def test_rounds_that_are_all_alike_say_nothing_of_how_they_scatter() -> None:
    alike = MeasuredRange(least=0.8, largest=0.8)
    table = engine_table(point("a", 800, ttft_seconds=(0.8,), ttft_range_seconds=(alike,)))
    found = ttft(table, 800)
    assert (found.lower, found.upper) == pytest.approx((0.76, 0.84))


def test_a_measured_mean_has_its_own_range() -> None:
    """The last one too; the others share what is left of the mean."""
    table = engine_table(
        point(
            "a",
            600,
            600,
            last_ttft_seconds=1.3,
            last_ttft_range_seconds=MeasuredRange(least=1.25, largest=1.5),
            mean_ttft_seconds=1.2,
            mean_ttft_range_seconds=MeasuredRange(least=1.1, largest=1.22),
        )
    )
    summary = asked(table, request(600), request(600)).summary
    last, mean = seconds_of(summary.last_ttft), seconds_of(summary.mean_ttft)
    assert (last.lower, last.expected, last.upper) == pytest.approx((1.25, 1.3, 1.5))
    assert (mean.lower, mean.expected, mean.upper) == pytest.approx((1.1, 1.2, 1.22))


def test_requests_that_arrive_at_once_are_those_that_arrive_with_the_first_pass() -> None:
    timed = EnginePoint(label="a", requests=(request(800, arrival_seconds=0.0),), ttft_seconds=(0.9,))
    assert ttft(engine_table(timed), 800).expected == pytest.approx(0.9)


def passes_until(found: ScheduleEstimate, first_token_pass: int) -> float:
    ends = itertools.accumulate(one.repeat for one in found.passes)
    parts = [one.seconds for one, end in zip(found.passes, ends, strict=True) if end - one.repeat <= first_token_pass]
    return sum(part.expected or 0.0 for part in parts if part is not None)


def test_passes_of_a_measured_question_add_up_to_each_first_token() -> None:
    parts = Parts(attended_token=2e-6, prompt_pass=0.05)
    table = measured_table(parts)
    tokens = (500, 400, 300)
    (true,) = [one for one in table.points if one.label == "500+400+300"]
    measured = tuple(factor * seconds for factor, seconds in zip((1.2, 0.9, 1.1), true.ttft_seconds, strict=True))
    points = tuple(evolve(one, ttft_seconds=measured) if one is true else one for one in table.points)
    found = asked(evolve(table, points=points), *map(request, tokens))
    times = sorted((one.first_token_pass, seconds_of(one.ttft).expected or 0.0) for one in found.summary.requests)
    assert [seconds for _, seconds in times] == pytest.approx(sorted(measured))
    assert [passes_until(found, first) for first, _ in times] == pytest.approx([seconds for _, seconds in times])
    assert words.APART_FROM_PASSES not in found.summary.assumptions


def test_a_first_token_that_was_measured_later_than_the_last_one_gives_way() -> None:
    """Rows of 400, 1101 and 1204. The mean leaves 1.8 s to the first two: 0.48 s and 1.32 s."""
    tokens = (100, 500, 600)
    measured = point("a", *tokens, last_ttft_seconds=0.9, mean_ttft_seconds=0.9)
    other = measured_point("b", (request(400),), Parts())
    found = asked(engine_table(measured, other), *map(request, tokens))
    first, second, last = (one.first_token_pass for one in found.summary.requests)
    assert first < second < last
    assert seconds_of(found.summary.requests[1].ttft).expected == pytest.approx(1.8 * 1101 / 1501)
    assert words.APART_FROM_PASSES in found.summary.assumptions
    assert passes_until(found, last) == pytest.approx(0.9)
    assert passes_until(found, first) < passes_until(found, second) < 0.9


def test_first_tokens_of_one_pass_that_were_measured_apart_are_said_to_be() -> None:
    together = point("a", 100, 100, ttft_seconds=(0.2, 0.3))
    found = asked(engine_table(together), request(100), request(100))
    assert {one.first_token_pass for one in found.summary.requests} == {0}
    assert words.APART_FROM_PASSES in found.summary.assumptions
    assert passes_until(found, 0) == pytest.approx(0.3)


def test_passes_behind_the_last_first_token_have_the_measured_output_speed() -> None:
    table = measured_table(Parts(attended_token=2e-6, prompt_pass=0.05))
    (true,) = [one for one in table.points if one.label == "800"]
    points = tuple(evolve(one, output_tokens_per_second=40.0) if one is true else one for one in table.points)
    found = asked(evolve(table, points=points), request(800))
    total = passes_until(found, found.summary.pass_count)
    assert total == pytest.approx(true.ttft_seconds[0] + 19 / 40.0)
