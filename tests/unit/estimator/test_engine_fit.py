"""What a fit finds in measured times, and what it refuses to say."""

from __future__ import annotations

import pytest
from attrs import evolve

from estimator_service.core.engine_times import words
from estimator_service.core.engine_times.fit import fit_engine
from estimator_service.core.schedule import replay
from linkbound.domain.catalog import Model
from linkbound.domain.engine import (
    EngineCalibration,
    EngineMetric,
    EnginePoint,
    EngineTable,
    EngineTermKind,
    SchedulerSettings,
)
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import ParallelLayout
from tests.unit.estimator.engine_models import (
    MODEL,
    SCHEDULER,
    SENDING_MODEL,
    Parts,
    engine_table,
    measured_point,
    measured_table,
    request,
)

Kind = EngineTermKind


def fitted(table: EngineTable) -> EngineCalibration:
    return fit_engine(table, MODEL)


def seconds_of(found: EngineCalibration) -> dict[EngineTermKind, float]:
    return {term.kind: term.seconds for term in found.terms}


def violated(table: EngineTable, model: Model = MODEL) -> dict[str, str]:
    with pytest.raises(InvalidArgumentError) as caught:
        fit_engine(table, model)
    return {violation.field: violation.description for violation in caught.value.field_violations}


ALL_PARTS = Parts(
    row=1e-3,
    attended_token=2e-6,
    prompt_pass=0.05,
    chunk_token=1e-6,
    further_request=0.01,
    decode_pass=0.02,
    decode_request=0.004,
    context_token=1e-6,
)
ALL_TERMS = {
    Kind.ROW: 1e-3,
    Kind.ATTENTION: 2e-6,
    Kind.PASS: 0.05,
    Kind.CHUNK: 1e-6,
    Kind.BATCH: 0.01,
    Kind.DECODE_PASS: 0.02,
    Kind.DECODE_REQUEST: 0.004,
    Kind.DECODE_CONTEXT: 1e-6,
}


def test_every_part_of_an_engine_is_found_again() -> None:
    found = fitted(measured_table(ALL_PARTS))
    assert seconds_of(found) == pytest.approx(ALL_TERMS, rel=1e-6)
    assert max(abs(one.error_ratio) for one in found.residuals) < 1e-9
    assert found.interval_fraction == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("parts", "kinds"),
    [
        (Parts(), {Kind.ROW, Kind.DECODE_PASS}),
        (Parts(prompt_pass=0.1), {Kind.ROW, Kind.PASS, Kind.DECODE_PASS}),
        (Parts(attended_token=1e-5), {Kind.ROW, Kind.ATTENTION, Kind.DECODE_PASS}),
        (Parts(context_token=1e-5), {Kind.ROW, Kind.DECODE_PASS, Kind.DECODE_CONTEXT}),
    ],
)
def test_no_part_is_found_that_is_not_there(parts: Parts, kinds: set[EngineTermKind]) -> None:
    assert set(seconds_of(fitted(measured_table(parts)))) == kinds


def test_every_figure_is_answered_with_what_the_fit_leaves() -> None:
    table = measured_table(ALL_PARTS)
    figures = [(one.label, one.metric, one.request, one.measured_seconds) for one in fitted(table).residuals]
    assert figures == [
        figure
        for point in table.points
        for figure in (
            *((point.label, EngineMetric.TTFT, place, seconds) for place, seconds in enumerate(point.ttft_seconds)),
            (point.label, EngineMetric.DECODE_PASS, 0, 1 / (point.output_tokens_per_second or 0)),
        )
    ]


def test_one_point_gives_one_term_of_each_kind_and_no_interval() -> None:
    found = fitted(engine_table(measured_point("one", (request(300),), Parts(prompt_pass=0.1))))
    assert list(seconds_of(found)) == [Kind.ROW, Kind.DECODE_PASS]
    assert found.interval_fraction is None
    assert all(one.left_out_error_ratio is None for one in found.residuals)
    assert words.not_used(Kind.PASS, words.NOT_APART) in found.assumptions
    assert words.not_used(Kind.BATCH, words.NOT_THERE) in found.assumptions


def test_prompts_of_one_length_cannot_tell_terms_apart() -> None:
    point = measured_point("a", (request(300),), Parts(prompt_pass=0.1))
    found = fitted(engine_table(*(evolve(point, label=label) for label in "abcde")))
    assert list(seconds_of(found)) == [Kind.ROW, Kind.DECODE_PASS]
    assert words.not_used(Kind.ATTENTION, words.NOT_APART) in found.assumptions


def test_a_term_that_one_point_alone_has_is_no_term() -> None:
    parts = Parts(further_request=0.5)
    alone = [measured_point(str(tokens), (request(tokens),), parts) for tokens in (100, 200, 300, 800)]
    found = fitted(engine_table(*alone, measured_point("two", (request(100), request(100)), parts)))
    assert Kind.BATCH not in seconds_of(found)
    assert words.not_used(Kind.BATCH, words.TOO_FEW) in found.assumptions


def test_the_last_and_the_mean_count_as_well_as_every_ttft() -> None:
    table = measured_table(ALL_PARTS)

    def shorter(point: EnginePoint) -> EnginePoint:
        times = point.ttft_seconds
        return evolve(point, ttft_seconds=(), last_ttft_seconds=times[-1], mean_ttft_seconds=sum(times) / len(times))

    found = fitted(evolve(table, points=tuple(map(shorter, table.points))))
    assert seconds_of(found) == pytest.approx(ALL_TERMS, rel=1e-5)


def test_arrivals_by_time_are_replayed_until_they_settle() -> None:
    """A request that comes while a pass runs waits for the next one, as if it arrived with that pass."""
    by_pass = tuple(request(tokens, arrival_pass=arrival) for tokens, arrival in ((300, 0), (200, 1), (250, 1)))
    by_time = tuple(
        request(tokens, arrival_seconds=arrival) for tokens, arrival in ((300, 0.0), (200, 1e-9), (250, 2e-9))
    )
    parts, table = Parts(), measured_table(Parts())
    passes = [parts.seconds(one) for one in replay(SCHEDULER, by_pass)]
    # First tokens come from passes 0, 1 and 2.
    ttft = tuple(sum(passes[: count + 1]) for count in range(3))
    point = EnginePoint(label="by time", requests=by_time, ttft_seconds=ttft)
    found = fitted(evolve(table, points=(*table.points, point)))
    assert words.NOT_SETTLED not in found.assumptions
    assert [one.error_ratio for one in found.residuals if one.label == "by time"] == pytest.approx([0, 0, 0], abs=1e-7)


def test_output_speeds_alone_say_nothing_of_prompts() -> None:
    table = measured_table(Parts())
    speeds = tuple(evolve(point, ttft_seconds=()) for point in table.points if len(point.requests) == 1)
    found = fitted(evolve(table, points=speeds))
    assert list(seconds_of(found)) == [Kind.DECODE_PASS]
    assert words.NO_PROMPT_TIMES in found.assumptions


def test_ttfts_alone_say_nothing_of_passes_that_only_generate() -> None:
    table = measured_table(Parts())
    scheduler = evolve(SCHEDULER, max_num_seqs=1)
    # The second prompt waits until the first request has ended.
    waiting = measured_point("waiting", (request(100), request(100)), Parts(), scheduler)
    points = tuple(evolve(point, output_tokens_per_second=None) for point in (*table.points, waiting))
    found = fitted(evolve(table, points=points, scheduler=scheduler))
    assert Kind.DECODE_PASS not in seconds_of(found)
    assert words.SKIPPED.format("waiting") in found.assumptions
    assert [one.label for one in found.residuals if one.label == "waiting"] == ["waiting"]


def test_drafts_that_are_accepted_stretch_the_time_between_passes() -> None:
    scheduler = evolve(SCHEDULER, draft_token_count=3, accepted_draft_tokens_per_pass=1.0)
    point = measured_point("drafts", (request(100, 41),), Parts(), scheduler)
    found = fitted(engine_table(point, scheduler=scheduler))
    # 40 tokens in 20 passes of 20 ms.
    assert point.output_tokens_per_second == pytest.approx(100)
    assert seconds_of(found)[Kind.DECODE_PASS] == pytest.approx(0.02)


def test_what_no_link_could_carry_is_refused() -> None:
    """1,000 rows of 60 bytes and logits of 3 passes: 63,072 bytes, 0.504576 s at 1 Mb/s."""
    point = EnginePoint(label="fast", requests=(request(1000),), ttft_seconds=(0.5,))
    found = violated(engine_table(point), SENDING_MODEL)
    assert list(found) == ["table.points[0].ttft_seconds[0]"]
    assert "0.504576 s" in found["table.points[0].ttft_seconds[0]"]
    fit_engine(engine_table(evolve(point, ttft_seconds=(0.505,))), SENDING_MODEL)


def test_layouts_without_a_single_schedule_are_refused() -> None:
    table = measured_table(Parts())
    layout = ParallelLayout(tensor_parallel_size=2, pipeline_parallel_size=2, data_parallel_size=2)
    found = violated(evolve(table, layout=layout))
    assert {"table.layout.pipeline_parallel_size", "table.layout.data_parallel_size"} <= set(found)


def test_every_point_that_the_engine_refuses_is_named_at_once() -> None:
    table = measured_table(Parts())
    limited = evolve(table, scheduler=evolve(SCHEDULER, max_model_len=1500))
    assert set(violated(limited)) == {
        "table.points[7].requests[0].prompt_tokens",
        "table.points[8].requests[0].prompt_tokens",
    }


def test_an_unknown_engine_is_refused_once() -> None:
    table = evolve(measured_table(Parts()), scheduler=SchedulerSettings(engine="none-1", max_num_batched_tokens=400))
    assert list(violated(table)) == ["table.scheduler.engine"]


def test_a_speed_of_requests_with_a_single_token_is_refused() -> None:
    point = EnginePoint(label="one token", requests=(request(100, 1),), output_tokens_per_second=1.0)
    assert list(violated(engine_table(point))) == ["table.points[0].output_tokens_per_second"]


def test_output_speeds_of_drafts_need_their_acceptance() -> None:
    """TTFTs do without."""
    drafts = evolve(SCHEDULER, draft_token_count=3)
    speeds = engine_table(measured_point("a", (request(400),), Parts()), scheduler=drafts)
    times = evolve(speeds, points=tuple(evolve(one, output_tokens_per_second=None) for one in speeds.points))
    assert [one.field for one in speeds.cross_violations()] == ["scheduler.accepted_draft_tokens_per_pass"]
    assert not list(times.cross_violations())
