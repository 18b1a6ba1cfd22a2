"""Answers to the schedule question: passes alone, with links, with a calibrated engine."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from estimator_service.core.collective_time import fit
from estimator_service.core.engine_times import words
from estimator_service.core.engine_times.estimate import estimate_schedule
from estimator_service.core.engine_times.fit import fit_engine
from estimator_service.core.schedule import replay
from linkbound.domain.calibration import CollectivePoint, CollectiveTable
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.engine import BurstPoint, BurstTable, EnginePoint, EngineRequest, EngineTermKind
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.schedule import RequestTimes, ScheduleEstimate, ScheduleRequest, TtftEstimates
from tests.unit.estimator.engine_models import (
    LINK,
    MEGABIT,
    MODEL,
    SCHEDULER,
    SENDING_MODEL,
    Parts,
    engine_table,
    measured_table,
    request,
)

TWO_RANKS = ParallelLayout(tensor_parallel_size=2)
HALF = Link(line_rate_bits_per_second=MEGABIT // 2)
PARTS = Parts(attended_token=2e-6, prompt_pass=0.05)
TABLE = measured_table(PARTS)
ENGINE = fit_engine(TABLE, MODEL)
# The same engine with a model that sends: what it took includes the transfers of 1 Mb/s.
SENT_SECONDS_PER_ROW = 60 * 8 / MEGABIT
LOGITS_SECONDS = 1024 * 8 / MEGABIT


def asked(*requests: EngineRequest, **details: Any) -> ScheduleRequest:
    return ScheduleRequest(requests=requests, **details)


def calibrated(*requests: EngineRequest, **details: Any) -> ScheduleEstimate:
    return estimate_schedule(asked(*requests, engine_table=TABLE, **details), MODEL, ENGINE)


def ttft_of(times: RequestTimes) -> TtftEstimates:
    assert times.ttft is not None
    return times.ttft


def present(estimate: Estimate | None) -> Estimate:
    assert estimate is not None
    return estimate


def true_ttfts(*requests: EngineRequest) -> list[float]:
    """What the engine of `PARTS` takes from the first pass on."""
    seconds, first = 0.0, {}
    for found in replay(SCHEDULER, requests):
        seconds += PARTS.seconds(found)
        first.update(dict.fromkeys(found.first_tokens, seconds))
    return [first[index] for index in range(len(requests))]


def test_without_a_model_passes_alone_are_answered() -> None:
    found = estimate_schedule(asked(request(300), request(300), scheduler=SCHEDULER))
    shown = [([(share.request, share.tokens) for share in one.scheduled], one.repeat) for one in found.passes]
    assert shown[:2] == [([(0, 200), (1, 200)], 1), ([(0, 100), (1, 100)], 1)]
    assert sum(repeat for _, repeat in shown) == found.summary.pass_count
    assert [one.output_tokens for one in found.summary.requests] == [20, 20]
    assert all(one.ttft is None for one in found.summary.requests)
    assert found.summary.last_ttft is None
    assert all(one.network_seconds is None and one.seconds is None for one in found.passes)


def test_with_a_model_bytes_alone_bound_each_ttft_from_below() -> None:
    """Two passes of 400 and 200 rows, and logits of two rows each."""
    found = estimate_schedule(
        asked(
            request(300), request(300), scheduler=SCHEDULER, model="small", layout=TWO_RANKS, link=LINK, to_link=HALF
        ),
        SENDING_MODEL,
    )
    seconds = 600 * SENT_SECONDS_PER_ROW + 4 * LOGITS_SECONDS
    for times in found.summary.requests:
        ttft = ttft_of(times)
        assert ttft.ttft_seconds.lower == pytest.approx(2 * seconds)
        assert ttft.ttft_seconds.upper is None
        assert {Effect.COMPUTE_TIME, Effect.FIXED_OVERHEAD} <= set(ttft.ttft_seconds.effects_left_out)
        extra = present(ttft.extra_ttft_seconds)
        assert (extra.lower, extra.upper) == pytest.approx((0, seconds))
        assert ttft.calibrated_ttft_seconds is None
        assert ttft.calibrated_extra_ttft_seconds is None
    network = present(found.passes[0].network_seconds)
    assert network.lower == pytest.approx(2 * (400 * SENT_SECONDS_PER_ROW + 2 * LOGITS_SECONDS))
    assert network.expected is None
    assert found.passes[0].seconds is None


@pytest.mark.parametrize("tokens", [(170,), (700,), (1500,), (250, 250), (900, 120, 340), (60, 60, 60, 60, 60)])
def test_a_calibrated_engine_predicts_requests_that_it_never_saw(tokens: tuple[int, ...]) -> None:
    requests = tuple(map(request, tokens))
    found = calibrated(*requests)
    expected = [present(ttft_of(one).calibrated_ttft_seconds).expected for one in found.summary.requests]
    truth = true_ttfts(*requests)
    assert expected == pytest.approx(truth, rel=1e-6)
    last, mean = found.summary.last_ttft, found.summary.mean_ttft
    assert last is not None
    assert mean is not None
    assert present(last.calibrated_ttft_seconds).expected == pytest.approx(max(truth), rel=1e-6)
    assert present(mean.calibrated_ttft_seconds).expected == pytest.approx(sum(truth) / len(truth), rel=1e-6)


def test_passes_of_a_calibrated_engine_add_up_to_its_last_ttft() -> None:
    found = calibrated(request(900, 1), request(700, 1))
    total = sum(present(one.seconds).expected or 0.0 for one in found.passes)
    assert found.summary.last_ttft is not None
    assert total == pytest.approx(present(found.summary.last_ttft.calibrated_ttft_seconds).expected)


def test_output_speed_follows_the_passes_in_which_others_read_their_prompts() -> None:
    alone, beside = calibrated(request(100)), calibrated(request(100), request(3000))
    speed = present(alone.summary.requests[0].output_tokens_per_second)
    assert speed.expected == pytest.approx(1 / PARTS.decode_pass, rel=1e-6)
    assert (present(beside.summary.requests[0].output_tokens_per_second).expected or 0) < 0.5 * (speed.expected or 0)


def test_a_single_token_has_no_speed() -> None:
    assert calibrated(request(100, 1)).summary.requests[0].output_tokens_per_second is None


def test_a_ttft_counts_from_the_arrival() -> None:
    by_pass = calibrated(request(100, 1000), request(100, arrival_pass=50))
    first, second = (present(ttft_of(one).calibrated_ttft_seconds).expected for one in by_pass.summary.requests)
    # It arrives before a pass, joins it at once, and the row beside it attends to the tokens before it.
    assert first is not None
    assert second is not None
    assert first < second < first + 0.01
    late = calibrated(request(100, 1000, arrival_seconds=0.0), request(100, arrival_seconds=1.0))
    waited = present(ttft_of(late.summary.requests[1]).calibrated_ttft_seconds).expected
    assert waited is not None
    # At most what is left of a pass that generates.
    assert second <= waited <= second + PARTS.decode_pass


def test_after_an_idle_time_a_request_starts_at_once() -> None:
    apart = calibrated(request(100, arrival_seconds=3.0), request(100, arrival_seconds=60.0))
    first, second = (present(ttft_of(one).calibrated_ttft_seconds).expected for one in apart.summary.requests)
    assert first == pytest.approx(second)
    assert first == pytest.approx(true_ttfts(request(100))[0], rel=1e-6)


def sending_engine(seconds: float) -> tuple[EnginePoint, Any]:
    """One prompt of 1,000 tokens over 1 Mb/s: 0.504576 s of transfers, the rest arithmetic."""
    point = EnginePoint(label="one", requests=(request(1000),), ttft_seconds=(seconds,))
    return point, fit_engine(engine_table(point), SENDING_MODEL)


def test_a_question_that_was_measured_starts_from_what_was_measured() -> None:
    point, engine = sending_engine(2.0)
    found = estimate_schedule(asked(*point.requests, engine_table=engine.table), SENDING_MODEL, engine)
    ttft = present(ttft_of(found.summary.requests[0]).calibrated_ttft_seconds)
    # Nobody says how far its rounds lay apart: a twentieth.
    assert (ttft.lower, ttft.expected, ttft.upper) == pytest.approx((1.9, 2.0, 2.1))
    assert ttft.expected_basis is Basis.MEASURED
    assert words.MEASURED_ITSELF in found.summary.assumptions


def test_a_question_that_was_measured_twice_spans_both_times() -> None:
    """The same requests took 0.9 and 1.5 times what the engine takes, and generated 100 and 200 tokens per second.

    Each time scatters by a twentieth.
    """
    tokens = 800
    (point,) = [one for one in TABLE.points if one.label == f"{tokens}"]
    (seconds,) = point.ttft_seconds
    points = [one for one in TABLE.points if one is not point]
    for label, factor, speed in (("a", 0.9, 100.0), ("b", 1.5, 200.0)):
        times = (factor * seconds,)
        points.append(evolve(point, label=label, ttft_seconds=times, output_tokens_per_second=speed))
    for ordered in (points, points[::-1]):
        engine = fit_engine(evolve(TABLE, points=tuple(ordered)), MODEL)
        found = estimate_schedule(asked(request(tokens), engine_table=engine.table), MODEL, engine).summary
        assert found.mean_ttft is not None
        for whole in (ttft_of(found.requests[0]), found.mean_ttft):
            ttft = present(whole.calibrated_ttft_seconds)
            assert (ttft.lower, ttft.expected, ttft.upper) == pytest.approx(
                (0.95 * 0.9 * seconds, 1.2 * seconds, 1.05 * 1.5 * seconds)
            )
        speed_found = present(found.requests[0].output_tokens_per_second)
        assert (speed_found.lower, speed_found.upper) == pytest.approx((95, 210))
        assert speed_found.expected == pytest.approx(2 / (1 / 100 + 1 / 200))


def test_a_point_without_a_ttft_does_not_hide_one_that_has_it() -> None:
    (point,) = [one for one in TABLE.points if one.label == "800"]
    bare = evolve(point, label="speed", ttft_seconds=(), output_tokens_per_second=50.0)
    table = evolve(TABLE, points=(bare, *TABLE.points))
    engine = fit_engine(table, MODEL)
    found = estimate_schedule(asked(*point.requests, engine_table=table), MODEL, engine).summary
    ttft = present(ttft_of(found.requests[0]).calibrated_ttft_seconds)
    (seconds,) = point.ttft_seconds
    assert (ttft.lower, ttft.expected, ttft.upper) == pytest.approx((0.95 * seconds, seconds, 1.05 * seconds))
    assert ttft.expected_basis is Basis.MEASURED


def test_a_change_of_link_adds_transfers_alone() -> None:
    point, engine = sending_engine(2.0)
    found = estimate_schedule(asked(*point.requests, engine_table=engine.table, to_link=HALF), SENDING_MODEL, engine)
    ttft = ttft_of(found.summary.requests[0])
    extra, seconds = present(ttft.calibrated_extra_ttft_seconds), present(ttft.calibrated_ttft_seconds)
    assert (extra.lower, extra.expected, extra.upper) == pytest.approx((0, 0.504576, 0.504576))
    assert (seconds.lower, seconds.expected, seconds.upper) == pytest.approx((1.9, 2.504576, 2.604576))
    assert seconds.expected_basis is Basis.MIXED
    assert extra.binding_constraint is Constraint.NETWORK_BANDWIDTH
    assert present(ttft.extra_ttft_seconds).upper == pytest.approx(0.504576)


def test_a_single_point_bounds_no_other_question_from_above() -> None:
    _, engine = sending_engine(2.0)
    found = estimate_schedule(asked(request(2000), engine_table=engine.table), SENDING_MODEL, engine)
    ttft = ttft_of(found.summary.requests[0])
    seconds = present(ttft.calibrated_ttft_seconds)
    assert seconds.expected == pytest.approx(2 * 2.0, rel=0.02)
    assert seconds.lower == ttft.ttft_seconds.lower
    assert seconds.upper is None
    assert words.NO_POINT_LEFT_OUT in found.summary.assumptions


def test_arithmetic_is_split_over_other_ranks_and_the_fixed_part_may_not_be() -> None:
    found = calibrated(request(170), layout=ParallelLayout(tensor_parallel_size=4))
    (truth,) = true_ttfts(request(170))
    seconds, of_two = (
        present(ttft_of(one.summary.requests[0]).calibrated_ttft_seconds) for one in (found, calibrated(request(170)))
    )
    assert seconds.expected == pytest.approx(truth / 2, rel=1e-6)
    assert seconds.lower == pytest.approx(of_two.lower / 2)
    # How far the fixed part itself may be off is not split either.
    split = ((of_two.upper or 0) + PARTS.prompt_pass) / 2
    assert split < (seconds.upper or 0) < 1.05 * split
    assert words.SCALED.format(2, 4) in found.summary.assumptions


def test_bytes_at_another_size_are_those_of_its_ring() -> None:
    """Of four ranks each sends 1.5 times the payload of an all-reduce, and 3/4 of a gather."""
    point, engine = sending_engine(2.0)
    four = ParallelLayout(tensor_parallel_size=4)
    found = estimate_schedule(asked(*point.requests, engine_table=engine.table, layout=four), SENDING_MODEL, engine)
    seconds = present(ttft_of(found.summary.requests[0]).calibrated_ttft_seconds)
    sent = 1.5 * 1000 * SENT_SECONDS_PER_ROW + 1.5 * 3 * LOGITS_SECONDS
    assert seconds.expected == pytest.approx((2.0 - 0.504576) / 2 + sent)


def test_bursts_belong_to_the_link_of_the_table() -> None:
    point, engine = sending_engine(2.0)
    bursts = BurstTable(
        points=(
            BurstPoint(
                message_bytes=20 * 200,
                least_bits_per_second=MEGABIT // 4,
                largest_bits_per_second=MEGABIT // 2,
            ),
        ),
        least_header_ratio=1.0,
    )
    table = evolve(engine.table, bursts=bursts)
    with_bursts = fit_engine(table, SENDING_MODEL)

    def first_pass(**details: Any) -> Estimate:
        request_ = asked(*point.requests, engine_table=table, **details)
        return present(estimate_schedule(request_, SENDING_MODEL, with_bursts).passes[0].network_seconds)

    own, other = first_pass(), first_pass(link=Link(line_rate_bits_per_second=MEGABIT, roce_mtu_bytes=4096))
    # At most at half the rate, and expected halfway: 400 rows, of which the gather is too small for any burst.
    rows = 400 * SENT_SECONDS_PER_ROW
    assert own.lower == pytest.approx(rows + LOGITS_SECONDS)
    assert own.expected == pytest.approx(1.5 * rows + 1.5 * LOGITS_SECONDS)
    assert own.upper == pytest.approx(2 * rows + 2 * LOGITS_SECONDS)
    assert Effect.RATE_RAMP not in own.effects_left_out
    assert other.expected is None


def test_a_calibration_of_collectives_stands_for_rates_alone() -> None:
    table = CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=2,
        points=(
            CollectivePoint(message_bytes=20, seconds=0.01),
            CollectivePoint(message_bytes=20_000, seconds=0.17),
        ),
    )
    point, engine = sending_engine(5.0)
    question = asked(*point.requests, engine_table=engine.table, to_link=HALF)
    with_table = estimate_schedule(question, SENDING_MODEL, engine, fit(table, calibration_id="own"))
    without = estimate_schedule(question, SENDING_MODEL, engine)
    known, open_ = (
        present(ttft_of(one.summary.requests[0]).calibrated_extra_ttft_seconds) for one in (with_table, without)
    )
    assert (known.lower, known.upper) == pytest.approx((open_.lower, open_.upper))
    assert known.lower <= (known.expected or 0) <= (known.upper or 0)
    assert present(with_table.passes[0].network_seconds).expected_basis is Basis.CALIBRATED


def test_requests_that_arrive_together_may_be_parted() -> None:
    """Alone in the first pass, the first one takes all of it: 400 rows, not 200."""
    requests = (request(600), request(600))
    together, parted = calibrated(*requests), calibrated(*requests, arrivals_may_split=True)
    alone = (evolve(requests[0], arrival_pass=0), evolve(requests[1], arrival_pass=1))
    apart = true_ttfts(*alone)
    for index in range(2):
        base = present(ttft_of(together.summary.requests[index]).calibrated_ttft_seconds)
        hull = present(ttft_of(parted.summary.requests[index]).calibrated_ttft_seconds)
        assert hull.expected == base.expected
        assert hull.contains(apart[index])
        assert hull.lower <= base.lower
        assert (hull.upper or 0) >= (base.upper or 0)
    assert words.MAY_SPLIT in parted.summary.assumptions


def test_a_change_of_link_then_includes_arithmetic_of_other_passes() -> None:
    requests = (request(600), request(600))
    parted = calibrated(*requests, arrivals_may_split=True, to_link=HALF)
    first = present(ttft_of(parted.summary.requests[0]).calibrated_extra_ttft_seconds)
    # The model sends nothing: what changes is who arrived with whom.
    shift = true_ttfts(*requests)[0] - true_ttfts(requests[0], evolve(requests[1], arrival_pass=1))[0]
    assert (first.lower, first.expected, first.upper) == pytest.approx((-shift, 0, shift), rel=1e-6)


def test_more_ways_to_part_requests_than_are_covered_are_refused() -> None:
    scheduler = evolve(SCHEDULER, max_num_seqs=None)
    with pytest.raises(InvalidArgumentError, match="at most 64"):
        calibrated(*(request(1) for _ in range(100)), arrivals_may_split=True, scheduler=scheduler)


def test_times_that_nothing_tells_are_not_expected() -> None:
    """Without output speeds, the time of passes that only generate is not known; that of prompts is."""
    points = tuple(evolve(point, output_tokens_per_second=None) for point in TABLE.points)
    table = evolve(TABLE, points=points)
    engine = fit_engine(table, MODEL)
    scheduler = evolve(SCHEDULER, max_num_seqs=1)
    found = estimate_schedule(asked(request(170), request(170), engine_table=table, scheduler=scheduler), MODEL, engine)
    first, second = (ttft_of(one) for one in found.summary.requests)
    assert first.calibrated_ttft_seconds is not None
    assert second.calibrated_ttft_seconds is None
    assert found.summary.mean_ttft is not None
    assert found.summary.mean_ttft.calibrated_ttft_seconds is None
    assert all(one.output_tokens_per_second is None for one in found.summary.requests)


def test_another_model_than_that_of_the_calibration_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="model: is not the model"):
        calibrated(request(100), model="llama-3.1-8b")


def test_a_layout_without_a_single_schedule_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"layout\.pipeline_parallel_size"):
        calibrated(request(100), layout=ParallelLayout(tensor_parallel_size=2, pipeline_parallel_size=2))


def test_further_rows_of_drafts_take_up_to_a_row_of_a_prompt_each() -> None:
    """Two more rows in each of ten passes, at 1 ms: none of them may take any time."""
    table = measured_table(PARTS)
    engine = fit_engine(table, MODEL)
    question = asked(request(400, 31), engine_table=table)
    drafts = evolve(table.scheduler, draft_token_count=2, accepted_draft_tokens_per_pass=2.0)
    found = estimate_schedule(evolve(question, scheduler=drafts), MODEL, engine)
    without = estimate_schedule(evolve(question, requests=(request(400, 11),)), MODEL, engine)
    row_seconds = next(term.seconds for term in engine.terms if term.kind is EngineTermKind.ROW)
    most, own = (
        count / present(one.summary.requests[0].output_tokens_per_second).lower
        for one, count in ((found, 30), (without, 10))
    )
    assert most == pytest.approx(own + 10 * 2 * row_seconds, rel=0.02)
    assert words.OTHER_DRAFTS.format(0, 2) in found.summary.assumptions
    assert words.OTHER_DRAFTS.format(0, 0) not in without.summary.assumptions
