"""Findings: their conditions, their figures, their order."""

import attrs
import pytest

from ingest_service.core.comparison import compare
from ingest_service.core.measured import MeasuredRecords, fold
from linkbound.domain.estimate import Effect, Estimate
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.prediction import PredictedValue, Prediction, TransferModel
from linkbound.domain.records import CollectiveResult, MetricAggregate, RequestRecord, TrainingStep
from linkbound.domain.run_comparison import Finding, Severity
from tests.unit.ingest.study import GRADIENT_BYTES, PRINTED_STEPS, PRINTED_TTFTS


def findings(records: MeasuredRecords, *predicted: PredictedValue) -> tuple[Finding, ...]:
    return compare("r", Prediction(estimator_version="1", values=predicted), fold(records)).findings


def test_the_qsfp_rows_of_the_study_are_far_below_the_assumed_bandwidth() -> None:
    found = findings(
        MeasuredRecords(training_steps=tuple(step.measured for step in PRINTED_STEPS)),
        *(step.predicted for step in PRINTED_STEPS),
    )
    low = [finding for finding in found if finding.code == "BANDWIDTH_BELOW_ASSUMED"]
    assert [finding.subject for finding in low] == ["full 2 QSFP", "full 4 QSFP"]
    first = low[0]
    assert first.severity is Severity.WARNING
    assert "implied 1.731 GB/s is 8 % of the assumed 22.14 GB/s" in first.evidence
    assert "which came from nccl-tests busbw" in first.evidence
    assert "15.23 GB that each rank sends took 8.798 s instead of 0.688 s" in first.evidence
    for cause in ("sockets", "degraded", "one function"):
        assert cause in first.advice


def test_four_long_prompts_are_outside_their_bound_in_every_round() -> None:
    found = findings(
        MeasuredRecords(aggregates=tuple(test.measured for test in PRINTED_TTFTS)),
        *(test.predicted for test in PRINTED_TTFTS),
    )
    [outside] = found
    assert outside.code == "OUTSIDE_INTERVAL"
    assert outside.subject == "P6"
    assert outside.severity is Severity.WARNING
    assert "measured 8.44 s is 1.051 s (14 %) above the upper end, 7.389 s" in outside.evidence
    assert "rounds from 7.56 to 9.24 s" in outside.evidence


def lora_step(step_seconds: float) -> MeasuredRecords:
    return MeasuredRecords(training_steps=(TrainingStep(subject="lora", node_count=2, step_seconds=step_seconds),))


LORA_BYTES = 2_523_136 * 2
LORA = PredictedValue(
    metric=Metric.TRAINING_STEP_SECONDS,
    subject="lora",
    estimate=Estimate(lower=0.450, upper=0.450 + LORA_BYTES / 22.14e9),
    transfer=TransferModel(fixed_seconds=0.450, sent_bytes_per_rank=LORA_BYTES, assumed_bytes_per_second=22.14e9),
)


def test_a_transfer_too_small_to_matter_says_nothing_about_the_bandwidth() -> None:
    [finding] = findings(lora_step(0.460), LORA)
    assert finding.code == "OUTSIDE_INTERVAL"
    assert finding.severity is Severity.INFO
    assert "0.009772 s (2 %)" in finding.evidence


@pytest.mark.parametrize(("bandwidth", "is_found"), [(12.4e9, True), (12.6e9, False)])
def test_half_of_the_assumed_bandwidth_is_the_limit(bandwidth: float, *, is_found: bool) -> None:
    predicted = PredictedValue(
        metric=Metric.BUS_BANDWIDTH_BYTES_PER_SECOND,
        subject="4 nodes",
        estimate=Estimate(lower=0.0, upper=25e9),
        transfer=TransferModel(fixed_seconds=0.0, sent_bytes_per_rank=0, assumed_bytes_per_second=25e9),
    )
    result = CollectiveResult(subject="4 nodes", rank_count=4, bus_bandwidth_bytes_per_second=bandwidth)
    found = findings(MeasuredRecords(collectives=(result,)), predicted)
    assert [finding.code for finding in found] == (["BANDWIDTH_BELOW_ASSUMED"] if is_found else [])
    if is_found:
        assert found[0].evidence == "measured 12.4 GB/s is 50 % of the assumed 25 GB/s"


def ttft(mean: float, minimum: float | None = None, maximum: float | None = None) -> MeasuredRecords:
    value = Spread(mean=mean, minimum=minimum, maximum=maximum)
    return MeasuredRecords(aggregates=(MetricAggregate(metric=Metric.TTFT_SECONDS, subject="P1", value=value),))


BOUND = PredictedValue(
    metric=Metric.TTFT_SECONDS, subject="P1", estimate=Estimate(lower=10.0, expected=15.0, upper=20.0)
)


@pytest.mark.parametrize(
    ("records", "severity", "words"),
    [
        (ttft(25.0, 21.0, 30.0), Severity.WARNING, "5 s (25 %) above the upper end, 20 s"),
        (ttft(25.0, 19.0, 30.0), Severity.INFO, "5 s (25 %) above the upper end, 20 s"),
        (ttft(5.0, 4.0, 9.0), Severity.WARNING, "5 s (50 %) below the lower end, 10 s"),
        (ttft(5.0, 4.0, 11.0), Severity.INFO, "5 s (50 %) below the lower end, 10 s"),
        (ttft(20.5), Severity.INFO, "0.5 s (2 %) above the upper end, 20 s"),
        (ttft(25.0), Severity.WARNING, "5 s (25 %) above the upper end, 20 s"),
    ],
)
def test_outside_is_a_warning_unless_rounds_reach_in_or_it_is_close(
    records: MeasuredRecords, severity: Severity, words: str
) -> None:
    [finding] = findings(records, BOUND)
    assert finding.code == "OUTSIDE_INTERVAL"
    assert finding.severity is severity
    assert words in finding.evidence


@pytest.mark.parametrize("measured", [10.0, 15.0, 20.0])
def test_the_ends_belong_to_the_interval(measured: float) -> None:
    assert findings(ttft(measured), BOUND) == ()


def test_nothing_is_above_an_interval_without_an_upper_end() -> None:
    assert findings(ttft(1e6), attrs.evolve(BOUND, estimate=Estimate(lower=10.0))) == ()


def test_an_end_of_0_has_no_percentage() -> None:
    extra = PRINTED_TTFTS[0]
    faster = attrs.evolve(extra.measured, value=Spread(mean=0.5))
    [finding] = findings(MeasuredRecords(aggregates=(faster,)), extra.predicted)
    assert "measured -0.46 s is 0.46 s below the lower end, 0 s" in finding.evidence


def test_the_advice_names_what_the_prediction_is_silent_about() -> None:
    silent = attrs.evolve(
        BOUND, estimate=Estimate(lower=10.0, upper=20.0, effects_left_out=(Effect.ENGINE_SCHEDULE, Effect.RATE_RAMP))
    )
    [finding] = findings(ttft(25.0), silent)
    assert "engine schedule, rate ramp" in finding.advice
    [better] = findings(ttft(5.0), silent)
    assert better.advice.startswith("better than the prediction allows")


def test_wrong_values_are_an_error_and_unfinished_requests_a_warning() -> None:
    records = MeasuredRecords(
        collectives=(
            CollectiveResult(subject="4 nodes", rank_count=4, bus_bandwidth_bytes_per_second=1e9, error_count=2),
        ),
        requests=(
            RequestRecord(subject="P1", round_index=0, request_index=0, prompt_tokens=1, output_tokens=0, send_ns=0),
        ),
    )
    found = findings(records, BOUND)
    assert [(finding.code, finding.severity) for finding in found] == [
        ("WRONG_COLLECTIVE_VALUES", Severity.ERROR),
        ("UNFINISHED_REQUESTS", Severity.WARNING),
    ]
    assert found[1].evidence.startswith("1 of 1 measured requests did not finish")


def test_a_value_that_was_replaced_is_named() -> None:
    records = MeasuredRecords(aggregates=ttft(12.0).aggregates + ttft(13.0).aggregates)
    [finding] = findings(records, BOUND)
    assert finding.code == "MEASURED_TWICE"
    assert finding.severity is Severity.INFO
    assert "not used: 12 s" in finding.evidence


def test_findings_come_worst_first() -> None:
    records = MeasuredRecords(
        aggregates=ttft(20.1).aggregates,
        training_steps=tuple(step.measured for step in PRINTED_STEPS),
        collectives=(
            CollectiveResult(subject="4 nodes", rank_count=4, bus_bandwidth_bytes_per_second=1e9, error_count=2),
        ),
    )
    found = findings(records, BOUND, *(step.predicted for step in PRINTED_STEPS))
    assert [(finding.code, finding.subject) for finding in found] == [
        ("WRONG_COLLECTIVE_VALUES", "4 nodes"),
        ("BANDWIDTH_BELOW_ASSUMED", "full 2 QSFP"),
        ("BANDWIDTH_BELOW_ASSUMED", "full 4 QSFP"),
        ("OUTSIDE_INTERVAL", "full 4 QSFP"),
        ("OUTSIDE_INTERVAL", "full 2 QSFP"),
        ("OUTSIDE_INTERVAL", "P1"),
    ]


def test_the_gradients_of_the_study_are_two_bytes_per_parameter() -> None:
    assert GRADIENT_BYTES == 7_615_616_512 * 2
