"""Questions that were measured: what is answered where the fit cannot reach it, and what their passes add up to."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from attrs import evolve

from estimator_service.core.engine_times.estimate import estimate_schedule
from estimator_service.core.engine_times.fit import fit_engine
from linkbound.domain.catalog import Model
from linkbound.domain.engine import BurstPoint, BurstTable, EnginePoint, EngineRequest, EngineTable
from linkbound.domain.estimate import Basis, Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.measured_range import MeasuredRange
from linkbound.domain.schedule import ScheduleEstimate, ScheduleRequest, TtftEstimates
from tests.unit.estimator.engine_models import (
    MEGABIT,
    MODEL,
    SENDING_MODEL,
    Parts,
    engine_table,
    measured_table,
    request,
)

PARTS = Parts(attended_token=2e-6, prompt_pass=0.05, context_token=2e-6)
# 400 rows in one pass over 1 Mb/s: 60 bytes of each, and 1,024 of the logits of one.
BYTES_SECONDS = (400 * 60 + 1024) * 8 / MEGABIT
# Every transfer may take twice as long, and half of that is likely.
HALF_RATE = BurstTable(
    points=(BurstPoint(message_bytes=1, least_bits_per_second=MEGABIT // 4, largest_bits_per_second=MEGABIT // 2),),
    least_header_ratio=1.0,
)


def asked(
    table: EngineTable, requests: tuple[EngineRequest, ...], model: Model = MODEL, **details: Any
) -> ScheduleEstimate:
    question = ScheduleRequest(requests=requests, engine_table=table, **details)
    return estimate_schedule(question, model, fit_engine(table, model))


def seconds_of(ttft: TtftEstimates | None) -> Estimate:
    assert ttft is not None
    assert ttft.calibrated_ttft_seconds is not None
    return ttft.calibrated_ttft_seconds


def ends(found: Estimate | None) -> tuple[float | None, ...]:
    assert found is not None
    return found.lower, found.expected, found.upper


def passes_until(found: ScheduleEstimate, first_token_pass: int) -> float:
    through = itertools.accumulate(one.repeat for one in found.passes)
    parts = [
        one.seconds for one, end in zip(found.passes, through, strict=True) if end - one.repeat <= first_token_pass
    ]
    return sum(part.expected or 0.0 for part in parts if part is not None)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_measured_output_speed_leaves_the_passes_of_prompts_as_they_are_fitted(factor: float) -> None:
    table = measured_table(PARTS)
    first, *others = table.points
    speed = EnginePoint(
        label="speed", requests=first.requests, output_tokens_per_second=factor * (first.output_tokens_per_second or 0)
    )
    found = asked(evolve(table, points=(*others, speed)), first.requests)
    (times,) = found.summary.requests
    ttft = seconds_of(times.ttft).expected or 0.0
    assert passes_until(found, times.first_token_pass) == pytest.approx(ttft)
    behind = passes_until(found, found.summary.pass_count) - ttft
    assert behind == pytest.approx(19 / (speed.output_tokens_per_second or 0))


def watched_point(seconds: float, least: float, largest: float) -> EngineTable:
    """One prompt over a link whose bursts reach half its rate: likely transfers are half as much again as bytes."""
    found = MeasuredRange(least=least, largest=largest)
    point = EnginePoint(label="a", requests=(request(400),), ttft_seconds=(seconds,), ttft_range_seconds=(found,))
    return evolve(engine_table(point), bursts=HALF_RATE)


@pytest.mark.parametrize(
    ("seconds", "least", "largest"),
    [
        pytest.param(1.2, 1.1, 1.4, id="faster than the likely transfers"),
        pytest.param(1.3, 1.1, 2.0, id="with a round that is slower"),
        pytest.param(1.7, 1.1, 2.5, id="slower, with a round that is faster"),
    ],
)
def test_a_measured_time_is_answered_with_its_rounds_however_long_transfers_are_likely_to_take(
    seconds: float, least: float, largest: float
) -> None:
    times = tuple(factor * BYTES_SECONDS for factor in (seconds, least, largest))
    found = asked(watched_point(*times), (request(400),), SENDING_MODEL)
    ttft = seconds_of(found.summary.last_ttft)
    assert ends(ttft) == pytest.approx((times[1], times[0], times[2]))
    assert ttft.expected_basis is Basis.MEASURED
    assert ends(seconds_of(found.summary.mean_ttft)) == pytest.approx(ends(ttft))
    assert passes_until(found, found.summary.requests[0].first_token_pass) == pytest.approx(times[0])
    # Another link adds to what was measured, and nothing of it is lost.
    slow = Link(line_rate_bits_per_second=MEGABIT // 10)
    bursts = BurstTable(
        points=(
            BurstPoint(message_bytes=1, least_bits_per_second=MEGABIT // 20, largest_bits_per_second=MEGABIT // 20),
        ),
        least_header_ratio=1.0,
    )
    over = asked(watched_point(*times), (request(400),), SENDING_MODEL, to_link=slow, to_bursts=bursts)
    changed = over.summary.last_ttft
    assert changed is not None
    assert changed.calibrated_extra_ttft_seconds is not None
    extra = changed.calibrated_extra_ttft_seconds.expected or 0.0
    assert extra == pytest.approx((15 - 1.5) * BYTES_SECONDS)
    assert seconds_of(changed).expected == pytest.approx(times[0] + extra)
    assert passes_until(over, over.summary.requests[0].first_token_pass) == pytest.approx(times[0] + extra)


def test_passes_faster_than_their_transfers_are_likely_to_be_are_no_faster_than_their_bytes() -> None:
    """Passes of 400 and 200 rows; payloads of the second one are half as far from the full rate."""
    bursts = BurstTable(
        points=tuple(
            BurstPoint(message_bytes=size, least_bits_per_second=rate, largest_bits_per_second=rate)
            for size, rate in ((200 * 20, MEGABIT // 2), (400 * 20, MEGABIT * 9 // 10))
        ),
        least_header_ratio=1.0,
    )
    least = (600 * 60 + 2 * 1024) * 8 / MEGABIT
    point = EnginePoint(label="a", requests=(request(600),), ttft_seconds=(1.01 * least,))
    found = asked(evolve(engine_table(point), bursts=bursts), (request(600),), SENDING_MODEL)
    first, second = found.passes[:2]
    assert passes_until(found, 1) == pytest.approx(1.01 * least)
    for one in (first, second):
        assert one.seconds is not None
        assert one.network_seconds is not None
        assert (one.seconds.expected or 0.0) >= one.network_seconds.lower * (1 - 1e-9)


def test_transfers_that_took_less_than_is_likely_do_so_over_other_ranks() -> None:
    """Other points have arithmetic, and this one has none: it is 1.2 times the bytes, of which four send 1.5 times."""
    slow = (
        EnginePoint(label=label, requests=(request(800),), ttft_seconds=(6 * BYTES_SECONDS,)) for label in "bcdefgh"
    )
    table = watched_point(1.2 * BYTES_SECONDS, 1.1 * BYTES_SECONDS, 1.4 * BYTES_SECONDS)
    four = ParallelLayout(tensor_parallel_size=4)
    table = evolve(table, points=(*table.points, *slow))
    engine = fit_engine(table, SENDING_MODEL)
    assert any(term.seconds > 0 for term in engine.terms)
    found = seconds_of(asked(table, (request(400),), SENDING_MODEL, layout=four).summary.last_ttft)
    assert found.expected == pytest.approx(1.2 * 1.5 * BYTES_SECONDS)


def test_no_round_is_faster_than_the_bytes() -> None:
    table = watched_point(1.2 * BYTES_SECONDS, 0.9 * BYTES_SECONDS, 1.4 * BYTES_SECONDS)
    found = seconds_of(asked(table, (request(400),), SENDING_MODEL).summary.last_ttft)
    assert ends(found) == pytest.approx((BYTES_SECONDS, 1.2 * BYTES_SECONDS, 1.4 * BYTES_SECONDS))


def test_several_first_tokens_faster_than_their_transfers_are_likely_to_be_add_up_too() -> None:
    tokens = (100, 500, 600)
    bare = evolve(engine_table(EnginePoint(label="a", requests=(request(400),), ttft_seconds=(9.0,))), bursts=HALF_RATE)
    requests = tuple(map(request, tokens))
    bytes_seconds = [
        one.ttft.ttft_seconds.lower for one in asked(bare, requests, SENDING_MODEL).summary.requests if one.ttft
    ]
    times = tuple(factor * seconds for factor, seconds in zip((1.1, 1.2, 1.3), bytes_seconds, strict=True))
    assert times == tuple(sorted(times))
    table = evolve(bare, points=(EnginePoint(label="a", requests=requests, ttft_seconds=times),))
    found = asked(table, requests, SENDING_MODEL)
    for one, seconds in zip(found.summary.requests, times, strict=True):
        assert ends(seconds_of(one.ttft)) == pytest.approx(
            (max(0.95 * seconds, bytes_seconds[one.request]), seconds, 1.05 * seconds)
        )
        assert passes_until(found, one.first_token_pass) == pytest.approx(seconds)


def test_a_measured_output_speed_is_answered_however_long_transfers_are_likely_to_take() -> None:
    """A row of one request takes 8.67 ms of bytes, 13.0 ms likely; it generates a token in 10 ms, in 9 to 16 ms."""
    speeds = MeasuredRange(least=1 / 0.016, largest=1 / 0.009)
    point = EnginePoint(
        label="a",
        requests=(request(400),),
        ttft_seconds=(2.0,),
        output_tokens_per_second=100.0,
        output_range_tokens_per_second=speeds,
    )
    table = evolve(engine_table(point), bursts=HALF_RATE)
    found = asked(table, point.requests, SENDING_MODEL)
    speed = found.summary.requests[0].output_tokens_per_second
    assert ends(speed) == pytest.approx((speeds.least, 100.0, speeds.largest))
    assert passes_until(found, found.summary.pass_count) == pytest.approx(2.0 + 19 * 0.01)


def shares_of_a_mean(*factors: float) -> tuple[tuple[float, ...], ScheduleEstimate]:
    """TTFTs in rising order, and what is answered where their mean alone was measured as so many times as much.

    The fit is that of the other points.
    """
    table = measured_table(PARTS)
    (true,) = [one for one in table.points if one.label == "500+400+300"]
    mean = sum(true.ttft_seconds) / 3
    rest = tuple(one for one in table.points if one is not true)
    means = [
        EnginePoint(label=f"{factor}", requests=true.requests, mean_ttft_seconds=factor * mean) for factor in factors
    ]
    engine = fit_engine(evolve(table, points=rest), MODEL)
    moved = evolve(engine, table=evolve(table, points=(*rest, *means)))
    question = ScheduleRequest(requests=true.requests, engine_table=moved.table)
    return true.ttft_seconds, estimate_schedule(question, MODEL, moved)


def rising(found: ScheduleEstimate) -> list[Estimate]:
    return sorted((seconds_of(one.ttft) for one in found.summary.requests), key=lambda one: one.expected or 0.0)


def test_a_question_that_was_measured_by_its_mean_alone_twice_spans_both() -> None:
    true, found = shares_of_a_mean(0.9, 1.5)
    for one, seconds in zip(rising(found), true, strict=True):
        assert one.expected == pytest.approx(1.2 * seconds)
        assert one.lower < 0.9 * seconds
        assert one.upper is None or one.upper > 1.5 * seconds
    mean = sum(true) / 3
    assert ends(seconds_of(found.summary.mean_ttft)) == pytest.approx(
        (0.9 * 0.95 * mean, 1.2 * mean, 1.5 * 1.05 * mean)
    )


def test_a_share_of_a_measured_mean_is_off_in_proportion_to_its_time() -> None:
    """The fit leaves a point that differs from it by a fifth as much, whichever way that is."""
    (true, less), (_, more) = (shares_of_a_mean(factor) for factor in (0.8, 1.2))
    for seconds, low, high in zip(true, rising(less), rising(more), strict=True):
        assert (low.expected, high.expected) == pytest.approx((0.8 * seconds, 1.2 * seconds))
        assert low.upper is not None
        assert high.upper is not None
        below, above = (low.lower / 0.8, high.lower / 1.2), (low.upper / 0.8, high.upper / 1.2)
        assert below[0] == pytest.approx(below[1], rel=1e-3)
        assert above[0] == pytest.approx(above[1], rel=1e-3)


def test_a_mean_that_was_measured_beside_first_tokens_has_both_in_its_interval() -> None:
    tokens = (request(500), request(400))
    own = EnginePoint(label="own", requests=tokens, ttft_seconds=(0.9, 1.1))
    mean = EnginePoint(label="mean", requests=tokens, mean_ttft_seconds=1.6)
    found = seconds_of(asked(engine_table(own, mean), tokens).summary.mean_ttft)
    assert found.expected == pytest.approx(1.0)
    assert (found.lower, found.upper) == pytest.approx((0.95, 1.6 * 1.05))


def test_rounds_are_split_over_other_ranks_as_arithmetic_is_and_what_may_be_fixed_is_not() -> None:
    """One point leaves open how much of its passes is fixed: of 0.8 s all, half of which would be split."""
    point = EnginePoint(
        label="a",
        requests=(request(800),),
        ttft_seconds=(0.8,),
        ttft_range_seconds=(MeasuredRange(least=0.7, largest=1.0),),
    )
    four = ParallelLayout(tensor_parallel_size=4)
    found = seconds_of(asked(engine_table(point), point.requests, layout=four).summary.last_ttft)
    assert ends(found) == pytest.approx((0.35, 0.4, 0.5 + 0.4))
