"""Predictions of the studies' runs, asked from the estimator before a run is created."""

from __future__ import annotations

from attrs import frozen

from linkbound.client import predict
from linkbound.client.estimator import EstimatorClient
from linkbound.data.study import BandwidthRow, InferenceStudy, MultiNodeStudy, StudyLink, StudyTest, setup_name
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeEstimate
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.estimate import Basis, Constraint, Estimate
from linkbound.domain.link import Link
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction
from linkbound.domain.prefill import PrefillEstimate
from linkbound.domain.run_comparison import RunComparison

_BITS_PER_BYTE = 8
_SAME_DECODING = "A pass yields as many tokens over either link, and no pass goes below the estimated floor."


@frozen
class MeasuredRun:
    """What a finished run measured, as the ingest service tells it."""

    comparison: RunComparison

    def value(self, metric: Metric, subject: str) -> Spread:
        """The measured value of one metric. Raises FailedPreconditionError where the run has none."""
        for row in self.comparison.rows:
            if (row.metric, row.subject) == (metric, subject) and row.measured is not None:
                return Spread(
                    mean=row.measured,
                    minimum=row.measured_min,
                    maximum=row.measured_max,
                    round_count=row.round_count,
                )
        raise FailedPreconditionError(f"{self.comparison.run_id} measured no {metric.name} of {subject!r}")

    def baseline(self, metric: Metric, subject: str) -> Baseline:
        """The measured value of one metric as what a difference is counted from."""
        return Baseline(value=self.value(metric, subject), run=self.comparison.run_id)


def of_first_link(estimator: EstimatorClient, study: InferenceStudy, link: StudyLink) -> Prediction:
    """Floors under the TTFTs over `link`; without a baseline nothing bounds them from above."""
    values: list[PredictedValue] = []
    for test in study.tests:
        values.append(predict.ttft_value(test.id, _prefill(estimator, study, test, link.link)))
        values.append(predict.decode_value(test.id, _decode(estimator, study, test, link.link)))
    return predict.prediction(values)


def of_changed_link(
    estimator: EstimatorClient,
    study: InferenceStudy,
    link: StudyLink,
    baseline_link: StudyLink,
    baseline_comparison: RunComparison,
) -> Prediction:
    """What changes over `link`, counted from what was measured over `baseline_link`."""
    measured = MeasuredRun(baseline_comparison)
    values: list[PredictedValue] = []
    for test in study.tests:
        is_batch = test.request_count > 1
        baseline = measured.baseline(Metric.LAST_TTFT_SECONDS if is_batch else Metric.TTFT_SECONDS, test.id)
        prefill = _prefill(estimator, study, test, baseline_link.link, link.link, baseline.value.mean)
        values.append(predict.extra_ttft_value(test.id, prefill, baseline))
        if is_batch:
            mean_baseline = measured.baseline(Metric.MEAN_TTFT_SECONDS, test.id)
            values.append(predict.extra_mean_ttft_value(test.id, prefill, mean_baseline))
        decode = _decode(estimator, study, test, baseline_link.link, link.link)
        speed = measured.value(Metric.DECODE_TOKENS_PER_SECOND, test.id)
        values.append(slowed_decode_value(test.id, decode, speed.mean))
    return predict.prediction(values)


def of_bandwidths(estimator: EstimatorClient, study: MultiNodeStudy) -> Prediction:
    """Bus bandwidths, which the line rate bounds. The bound is the same for every collective."""
    return predict.prediction(
        predict.bus_bandwidth_value(
            row.id,
            estimator.estimate_collective(
                kind=CollectiveKind.ALL_REDUCE,
                rank_count=row.node_count,
                link=Link(line_rate_bits_per_second=row.line_rate_bits_per_second),
            ),
        )
        for row in study.bandwidths
    )


def of_training(estimator: EstimatorClient, study: MultiNodeStudy, nccl: RunComparison) -> Prediction:
    """Step times over the bandwidth that nccl-tests measured; what lacks inputs is named with them."""
    measured = MeasuredRun(nccl)
    values: list[PredictedValue] = []
    for kind in study.fine_tunings:
        for row in kind.rows:
            if row.node_count == 1:
                # One node alone is the input of the others.
                continue
            source = study.bandwidth(row.bandwidth_of)
            estimate = estimator.estimate_training_step(
                gradient_bytes=kind.gradient_bytes,
                rank_count=row.node_count,
                link=_measured_link(source, measured),
                compute_step_seconds=kind.compute_step_seconds,
            )
            values.append(
                predict.training_step_value(
                    setup_name(kind.id, row.node_count, row.link),
                    estimate,
                    compute_step_seconds=kind.compute_step_seconds,
                    assumed_source=f"nccl-tests bus bandwidth, {source.id}",
                )
            )
    values += [
        predict.unpredicted(
            Metric.TRAINING_TOKENS_PER_SECOND,
            setup_name(study.pre_training_id, row.node_count, row.link),
            row.missing_inputs,
        )
        for row in study.pre_trainings
    ]
    return predict.prediction(values)


def slowed_decode_value(subject: str, estimate: DecodeEstimate, baseline_tokens_per_second: float) -> PredictedValue:
    """Floor under the decode speed over the new link, from the speed over the old one.

    v_new = a / p_new >= a / (p_old + e) = v_old p_old / (p_old + e) >= v_old f / (f + e), with `a` tokens per pass,
    pass times `p`, floor `f` of the old pass and at most `e` extra per pass (`docs/formulas.md`, Decode).

    Raises FailedPreconditionError if the estimate was asked without a link to change to.
    """
    extra = estimate.extra_pass_seconds
    if extra is None or extra.upper is None:
        raise FailedPreconditionError("the estimate holds no difference between links")
    floor_seconds = estimate.pass_seconds.lower
    slowed = baseline_tokens_per_second * floor_seconds / (floor_seconds + max(0.0, extra.upper))
    return PredictedValue(
        metric=Metric.DECODE_TOKENS_PER_SECOND,
        subject=subject,
        estimate=Estimate(
            lower=slowed,
            lower_basis=Basis.MIXED,
            binding_constraint=Constraint.NETWORK_BANDWIDTH,
            effects_left_out=extra.effects_left_out,
        ),
        assumptions=(*estimate.assumptions, _SAME_DECODING),
    )


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


def _measured_link(row: BandwidthRow, measured: MeasuredRun) -> Link:
    bandwidth = measured.value(Metric.BUS_BANDWIDTH_BYTES_PER_SECOND, row.id)
    return Link(
        line_rate_bits_per_second=row.line_rate_bits_per_second,
        measured_bits_per_second=round(bandwidth.mean * _BITS_PER_BYTE),
    )
