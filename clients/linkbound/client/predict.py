"""Predicted values of a run, made of estimates before anything is measured. Pure functions.

A value says with `TransferModel` how the metric follows from a bandwidth, so that a measurement later gives the implied
one: seconds = fixed + sent bytes / bandwidth (`docs/formulas.md`, implied bandwidth).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from linkbound.domain.collective_estimate import CollectiveEstimate
from linkbound.domain.decode import DecodeEstimate
from linkbound.domain.errors import FailedPreconditionError, InvalidArgumentError, Violation
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.link import (
    ABOVE_LINE_ADVICE,
    BITS_PER_BYTE,
    RATE_SOURCE_WORDS,
    Link,
    ResolvedLink,
    rate_in_words,
)
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
from linkbound.domain.prefill import PrefillEstimate
from linkbound.domain.run_comparison import RunComparison
from linkbound.domain.training import TrainingStepEstimate

MEAN_WITHIN_BATCH = (
    "The mean carries the bound of the whole batch: between links, no request gains or loses more than the time of all"
    " bytes, if the engine runs the same passes."
)

SAME_DECODING = "A pass yields as many tokens over either link, and no pass goes below the estimated floor."


def ttft_value(subject: str, estimate: PrefillEstimate, *, baseline: Spread | None = None) -> PredictedValue:
    """TTFT of one request alone, or of the last of several that arrive together.

    `baseline` is the spread whose mean the estimate was asked with. Only with it does TTFT follow from a bandwidth:
    the part that is not network time is then known, fixed = baseline - bytes / B of the baseline's link.

    Raises InvalidArgumentError on `baseline` if the estimate was asked with another, or with none.
    """
    metric = Metric.TTFT_SECONDS if estimate.request_count == 1 else Metric.LAST_TTFT_SECONDS
    transfer = None
    if baseline is not None:
        _check_baseline(estimate, baseline)
        transfer = _prefill_transfer(estimate, baseline.mean - _network_seconds(estimate))
    return PredictedValue(
        metric=metric,
        subject=subject,
        estimate=estimate.ttft_seconds,
        transfer=transfer,
        assumptions=estimate.assumptions,
    )


def extra_ttft_value(subject: str, estimate: PrefillEstimate, baseline: Baseline) -> PredictedValue:
    """TTFT over the new link less the measured `baseline`, of one request alone or of the last of several.

    fixed = -bytes / B of the baseline's link.

    Raises InvalidArgumentError if the estimate was asked without a link to change to, or with another baseline.
    """
    extra = _extra_of(estimate)
    if estimate.baseline_ttft_seconds is not None:
        _check_baseline(estimate, baseline.value)
    return PredictedValue(
        metric=Metric.EXTRA_TTFT_SECONDS if estimate.request_count == 1 else Metric.EXTRA_LAST_TTFT_SECONDS,
        subject=subject,
        estimate=extra,
        transfer=_prefill_transfer(estimate, -_network_seconds(estimate)),
        baseline=baseline,
        assumptions=estimate.assumptions,
    )


def extra_mean_ttft_value(subject: str, estimate: PrefillEstimate, mean_baseline: Baseline) -> PredictedValue:
    """Mean TTFT of several requests over the new link less their measured mean, `mean_baseline`.

    It carries the bound of the whole batch and no transfer model: how many bytes are sent before a mean is a matter of
    the engine's schedule, which is left out.

    Raises InvalidArgumentError if the estimate is of one request, or was asked without a link to change to.
    """
    extra = _extra_of(estimate)
    if estimate.request_count == 1:
        raise InvalidArgumentError([Violation("request_count", "1 request has no mean; use extra_ttft_value")])
    left_out = {*extra.effects_left_out, Effect.ENGINE_SCHEDULE}
    return PredictedValue(
        metric=Metric.EXTRA_MEAN_TTFT_SECONDS,
        subject=subject,
        estimate=evolve(extra, effects_left_out=tuple(effect for effect in Effect if effect in left_out)),
        baseline=mean_baseline,
        assumptions=(*estimate.assumptions, MEAN_WITHIN_BATCH),
    )


def decode_value(subject: str, estimate: DecodeEstimate) -> PredictedValue:
    """Decode speed of one request; without an acceptance length the value says that it is missing."""
    if estimate.output_tokens_per_second is None:
        return unpredicted(Metric.DECODE_TOKENS_PER_SECOND, subject, ["acceptance_length_tokens"])
    return PredictedValue(
        metric=Metric.DECODE_TOKENS_PER_SECOND,
        subject=subject,
        estimate=estimate.output_tokens_per_second,
        assumptions=estimate.assumptions,
    )


def slowed_decode_value(subject: str, estimate: DecodeEstimate, baseline_tokens_per_second: float) -> PredictedValue:
    """Floor under the decode speed over the new link, from the measured speed over the old one.

    v_new = a / p_new >= a / (p_old + e) = v_old p_old / (p_old + e) >= v_old f / (f + e), with `a` tokens per pass,
    pass times `p`, floor `f` of the old pass and at most `e` extra per pass (`docs/formulas.md`, Decode).

    Raises InvalidArgumentError if the estimate was asked without a link to change to.
    """
    extra = estimate.extra_pass_seconds
    if extra is None or extra.upper is None:
        raise InvalidArgumentError([Violation("to_link", "is missing; the estimate holds no difference between links")])
    floor_seconds = estimate.pass_seconds.lower
    open_format = (effect for effect in estimate.pass_seconds.effects_left_out if effect is Effect.WEIGHT_FORMAT)
    slowed = baseline_tokens_per_second * floor_seconds / (floor_seconds + max(0.0, extra.upper))
    return PredictedValue(
        metric=Metric.DECODE_TOKENS_PER_SECOND,
        subject=subject,
        estimate=Estimate(
            lower=slowed,
            lower_basis=Basis.MIXED,
            binding_constraint=Constraint.NETWORK_BANDWIDTH,
            effects_left_out=(*extra.effects_left_out, *open_format),
        ),
        assumptions=(*estimate.assumptions, SAME_DECODING),
    )


def measured_baseline(comparison: RunComparison, metric: Metric, subject: str) -> Baseline:
    """What a finished run measured, as what a difference is counted from.

    Raises FailedPreconditionError where the run has no such value.
    """
    for row in comparison.rows:
        if (row.metric, row.subject) == (metric, subject) and row.measured is not None:
            value = Spread(
                mean=row.measured, minimum=row.measured_min, maximum=row.measured_max, round_count=row.round_count
            )
            return Baseline(value=value, run=comparison.run_id)
    raise FailedPreconditionError(
        f"{comparison.run_id} measured no {metric.name} of {subject!r}",
        reason="NOT_MEASURED",
        metadata={"run": comparison.run_id, "metric": metric.name, "subject": subject},
    )


def measured_link(comparison: RunComparison, subject: str, line_rate_bits_per_second: int) -> Link:
    """The link of such a line rate whose bus bandwidth a finished run measured.

    Raises FailedPreconditionError where the run has no such value, or one above the line rate: that is then not the
    rate of one link, or not the line rate of the link that was measured.
    """
    bandwidth = measured_baseline(comparison, Metric.BUS_BANDWIDTH_BYTES_PER_SECOND, subject).value
    measured = round(bandwidth.mean * BITS_PER_BYTE)
    if measured > line_rate_bits_per_second:
        raise FailedPreconditionError(
            f"{comparison.run_id} measured a bus bandwidth of {rate_in_words(measured)} for {subject!r}, above the line"
            f" rate, {rate_in_words(line_rate_bits_per_second)}: {ABOVE_LINE_ADVICE}",
            reason="MEASURED_ABOVE_LINE_RATE",
            metadata={
                "run": comparison.run_id,
                "subject": subject,
                "measuredBitsPerSecond": f"{measured}",
                "lineRateBitsPerSecond": f"{line_rate_bits_per_second}",
            },
        )
    return Link(line_rate_bits_per_second=line_rate_bits_per_second, measured_bits_per_second=measured)


def bus_bandwidth_value(subject: str, estimate: CollectiveEstimate) -> PredictedValue:
    """Bus bandwidth of a collective. The metric is itself a bandwidth, so the transfer model has no bytes."""
    return PredictedValue(
        metric=Metric.BUS_BANDWIDTH_BYTES_PER_SECOND,
        subject=subject,
        estimate=estimate.bus_bandwidth_bytes_per_second,
        transfer=_transfer(estimate.link, fixed_seconds=0.0, sent_bytes_per_rank=0),
        assumptions=estimate.assumptions,
    )


def training_step_value(subject: str, estimate: TrainingStepEstimate, *, assumed_source: str = "") -> PredictedValue:
    """Step time of data-parallel training; fixed = the step time of one node: all of a step that is no exchange.

    So the implied bandwidth takes nothing of the exchange for hidden; where some is, it is an upper end.
    `assumed_source` says in words where the bandwidth of the link comes from, such as `nccl-tests busbw`.
    """
    transfer = _transfer(
        estimate.link,
        fixed_seconds=estimate.compute_step_seconds,
        sent_bytes_per_rank=estimate.sent_bytes_per_rank,
    )
    return PredictedValue(
        metric=Metric.TRAINING_STEP_SECONDS,
        subject=subject,
        estimate=estimate.step_seconds,
        transfer=evolve(transfer, assumed_source=assumed_source) if assumed_source else transfer,
        assumptions=estimate.assumptions,
    )


def unpredicted(
    metric: Metric, subject: str, missing_inputs: Sequence[str], *, baseline: Baseline | None = None
) -> PredictedValue:
    """A metric that is measured and not predicted, because nobody stated `missing_inputs`.

    `baseline` goes with the metrics that are a difference.
    """
    return PredictedValue(metric=metric, subject=subject, missing_inputs=tuple(missing_inputs), baseline=baseline)


def prediction(values: Iterable[PredictedValue], *, estimator_version: str) -> Prediction:
    """The prediction to create a run with. `estimator_version` is what the estimates carry."""
    return Prediction(estimator_version=estimator_version, values=tuple(values))


def _extra_of(estimate: PrefillEstimate) -> Estimate:
    if estimate.extra_ttft_seconds is None:
        raise InvalidArgumentError([Violation("to_link", "is missing; the estimate holds no difference between links")])
    return estimate.extra_ttft_seconds


def _check_baseline(estimate: PrefillEstimate, baseline: Spread) -> None:
    """Hold that `baseline` is the one of the estimate: the mean of a batch does not pass for its last request."""
    if estimate.baseline_ttft_seconds is None:
        raise InvalidArgumentError([Violation("baseline", "was not given to the estimate")])
    if estimate.baseline_ttft_seconds != baseline.mean:
        raise InvalidArgumentError([Violation("baseline", f"{baseline.mean} is not the baseline of the estimate")])


def _network_seconds(estimate: PrefillEstimate) -> float:
    return estimate.sent_bytes_per_rank / estimate.link.effective_bytes_per_second


def _prefill_transfer(estimate: PrefillEstimate, fixed_seconds: float) -> TransferModel:
    link = estimate.link if estimate.to_link is None else estimate.to_link
    return _transfer(link, fixed_seconds=fixed_seconds, sent_bytes_per_rank=estimate.sent_bytes_per_rank)


def _transfer(link: ResolvedLink, *, fixed_seconds: float, sent_bytes_per_rank: int) -> TransferModel:
    return TransferModel(
        fixed_seconds=fixed_seconds,
        sent_bytes_per_rank=sent_bytes_per_rank,
        assumed_bytes_per_second=link.effective_bytes_per_second,
        assumed_source=RATE_SOURCE_WORDS.get(link.rate_source, ""),
    )
