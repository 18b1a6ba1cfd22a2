"""Predictions of the demo: what they cover, and the version that they keep."""

from itertools import cycle
from typing import Any

import attrs
import pytest

from linkbound import EstimatorClient, FailedPreconditionError, Metric
from linkbound.data.study import load_study
from linkbound.demo import predictions
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.collective_estimate import CollectiveEstimate
from linkbound.domain.link import rate_in_words
from linkbound.domain.metric import Spread
from linkbound.domain.prediction import Prediction
from linkbound.domain.run_comparison import ComparisonRow, RunComparison

STUDY = load_study()
FIRST_LINK, CHANGED_LINK = STUDY.inference.links
SINGLE, BATCHES = ["P1", "P2", "P3", "P5"], ["P4", "P6"]


def measured(run_id: str, *rows: tuple[Metric, str, float]) -> RunComparison:
    return RunComparison(
        run_id=run_id,
        rows=tuple(ComparisonRow(metric=metric, subject=subject, measured=value) for metric, subject, value in rows),
    )


def printed_over_the_first_link() -> RunComparison:
    study = STUDY.inference
    return measured(
        FIRST_LINK.run_id,
        *((m.metric, m.test_id, m.value.mean) for m in study.measurements if m.link_key == FIRST_LINK.key),
    )


def keys_of(prediction: Prediction) -> set[tuple[Metric, str]]:
    return {(value.metric, value.subject) for value in prediction.values}


def test_the_first_link_has_floors_and_says_what_decode_lacks() -> None:
    with EstimatorClient() as estimator:
        prediction = predictions.of_first_link(estimator, STUDY.inference, FIRST_LINK)
    assert keys_of(prediction) == (
        {(Metric.TTFT_SECONDS, test) for test in SINGLE}
        | {(Metric.LAST_TTFT_SECONDS, test) for test in BATCHES}
        | {(Metric.DECODE_TOKENS_PER_SECOND, test) for test in SINGLE + BATCHES}
    )
    for value in prediction.values:
        if value.metric is Metric.DECODE_TOKENS_PER_SECOND:
            assert value.missing_inputs == ("acceptance_length_tokens",)
        else:
            assert value.estimate is not None
            assert value.estimate.upper is None


def test_the_changed_link_is_counted_from_what_the_first_run_measured() -> None:
    with EstimatorClient() as estimator:
        prediction = predictions.of_changed_link(
            estimator, STUDY.inference, CHANGED_LINK, FIRST_LINK, printed_over_the_first_link()
        )
    assert keys_of(prediction) == (
        {(Metric.EXTRA_TTFT_SECONDS, test) for test in SINGLE}
        | {
            (metric, test)
            for metric in (Metric.EXTRA_LAST_TTFT_SECONDS, Metric.EXTRA_MEAN_TTFT_SECONDS)
            for test in BATCHES
        }
        | {(Metric.DECODE_TOKENS_PER_SECOND, test) for test in SINGLE + BATCHES}
    )
    [of_p2] = [v for v in prediction.values if (v.metric, v.subject) == (Metric.EXTRA_TTFT_SECONDS, "P2")]
    assert of_p2.baseline is not None
    assert (of_p2.baseline.run, of_p2.baseline.value) == (FIRST_LINK.run_id, Spread(mean=6.36))
    [speed] = [v for v in prediction.values if (v.metric, v.subject) == (Metric.DECODE_TOKENS_PER_SECOND, "P2")]
    assert speed.estimate is not None
    assert 0 < speed.estimate.lower < 21.1


def test_nothing_is_counted_from_what_was_not_measured() -> None:
    with EstimatorClient() as estimator, pytest.raises(FailedPreconditionError) as caught:
        predictions.of_changed_link(estimator, STUDY.inference, CHANGED_LINK, FIRST_LINK, measured("empty"))
    assert caught.value.reason == "NOT_MEASURED"


def test_a_prediction_keeps_the_version_of_the_estimates() -> None:
    study = STUDY.multi_node
    with EstimatorClient() as estimator:
        version = estimator.estimate_collective(
            kind=CollectiveKind.ALL_REDUCE, rank_count=2, link="1g"
        ).estimator_version
        prediction = predictions.of_bandwidths(estimator, study)
    assert prediction.estimator_version == version
    assert keys_of(prediction) == {(Metric.BUS_BANDWIDTH_BYTES_PER_SECOND, row.id) for row in study.bandwidths}


def test_an_estimator_that_is_replaced_between_two_questions_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, versions = EstimatorClient.estimate_collective, cycle(["2", "1"])

    def of_alternating_versions(client: EstimatorClient, **question: Any) -> CollectiveEstimate:
        return attrs.evolve(asked(client, **question), estimator_version=next(versions))

    monkeypatch.setattr(EstimatorClient, "estimate_collective", of_alternating_versions)
    with EstimatorClient() as estimator:
        assert predictions.of_bandwidths(estimator, STUDY.multi_node).estimator_version == "1+2"


def test_a_bandwidth_above_the_line_rate_is_told_by_its_record() -> None:
    study = STUDY.multi_node
    rows = [(Metric.BUS_BANDWIDTH_BYTES_PER_SECOND, row.id, 1e9) for row in study.bandwidths]
    row = study.bandwidth(study.fine_tunings[0].rows[-1].bandwidth_of)
    too_fast = [(metric, key, 30e9 if key == row.id else value) for metric, key, value in rows]
    with EstimatorClient() as estimator, pytest.raises(FailedPreconditionError) as caught:
        predictions.of_training(estimator, study, measured("nccl", *too_fast))
    line_rate = rate_in_words(row.line_rate_bits_per_second)
    assert caught.value.reason == "MEASURED_ABOVE_LINE_RATE"
    assert f"nccl measured a bus bandwidth of 240 Gb/s for {row.id!r}, above the line rate, {line_rate}: " in str(
        caught.value
    )
    assert caught.value.metadata["subject"] == row.id


def test_training_takes_the_bandwidth_that_was_measured_over_the_same_link() -> None:
    study = STUDY.multi_node
    nccl = measured("nccl", *((Metric.BUS_BANDWIDTH_BYTES_PER_SECOND, row.id, 1e9) for row in study.bandwidths))
    with EstimatorClient() as estimator:
        prediction = predictions.of_training(estimator, study, nccl)
    steps = [value for value in prediction.values if value.transfer is not None]
    assert len(steps) == 8
    assert {value.transfer.assumed_bytes_per_second for value in steps if value.transfer is not None} == {1e9}
    assert {value.transfer.fixed_seconds for value in steps if value.transfer is not None} == {0.45, 2.289}
