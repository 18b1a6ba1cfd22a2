"""Figures from sections 5, 8.4 and the training tables of the two studies, worked out by hand here."""

import json
import math
from collections.abc import Callable

import pytest

from linkbound import (
    Baseline,
    CollectiveKind,
    Effect,
    EstimatorClient,
    InvalidArgumentError,
    Link,
    Metric,
    PredictedValue,
    PrefillEstimate,
    Spread,
)
from linkbound.client import predict
from linkbound.domain.decode import DecodeEstimate
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.estimate import Basis, Estimate
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.run_comparison import ComparisonRow, RunComparison
from tests.unit.architecture.configs import SMALL

BYTES_PER_TOKEN = 157 * 6144 * 2 * 2 * 7 / 8
OLD_BYTES_PER_SECOND, NEW_BYTES_PER_SECOND = 25e9, 13.625e9
ONE = Spread(mean=6.36, minimum=6.21, maximum=6.56, round_count=3)
LAST = Spread(mean=45.82, minimum=45.36, maximum=46.52, round_count=3)
MEAN = Spread(mean=33.96)


def prefill(
    prompt_tokens: int = 8192,
    request_count: int = 1,
    to_link: str | Link | None = "109g",
    baseline_ttft_seconds: float | None = ONE.mean,
) -> PrefillEstimate:
    with EstimatorClient() as client:
        return client.estimate_prefill(
            model="glm-5.3",
            tensor_parallel_size=8,
            prompt_tokens=prompt_tokens,
            request_count=request_count,
            link="200g",
            to_link=to_link,
            baseline_ttft_seconds=baseline_ttft_seconds,
        )


def batch() -> PrefillEstimate:
    return prefill(16384, 4, baseline_ttft_seconds=LAST.mean)


def test_the_difference_of_one_request_is_counted_from_its_baseline() -> None:
    estimate = prefill()
    value = predict.extra_ttft_value("P2", estimate, Baseline(value=ONE, run="study-200g"))
    sent_bytes = 8192 * BYTES_PER_TOKEN
    assert (value.metric, value.subject) == (Metric.EXTRA_TTFT_SECONDS, "P2")
    assert value.baseline == Baseline(value=ONE, run="study-200g")
    assert value.estimate == estimate.extra_ttft_seconds
    assert value.transfer is not None
    assert value.transfer.fixed_seconds == pytest.approx(-sent_bytes / OLD_BYTES_PER_SECOND)
    assert value.transfer.sent_bytes_per_rank == sent_bytes
    assert value.transfer.assumed_bytes_per_second == NEW_BYTES_PER_SECOND
    assert value.transfer.assumed_source == "given rate"


def test_the_transfer_model_at_the_assumed_bandwidth_gives_the_bound() -> None:
    for value in (
        predict.extra_ttft_value("P2", prefill(), Baseline(value=ONE)),
        predict.ttft_value("P2", prefill(), baseline=ONE),
    ):
        assert value.transfer is not None
        assert value.estimate is not None
        at_assumed = (
            value.transfer.fixed_seconds + value.transfer.sent_bytes_per_rank / value.transfer.assumed_bytes_per_second
        )
        assert at_assumed == pytest.approx(value.estimate.upper)


def test_ttft_with_a_baseline_keeps_what_is_not_network_time() -> None:
    value = predict.ttft_value("P2", prefill(), baseline=ONE)
    assert value.metric is Metric.TTFT_SECONDS
    assert value.baseline is None
    assert value.transfer is not None
    assert value.transfer.fixed_seconds == pytest.approx(6.36 - 8192 * BYTES_PER_TOKEN / OLD_BYTES_PER_SECOND)


def test_ttft_without_a_baseline_does_not_follow_from_a_bandwidth() -> None:
    value = predict.ttft_value("P2", prefill(to_link=None, baseline_ttft_seconds=None))
    assert value.transfer is None
    assert value.estimate is not None
    assert value.estimate.upper is None


def test_several_requests_have_a_last_and_a_mean_of_their_own() -> None:
    estimate = batch()
    values = [
        predict.ttft_value("P6", estimate, baseline=LAST),
        predict.extra_ttft_value("P6", estimate, Baseline(value=LAST)),
        predict.extra_mean_ttft_value("P6", estimate, Baseline(value=MEAN)),
    ]
    assert [value.metric for value in values] == [
        Metric.LAST_TTFT_SECONDS,
        Metric.EXTRA_LAST_TTFT_SECONDS,
        Metric.EXTRA_MEAN_TTFT_SECONDS,
    ]


def test_the_mean_carries_the_bound_of_the_batch_and_says_what_is_left_out() -> None:
    estimate = batch()
    value = predict.extra_mean_ttft_value("P6", estimate, Baseline(value=MEAN))
    assert value.estimate is not None
    assert estimate.extra_ttft_seconds is not None
    assert (value.estimate.lower, value.estimate.upper) == (0.0, estimate.extra_ttft_seconds.upper)
    assert Effect.ENGINE_SCHEDULE in value.estimate.effects_left_out
    assert len(set(value.estimate.effects_left_out)) == len(value.estimate.effects_left_out)
    assert value.transfer is None
    assert predict.MEAN_WITHIN_BATCH in value.assumptions


def test_the_mean_of_a_batch_does_not_pass_for_its_last() -> None:
    mistakes: list[Callable[[], PredictedValue]] = [
        lambda: predict.ttft_value("P6", batch(), baseline=MEAN),
        lambda: predict.extra_ttft_value("P6", batch(), Baseline(value=MEAN)),
        lambda: predict.ttft_value("P6", prefill(baseline_ttft_seconds=None), baseline=ONE),
    ]
    for make in mistakes:
        with pytest.raises(InvalidArgumentError) as caught:
            make()
        assert [violation.field for violation in caught.value.field_violations] == ["baseline"]


def test_the_baseline_is_the_one_of_the_estimate_to_the_last_bit() -> None:
    close = Spread(mean=math.nextafter(ONE.mean, 10.0))
    with pytest.raises(InvalidArgumentError, match="is not the baseline of the estimate"):
        predict.ttft_value("P2", prefill(), baseline=close)
    with pytest.raises(InvalidArgumentError, match="is not the baseline of the estimate"):
        predict.extra_ttft_value("P2", prefill(), Baseline(value=close))


def test_one_rank_has_a_baseline_too() -> None:
    """It sends nothing: nothing but the echoed baseline tells one baseline from another."""
    with EstimatorClient() as client:
        estimate = client.estimate_prefill(
            model="glm-5.3", tensor_parallel_size=1, prompt_tokens=100, link="200g", baseline_ttft_seconds=ONE.mean
        )
    assert predict.ttft_value("P2", estimate, baseline=ONE).transfer is not None
    with pytest.raises(InvalidArgumentError, match="baseline"):
        predict.ttft_value("P2", estimate, baseline=MEAN)


def test_one_request_has_no_mean() -> None:
    with pytest.raises(InvalidArgumentError, match="request_count"):
        predict.extra_mean_ttft_value("P2", prefill(), Baseline(value=ONE))


def test_a_difference_needs_a_link_to_change_to() -> None:
    estimate = prefill(to_link=None)
    with pytest.raises(InvalidArgumentError, match="to_link"):
        predict.extra_ttft_value("P2", estimate, Baseline(value=ONE))
    with pytest.raises(InvalidArgumentError, match="to_link"):
        predict.extra_mean_ttft_value("P2", estimate, Baseline(value=ONE))


def test_a_measured_rate_is_named_as_the_source() -> None:
    link = Link(line_rate_bits_per_second=200 * 10**9, measured_bits_per_second=109 * 10**9)
    value = predict.extra_ttft_value("P2", prefill(to_link=link), Baseline(value=ONE))
    assert value.transfer is not None
    assert value.transfer.assumed_source == "measured rate"


def test_a_bus_bandwidth_is_its_own_transfer_model() -> None:
    with EstimatorClient() as client:
        estimate = client.estimate_collective(kind=CollectiveKind.ALL_REDUCE, rank_count=4, link="25GB/s")
    value = predict.bus_bandwidth_value("4 nodes", estimate)
    assert value.metric is Metric.BUS_BANDWIDTH_BYTES_PER_SECOND
    assert value.transfer is not None
    assert (value.transfer.fixed_seconds, value.transfer.sent_bytes_per_rank) == (0.0, 0)
    assert value.transfer.assumed_bytes_per_second == 25e9
    assert value.assumptions == estimate.assumptions


def test_a_training_step_takes_its_compute_time_and_the_bytes_over_the_bandwidth() -> None:
    with EstimatorClient() as client:
        estimate = client.estimate_training_step(
            gradient_bytes=15_231_233_024, rank_count=4, link="1.18GB/s", compute_step_seconds=2.289
        )
    value = predict.training_step_value("4 nodes", estimate, assumed_source="nccl-tests")
    assert value.metric is Metric.TRAINING_STEP_SECONDS
    assert value.transfer is not None
    assert value.transfer.fixed_seconds == estimate.compute_step_seconds == 2.289
    assert value.transfer.sent_bytes_per_rank == 15_231_233_024 * 3 // 2
    assert value.assumptions == estimate.assumptions
    assert value.transfer.assumed_source == "nccl-tests"
    # The study measured 21.331 s: its implied bandwidth agrees with the 1.18 GB/s of nccl-tests.
    implied = value.transfer.sent_bytes_per_rank / (21.331 - value.transfer.fixed_seconds)
    assert implied == pytest.approx(1.2e9, rel=0.01)


def test_decode_speed_needs_an_acceptance_length() -> None:
    with EstimatorClient() as client:
        without, with_length = (
            client.estimate_decode(
                model="glm-5.3",
                tensor_parallel_size=8,
                link="200g",
                draft_token_count=4,
                acceptance_length_tokens=length,
                hardware="dgx-spark",
            )
            for length in (None, 2.5)
        )
    assert predict.decode_value("P1", without).missing_inputs == ("acceptance_length_tokens",)
    value = predict.decode_value("P1", with_length)
    assert value.estimate == with_length.output_tokens_per_second
    assert value.missing_inputs == ()


SENT_BYTES_PER_PASS = 157 * 107_520 + 5 * 154_880 * 2 * 7 // 8
"""GLM-5.3 on TP8 with 5 rows: 157 all-reduces of 107,520 bytes and a gather of 5 x 154,880 x 2 x 7/8."""
FLOOR_SECONDS = 40e9 * 4.5 / 8 / 8 / 273e9
"""40 billion active parameters at 4.5 bits over 8 ranks, read at 273 GB/s."""


def decode(link: str, to_link: str | None) -> DecodeEstimate:
    with EstimatorClient() as estimator:
        return estimator.estimate_decode(
            model="glm-5.3",
            tensor_parallel_size=8,
            draft_token_count=4,
            hardware="dgx-spark",
            link=link,
            to_link=to_link,
        )


def test_a_slower_link_costs_a_decode_at_most_the_bytes_of_a_pass() -> None:
    value = predict.slowed_decode_value("P2", decode("200g", "109g"), 21.1)
    extra_seconds = SENT_BYTES_PER_PASS * 8 * (1 / 109e9 - 1 / 200e9)
    assert value.estimate is not None
    assert value.estimate.lower == pytest.approx(21.1 * FLOOR_SECONDS / (FLOOR_SECONDS + extra_seconds), rel=1e-6)
    assert value.estimate.upper is None
    assert value.estimate.lower_basis is Basis.MIXED
    assert value.metric is Metric.DECODE_TOKENS_PER_SECOND
    assert predict.SAME_DECODING in value.assumptions


def test_a_faster_link_does_not_lower_the_floor_of_a_decode() -> None:
    value = predict.slowed_decode_value("P2", decode("109g", "200g"), 20.6)
    assert value.estimate is not None
    assert value.estimate.lower == 20.6


@pytest.mark.parametrize("is_open", [True, False])
def test_a_floor_that_rests_on_a_number_type_says_so_in_the_prediction(*, is_open: bool) -> None:
    stated = {} if is_open else {"quantization_config": {"quant_method": "fp8"}}
    with EstimatorClient() as estimator:
        answer = estimator.estimate_decode(
            model_config_json=json.dumps({**SMALL, **stated}),
            tensor_parallel_size=2,
            hardware="dgx-spark",
            link="200g",
            to_link="109g",
        )
    value = predict.slowed_decode_value("P2", answer, 21.1)
    assert value.estimate is not None
    assert (Effect.WEIGHT_FORMAT in value.estimate.effects_left_out) is is_open


def test_a_slowed_decode_needs_a_link_to_change_to() -> None:
    with pytest.raises(InvalidArgumentError, match="no difference between links") as caught:
        predict.slowed_decode_value("P2", decode("200g", None), 21.1)
    assert [violation.field for violation in caught.value.field_violations] == ["to_link"]


MEASURED_RUN = RunComparison(
    run_id="study-200g",
    rows=(
        ComparisonRow(metric=Metric.TTFT_SECONDS, subject="P1", predicted=Estimate(lower=0.1)),
        ComparisonRow(
            metric=Metric.TTFT_SECONDS,
            subject="P2",
            measured=ONE.mean,
            measured_min=ONE.minimum,
            measured_max=ONE.maximum,
            round_count=ONE.round_count,
        ),
        ComparisonRow(metric=Metric.DECODE_TOKENS_PER_SECOND, subject="P2", measured=21.1),
    ),
)


def test_what_a_run_measured_is_a_baseline() -> None:
    baseline = predict.measured_baseline(MEASURED_RUN, Metric.TTFT_SECONDS, "P2")
    assert baseline == Baseline(value=ONE, run="study-200g")
    speed = predict.measured_baseline(MEASURED_RUN, Metric.DECODE_TOKENS_PER_SECOND, "P2")
    assert speed == Baseline(value=Spread(mean=21.1), run="study-200g")


@pytest.mark.parametrize(
    ("metric", "subject"),
    [(Metric.TTFT_SECONDS, "P1"), (Metric.TTFT_SECONDS, "P3"), (Metric.LAST_TTFT_SECONDS, "P2")],
)
def test_what_a_run_did_not_measure_is_no_baseline(metric: Metric, subject: str) -> None:
    with pytest.raises(FailedPreconditionError, match=subject) as caught:
        predict.measured_baseline(MEASURED_RUN, metric, subject)
    assert caught.value.reason == "NOT_MEASURED"
    assert caught.value.metadata == {"run": "study-200g", "metric": metric.name, "subject": subject}


def test_what_is_not_predicted_names_what_is_missing() -> None:
    value = predict.unpredicted(Metric.TRAINING_TOKENS_PER_SECOND, "nanochat", ["gradient bytes", "step seconds"])
    assert value.estimate is None
    assert value.missing_inputs == ("gradient bytes", "step seconds")


def test_a_prediction_of_all_kinds_keeps_the_rules() -> None:
    estimate = batch()
    values = (
        predict.ttft_value("P2", prefill(), baseline=ONE),
        predict.extra_ttft_value("P2", prefill(), Baseline(value=ONE, run="study-200g")),
        predict.ttft_value("P6", estimate, baseline=LAST),
        predict.extra_ttft_value("P6", estimate, Baseline(value=LAST)),
        predict.extra_mean_ttft_value("P6", estimate, Baseline(value=MEAN)),
        predict.unpredicted(Metric.EXTRA_TTFT_SECONDS, "P7", ["baseline link"], baseline=Baseline(value=ONE)),
    )
    prediction = predict.prediction(iter(values), estimator_version="0.9.0")
    request = CreateRunRequest(run_id="r1", prediction=prediction)
    assert request.prediction == prediction
    assert (prediction.values, prediction.estimator_version) == (values, "0.9.0")
