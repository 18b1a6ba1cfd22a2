"""The same life of runs through every ingest client: equal answers and equal errors at every step."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from linkbound import (
    Baseline,
    CollectiveKind,
    CollectiveResult,
    Estimate,
    EstimatorClient,
    Event,
    LinkTest,
    LinkTestDirection,
    Metric,
    MetricAggregate,
    PredictedValue,
    Prediction,
    RequestRecord,
    Spread,
    TrainingStep,
)
from linkbound.client import predict
from tests.congruence.callers import Call, Caller, Failure, call
from tests.congruence.conftest import KINDS


def study_prediction() -> Prediction:
    """A prediction with every kind of row."""
    with EstimatorClient() as estimator:
        prefill = estimator.estimate_prefill(
            model="glm-5.3",
            tensor_parallel_size=8,
            prompt_tokens=16384,
            request_count=4,
            link="200g",
            to_link="109g",
            baseline_ttft_seconds=45.82,
        )
        collective = estimator.estimate_collective(kind=CollectiveKind.ALL_REDUCE, rank_count=4, link="25GB/s")
        step = estimator.estimate_training_step(
            gradient_bytes=15_231_233_024, rank_count=4, link="22.07GB/s", compute_step_seconds=2.289
        )
    last = Spread(mean=45.82, minimum=45.36, maximum=46.52, round_count=3)
    return predict.prediction(
        [
            predict.ttft_value("P6", prefill, baseline=last),
            predict.extra_ttft_value("P6", prefill, Baseline(value=last, run="study-200g")),
            predict.extra_mean_ttft_value("P6", prefill, Baseline(value=Spread(mean=33.96), run="study-200g")),
            predict.bus_bandwidth_value("4 nodes", collective),
            predict.training_step_value("full, 4 nodes", step),
            predict.unpredicted(Metric.TRAINING_TOKENS_PER_SECOND, "nanochat", ["gradient bytes"]),
        ],
        estimator_version="0.1.0",
    )


REQUESTS = [
    RequestRecord(
        subject="P1",
        round_index=index - 1,
        request_index=0,
        prompt_tokens=1024,
        output_tokens=100,
        send_ns=index,
        ttft_ns=910_000_000 + index,
        last_token_ns=5_000_000_000,
    )
    for index in range(4)
]
AGGREGATES = [
    MetricAggregate(
        metric=Metric.LAST_TTFT_SECONDS,
        subject="P6",
        value=Spread(mean=54.26, minimum=54.08, maximum=54.6, round_count=3),
        source="8.4",
    ),
    MetricAggregate(metric=Metric.MEAN_TTFT_SECONDS, subject="P6", value=Spread(mean=40.03)),
]
COLLECTIVES = [CollectiveResult(subject="4 nodes", rank_count=4, bus_bandwidth_bytes_per_second=22.07e9)]
STEPS = [TrainingStep(subject="full, 4 nodes", node_count=4, step_seconds=14.501, samples_per_second=0.28)]
LINK_TESTS = [
    LinkTest(
        subject="spark1 to spark2",
        tool="ib_write_bw",
        direction=LinkTestDirection.ONE_WAY,
        message_bytes=65_536,
        bits_per_second=109.07e9,
    ),
    LinkTest(subject="spark1 to spark2", tool="ping", latency_seconds=2.1e-6),
]
EVENTS = [
    Event(kind="clock_anchor", node="spark1", boot_id="b", time_ns=5, time_unix_ns=6),
    Event(kind="note", text="é"),
]
CHUNKED = [
    evolve(REQUESTS[1], subject="P3", chunk_offset_ns=(910_000_001, 5_000_000_000), chunk_tokens=(60, 40)),
    evolve(REQUESTS[2], subject="P3", chunk_offset_ns=(910_000_002, 910_000_002, 5_000_000_000)),
]


def append(run: str, writer: str, number: Any, records: Any) -> Call:
    return call("append", run, writer_id=writer, sequence_number=number, records=records)


LIFE = [
    call("list_runs"),
    call("create_run", "study-109g", display_name="Study", source="8.4", settings={"link": "109g", "engine": "vLLM"}),
    call("create_run", "study-109g", display_name="Study", source="8.4", settings={"engine": "vLLM", "link": "109g"}),
    call("create_run", "study-109g", display_name="Another"),
    call("create_run", "predicted", prediction=study_prediction()),
    call("get_run", "study-109g"),
    call("get_run", "predicted"),
    call("get_run", "study-110g"),
    call("list_runs"),
    append("predicted", "requests", 1, REQUESTS),
    append("predicted", "requests", 1, REQUESTS),
    append("predicted", "requests", 1, REQUESTS[:1]),
    append("predicted", "requests", 3, REQUESTS[:1]),
    append("predicted", "requests", 2, REQUESTS[:1]),
    append("predicted", "aggregates", 1, AGGREGATES),
    append("predicted", "collectives", 1, COLLECTIVES),
    append("predicted", "steps", 1, STEPS),
    append("predicted", "links", 1, LINK_TESTS),
    append("predicted", "links", 1, LINK_TESTS),
    append("predicted", "links", 1, LINK_TESTS[:1]),
    append("predicted", "events", 1, EVENTS),
    append("predicted", "chunks", 1, CHUNKED),
    append("predicted", "chunks", 1, REQUESTS[1:3]),
    append("missing", "steps", 1, STEPS),
    call("get_run", "predicted"),
    call("compare_run", "predicted"),
    call("compare_run", "study-109g"),
    call("compare_run", "missing"),
    call("list_request_records", "predicted"),
    call("list_request_records", "runs/predicted", subject="P1"),
    call("list_request_records", "predicted", subject="P2"),
    call("list_request_records", "predicted", subject="P3"),
    call("list_request_records", "study-109g"),
    call("list_request_records", "missing"),
    call("query_traffic", "predicted"),
    call("query_traffic", "missing", windows_ns=[1_000_000]),
    call("list_phase_traffic", "predicted", subject="P1"),
    call("list_phase_traffic", "missing"),
    call("seal_run", "predicted", expected_row_count=5),
    call("seal_run", "predicted", expected_row_count=15),
    call("seal_run", "predicted"),
    append("predicted", "requests", 2, REQUESTS[:1]),
    append("predicted", "requests", 3, REQUESTS),
    append("predicted", "requests", 1, REQUESTS[:2]),
    call("get_run", "predicted"),
    call("list_request_records", "predicted"),
    call("compare_run", "predicted"),
    call("delete_run", "study-109g"),
    call("delete_run", "study-109g"),
    call("seal_run", "study-109g"),
    call("list_runs"),
    call("compare_run", "predicted"),
    call("delete_run", "predicted"),
    call("get_run", "predicted"),
    call("create_run", "predicted"),
    call("list_request_records", "predicted"),
    append("predicted", "requests", 1, REQUESTS[:1]),
    call("seal_run", "predicted", expected_row_count=1),
    call("seal_run", "predicted", expected_row_count=2),
    call("list_request_records", "predicted"),
]

LONG = "x" * 2000
BAD = [
    *(
        call(method, run)
        for method in (
            *("get_run", "seal_run", "delete_run", "compare_run", "list_request_records"),
            *("query_traffic", "list_phase_traffic"),
        )
        for run in ("", "R 1", "\ud800")
    ),
    call("create_run", "R1", display_name="a\tb", source=LONG, settings={"": "", "k": LONG * 3}),
    call("create_run", "r1", settings={f"k{index}": "v" for index in range(300)}),
    call("create_run", "r1", prediction=Prediction(estimator_version="", values=())),
    call(
        "create_run",
        "r1",
        prediction=Prediction(
            estimator_version="0.1.0",
            values=(
                PredictedValue(metric=Metric.EXTRA_TTFT_SECONDS, subject="P1", estimate=Estimate(lower=2.0, upper=1.0)),
                PredictedValue(metric=Metric.UNKNOWN, subject=""),
            ),
        ),
    ),
    call("seal_run", "r1", expected_row_count=-1),
    call("list_request_records", "R 1", subject="x" * 129),
    call("list_request_records", "r1", subject="a\tb"),
    call("list_phase_traffic", "r1", subject="x" * 129),
    call("query_traffic", "r 1", windows_ns=[0, 10**6, 10**30], node="x" * 257, metric="\t", max_point_count=10_001),
    call("query_traffic", "r1", windows_ns=[10**6] * 9, start_ns=-1, end_ns=2**63),
    call("query_traffic", "r1", start_ns=5, end_ns=5),
    *(append("r1", "w1", number, STEPS) for number in (0, -1, 2**63, 1.0, None)),
    append("r1", "w 1", 1, STEPS),
    append("r1", "w1", 1, []),
    append("r1", "w1", 1, [*STEPS, *COLLECTIVES]),
    append("r1", "w1", 1, ["no record"]),
    append("r1", "w1", 1, [REQUESTS[0], evolve(REQUESTS[0], writer_id="another")]),
    append("r1", "w1", 1, [TrainingStep(subject="", node_count=0), TrainingStep(subject="a", node_count=1)]),
    append(
        "r1", "w1", 1, [CollectiveResult(subject="a", rank_count=10**18, bus_bandwidth_bytes_per_second=float("nan"))]
    ),
    append("r1", "w1", 1, [MetricAggregate(metric=Metric.EXTRA_TTFT_SECONDS, subject="a", value=Spread(mean=1.0))]),
    append("r1", "w1", 1, STEPS * 10_001),
    append("r1", "w1", 1, [LinkTest(subject="", tool=""), LinkTest(subject="a", tool="b", bits_per_second=-1.0)]),
    append(
        "r1", "w1", 1, [Event(kind="clock_anchor", time_ns=1), Event(kind="No word"), Event(kind="note", time_ns=-1)]
    ),
    append(
        "r1",
        "w1",
        1,
        [
            evolve(REQUESTS[0], chunk_tokens=(1,)),
            evolve(REQUESTS[0], chunk_offset_ns=(5, 4), chunk_tokens=(1, 0)),
            evolve(REQUESTS[0], ttft_ns=None, last_token_ns=None, chunk_offset_ns=(-1,)),
        ],
    ),
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_life_of_runs_is_the_same(ingest_caller: Callable[[str], Caller], kind: str) -> None:
    here, there = ingest_caller("blocking-local"), ingest_caller(kind)
    for step, asked in enumerate(LIFE):
        assert (step, there.ask(asked)) == (step, here.ask(asked))


def test_the_life_of_runs_meets_every_kind_of_error(ingest_caller: Callable[[str], Caller]) -> None:
    caller = ingest_caller("blocking-local")
    failures = [answer for answer in map(caller.ask, LIFE) if isinstance(answer, Failure)]
    assert {failure.facts["reason"] for failure in failures} == {
        "RUN_EXISTS",
        "RUN_NOT_FOUND",
        "WRITER_CONFLICT",
        "SEQUENCE_GAP",
        "ROW_COUNT_MISMATCH",
        "RUN_SEALED",
    }
    assert len(failures) < len(LIFE) / 2


@pytest.mark.parametrize("kind", KINDS)
def test_bad_calls_fail_alike_and_store_nothing(ingest_caller: Callable[[str], Caller], kind: str) -> None:
    here, there = ingest_caller("blocking-local"), ingest_caller(kind)
    for caller in (here, there):
        assert not isinstance(caller.ask(call("create_run", "r1")), Failure)
    for step, asked in enumerate(BAD):
        failure = here.ask(asked)
        assert isinstance(failure, Failure), asked
        assert (step, there.ask(asked)) == (step, failure)
    assert there.ask(call("get_run", "r1")) == here.ask(call("get_run", "r1"))


@pytest.mark.parametrize("kind", ["blocking-local", *KINDS])
def test_lists_page_by_themselves(ingest_caller: Callable[[str], Caller], kind: str) -> None:
    caller = ingest_caller(kind)
    ids = [f"run-{index:03}" for index in range(120)]
    for run in ids:
        assert not isinstance(caller.ask(call("create_run", run)), Failure)
    assert sorted(run.run_id for run in caller.ask(call("list_runs"))) == ids


@pytest.mark.parametrize("kind", ["blocking-local", *KINDS])
def test_records_page_by_themselves(ingest_caller: Callable[[str], Caller], kind: str) -> None:
    caller = ingest_caller(kind)
    caller.ask(call("create_run", "r1"))
    records = [evolve(REQUESTS[0], subject=subject, request_index=index) for subject in "ba" for index in range(1100)]
    assert caller.ask(append("r1", "w1", 1, records)).committed_sequence_number == 1
    records = [evolve(record, writer_id="w1") for record in records]
    assert caller.ask(call("list_request_records", "r1")) == records[1100:] + records[:1100]
    assert caller.ask(call("list_request_records", "r1", subject="b")) == records[:1100]
