"""Predictions of the studies' runs, asked from the estimator before a run is created."""

from __future__ import annotations

from linkbound.client import predict
from linkbound.client.estimator import EstimatorClient
from linkbound.data.study import InferenceStudy, MultiNodeStudy, StudyLink, StudyTest, setup_name
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeEstimate
from linkbound.domain.link import Link
from linkbound.domain.metric import Metric
from linkbound.domain.prediction import PredictedValue, Prediction
from linkbound.domain.prefill import PrefillEstimate
from linkbound.domain.run_comparison import RunComparison


def of_first_link(estimator: EstimatorClient, study: InferenceStudy, link: StudyLink) -> Prediction:
    """Floors under the TTFTs over `link`; without a baseline nothing bounds them from above."""
    values: list[PredictedValue] = []
    versions: set[str] = set()
    for test in study.tests:
        prefill = _prefill(estimator, study, test, link.link)
        values.append(predict.ttft_value(test.id, prefill))
        values.append(predict.decode_value(test.id, _decode(estimator, study, test, link.link)))
        versions.add(prefill.estimator_version)
    return _frozen(values, versions)


def of_changed_link(
    estimator: EstimatorClient,
    study: InferenceStudy,
    link: StudyLink,
    baseline_link: StudyLink,
    baseline_comparison: RunComparison,
) -> Prediction:
    """What changes over `link`, counted from what was measured over `baseline_link`."""
    values: list[PredictedValue] = []
    versions: set[str] = set()
    for test in study.tests:
        is_batch = test.request_count > 1
        metric = Metric.LAST_TTFT_SECONDS if is_batch else Metric.TTFT_SECONDS
        baseline = predict.measured_baseline(baseline_comparison, metric, test.id)
        prefill = _prefill(estimator, study, test, baseline_link.link, link.link, baseline.value.mean)
        values.append(predict.extra_ttft_value(test.id, prefill, baseline))
        if is_batch:
            mean_baseline = predict.measured_baseline(baseline_comparison, Metric.MEAN_TTFT_SECONDS, test.id)
            values.append(predict.extra_mean_ttft_value(test.id, prefill, mean_baseline))
        decode = _decode(estimator, study, test, baseline_link.link, link.link)
        speed = predict.measured_baseline(baseline_comparison, Metric.DECODE_TOKENS_PER_SECOND, test.id).value
        values.append(predict.slowed_decode_value(test.id, decode, speed.mean))
        versions.add(prefill.estimator_version)
    return _frozen(values, versions)


def of_bandwidths(estimator: EstimatorClient, study: MultiNodeStudy) -> Prediction:
    """Bus bandwidths, which the line rate bounds. The bound is the same for every collective."""
    values: list[PredictedValue] = []
    versions: set[str] = set()
    for row in study.bandwidths:
        estimate = estimator.estimate_collective(
            kind=CollectiveKind.ALL_REDUCE,
            rank_count=row.node_count,
            link=Link(line_rate_bits_per_second=row.line_rate_bits_per_second),
        )
        values.append(predict.bus_bandwidth_value(row.id, estimate))
        versions.add(estimate.estimator_version)
    return _frozen(values, versions)


def of_training(estimator: EstimatorClient, study: MultiNodeStudy, nccl: RunComparison) -> Prediction:
    """Step times over the bandwidth that nccl-tests measured; what lacks inputs is named with them."""
    values: list[PredictedValue] = []
    versions: set[str] = set()
    for kind in study.fine_tunings:
        for row in kind.rows:
            if row.node_count == 1:
                # One node alone is the input of the others.
                continue
            source = study.bandwidth(row.bandwidth_of)
            estimate = estimator.estimate_training_step(
                gradient_bytes=kind.gradient_bytes,
                rank_count=row.node_count,
                link=predict.measured_link(nccl, source.id, source.line_rate_bits_per_second),
                compute_step_seconds=kind.compute_step_seconds,
            )
            values.append(
                predict.training_step_value(
                    setup_name(kind.id, row.node_count, row.link),
                    estimate,
                    assumed_source=f"nccl-tests bus bandwidth, {source.id}",
                )
            )
            versions.add(estimate.estimator_version)
    values += [
        predict.unpredicted(
            Metric.TRAINING_TOKENS_PER_SECOND,
            setup_name(study.pre_training_id, row.node_count, row.link),
            row.missing_inputs,
        )
        for row in study.pre_trainings
    ]
    return _frozen(values, versions)


def _frozen(values: list[PredictedValue], estimator_versions: set[str]) -> Prediction:
    """The prediction of a run. Several versions: the estimator was replaced between two questions."""
    return predict.prediction(values, estimator_version="+".join(sorted(estimator_versions)))


def _prefill(
    estimator: EstimatorClient,
    study: InferenceStudy,
    test: StudyTest,
    link: Link,
    to_link: Link | None = None,
    baseline_ttft_seconds: float | None = None,
) -> PrefillEstimate:
    return estimator.estimate_prefill(
        model=study.system.model,
        tensor_parallel_size=study.system.tensor_parallel_size,
        prompt_tokens=test.prompt_tokens,
        request_count=test.request_count,
        max_num_batched_tokens=study.system.max_num_batched_tokens,
        link=link,
        to_link=to_link,
        baseline_ttft_seconds=baseline_ttft_seconds,
    )


def _decode(
    estimator: EstimatorClient, study: InferenceStudy, test: StudyTest, link: Link, to_link: Link | None = None
) -> DecodeEstimate:
    return estimator.estimate_decode(
        model=study.system.model,
        tensor_parallel_size=study.system.tensor_parallel_size,
        request_count=test.request_count,
        draft_token_count=study.system.draft_token_count,
        hardware=study.system.hardware,
        link=link,
        to_link=to_link,
    )
