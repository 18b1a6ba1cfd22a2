"""The table of a run: what it says itself of its engine, what is given instead, and what neither says."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any

import pytest
from attrs import evolve

from linkbound.client.calibrate import (
    LARGEST_SOURCE_COUNT,
    RunCalibration,
    calibrate_from_run,
    calibrate_from_run_async,
    engine_table_of_run,
)
from linkbound.client.run_engine import GivenEngine
from linkbound.domain.engine import SchedulerSettings
from linkbound.domain.errors import FailedPreconditionError, InvalidArgumentError
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.metric import Metric
from linkbound.domain.prediction import PredictedValue, Prediction, TransferModel
from linkbound.domain.records import RequestRecord
from linkbound.domain.run import Run, RunState, Setting

SETTINGS = {
    "engine": "vLLM 0.32, CUDA 13",
    "link": "109g",
    "model": "glm-5.3",
    "tensor_parallel_size": "8",
    "max_num_batched_tokens": "4096",
    "max_num_seqs": "16",
    "switch": "CRS804",
}
RECORDS = tuple(
    RequestRecord(
        subject=subject,
        round_index=index,
        request_index=0,
        prompt_tokens=1024,
        output_tokens=8,
        ttft_ns=10**9 + index,
        last_token_ns=2 * 10**9,
        node="bench-host",
        send_time_unix_ns=1_767_225_600_000_000_000 + index,
    )
    for subject in ("P1", "P2")
    for index in range(3)
)
LAYOUT = ParallelLayout(tensor_parallel_size=8)
SCHEDULER = SchedulerSettings(max_num_batched_tokens=4096, max_num_seqs=16)
GIVEN: dict[str, Any] = {"model": "models/glm-5.3", "layout": LAYOUT, "link": "109g", "scheduler": SCHEDULER}


def run(settings: dict[str, str] | None = None, *rates: float) -> Run:
    values = tuple(
        PredictedValue(
            metric=Metric.LAST_TTFT_SECONDS,
            subject=f"P{index}",
            estimate=Estimate(lower=1.0),
            transfer=TransferModel(
                fixed_seconds=0.0, sent_bytes_per_rank=1, assumed_bytes_per_second=rate, assumed_source=""
            ),
        )
        for index, rate in enumerate(rates)
    )
    return Run(
        run_id="study",
        display_name="",
        state=RunState.OPEN,
        create_time=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        settings=tuple(Setting(key=key, value=value) for key, value in sorted((settings or {}).items())),
        prediction=Prediction(estimator_version="0.1.0", values=values) if values else None,
    )


def violations(caught: pytest.ExceptionInfo[InvalidArgumentError]) -> dict[str, str]:
    return {violation.field: violation.description for violation in caught.value.field_violations}


def test_a_run_says_its_engine_in_its_settings() -> None:
    table = engine_table_of_run(run(SETTINGS), RECORDS)
    assert (table.model, table.layout, table.scheduler) == ("glm-5.3", LAYOUT, SCHEDULER)
    assert table.link == Link(line_rate_bits_per_second=109_000_000_000)
    assert [point.label for point in table.points] == ["P1", "P2"]


def test_what_is_given_says_the_same_of_a_run_without_settings() -> None:
    assert engine_table_of_run(run(), RECORDS, **GIVEN) == engine_table_of_run(run(SETTINGS), RECORDS)


def test_what_is_given_goes_before_what_the_run_says() -> None:
    other = SchedulerSettings(engine="vllm-0.30", max_num_batched_tokens=8192)
    table = engine_table_of_run(
        run(SETTINGS), RECORDS, model_config_json="{}", link=Link(measured_bits_per_second=7), scheduler=other
    )
    assert (table.model, table.model_config_json, table.scheduler) == ("", "{}", other)
    assert table.link == Link(measured_bits_per_second=7)
    assert table.layout == LAYOUT


def test_the_one_rate_that_was_assumed_for_first_tokens_is_that_of_the_link() -> None:
    settings = {**SETTINGS, "link": "one PCIe function"}
    assert engine_table_of_run(run(settings, 13.625e9, 13.625e9), RECORDS).link == Link(
        line_rate_bits_per_second=109_000_000_000
    )
    with pytest.raises(InvalidArgumentError) as caught:
        engine_table_of_run(run(settings, 13.625e9, 25e9), RECORDS)
    assert list(violations(caught)) == ["link"]


def test_everything_that_nobody_says_is_asked_for_at_once() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        engine_table_of_run(run({"model": "GLM-5.3 – NVFP4"}), RECORDS)
    found = violations(caught)
    assert list(found) == ["model", "layout", "scheduler", "link"]
    assert found["model"].endswith("NVFP4', which is none)")
    for field, setting in {
        "model": "model",
        "layout": "tensor_parallel_size",
        "scheduler": "max_num_batched_tokens",
        "link": "link",
    }.items():
        assert f"the setting {setting!r}" in found[field]


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("tensor_parallel_size", "eight", "run.settings"),
        ("max_num_seqs", "1.5", "run.settings"),
        ("expert_parallelism", "wide", "run.settings"),
        ("tensor_parallel_size", "0", "table.layout.tensor_parallel_size"),
    ],
)
def test_a_setting_that_says_no_such_thing_is_named(key: str, value: str, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        engine_table_of_run(run({**SETTINGS, key: value}), RECORDS)
    assert list(violations(caught)) == [field]


def test_a_link_that_is_given_and_cannot_be_read_is_named_beside_the_rest() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        engine_table_of_run(run(), RECORDS, link="fast", layout=LAYOUT, scheduler=SCHEDULER)
    assert sorted(violations(caught)) == ["link", "model"]


def test_subjects_choose_points() -> None:
    assert [point.label for point in engine_table_of_run(run(SETTINGS), RECORDS, subjects=["P2"]).points] == ["P2"]


def test_what_was_not_measured_is_named_with_the_reason() -> None:
    unfinished = [evolve(RECORDS[0], last_token_ns=None)]
    with pytest.raises(FailedPreconditionError) as caught:
        engine_table_of_run(run(SETTINGS), unfinished)
    assert caught.value.reason == "NOT_MEASURED"
    assert caught.value.message == (
        "runs/study measured no complete round of any subject: P1, round 0: request 0 did not finish"
    )
    with pytest.raises(FailedPreconditionError) as caught:
        engine_table_of_run(run(SETTINGS), RECORDS, subjects=["P1", "P9"])
    assert caught.value.message == "runs/study measured no complete round of 'P9'"
    assert caught.value.metadata == {"run": "study", "subjects": "P9"}


def sources(records: list[RequestRecord], **given: Any) -> tuple[str, ...]:
    calibration = RunCalibration(run="study", given=GivenEngine(**given), subjects=(), engine_calibration="")
    return calibration.request(evolve(run(SETTINGS), source="a study"), records).sources


def test_sources_say_where_every_figure_comes_from() -> None:
    short = evolve(RECORDS[1], output_tokens=2)
    assert sources([RECORDS[0], short, *RECORDS[2:]], link="200g") == (
        "runs/study, created 2026-01-02 03:04:05 UTC, from a study",
        f"given: link; settings of the run: {', '.join(f'{key}={SETTINGS[key]}' for key in sorted(SETTINGS))}",
        "P1: medians of rounds 0, 2, 1 request each from bench-host, sent from 2026-01-01 00:00:00 UTC",
        "P2: medians of rounds 0, 1, 2, 1 request each from bench-host, sent from 2026-01-01 00:00:00 UTC",
        "left out: P1, round 1: request 0 got 2 tokens, 8 in other rounds",
    )


def test_sources_say_who_appended_what_counts() -> None:
    def appended_by(*writers: str) -> str:
        records = [evolve(RECORDS[0], round_index=index, writer_id=writer) for index, writer in enumerate(writers)]
        (line,) = [line for line in sources(records, link="200g") if line.startswith("P1: ")]
        return line.partition("UTC")[2]

    assert appended_by("bench-2", "bench-1", "bench-2") == ", appended by bench-1, bench-2"
    assert appended_by("", "bench-1") == ", appended by bench-1"
    assert appended_by("") == ""


def test_sources_are_as_many_and_as_long_as_a_fit_takes() -> None:
    many = [evolve(RECORDS[0], subject=f"P{index}" * 20) for index in range(500)]
    told = sources(many)
    assert len(told) == LARGEST_SOURCE_COUNT
    assert told[-1] == "and 403 more such lines"
    rounds = [evolve(RECORDS[0], round_index=index) for index in range(1000)]
    (line,) = [line for line in sources(rounds) if line.startswith("P1: ")]
    assert line.endswith("...")


def test_help_shows_the_clients_and_every_keyword_of_both_functions_alike() -> None:
    blocking, awaited = inspect.signature(calibrate_from_run), inspect.signature(calibrate_from_run_async)
    assert list(blocking.parameters)[:3] == ["estimator", "ingest", "run"]
    assert list(blocking.parameters) == list(awaited.parameters)
    table = set(inspect.signature(engine_table_of_run).parameters) - {"records"}
    assert set(blocking.parameters) == table | {"estimator", "ingest", "engine_calibration"}
    assert inspect.getdoc(calibrate_from_run) == inspect.getdoc(calibrate_from_run_async)
    assert inspect.iscoroutinefunction(calibrate_from_run_async)
