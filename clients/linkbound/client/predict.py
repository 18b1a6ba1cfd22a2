"""Predicted values of a run, made of estimates before anything is measured. Pure functions.

A value says with `TransferModel` how the metric follows from a bandwidth, so that a measurement later gives the implied
one: seconds = fixed + sent bytes / bandwidth (`docs/formulas.md`, implied bandwidth).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from attrs import evolve

from linkbound import __version__
from linkbound.domain.collective import CollectiveEstimate
from linkbound.domain.decode import DecodeEstimate
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.estimate import Effect, Estimate
from linkbound.domain.link import RateSource, ResolvedLink
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
from linkbound.domain.prefill import PrefillEstimate
from linkbound.domain.training import TrainingStepEstimate

MEAN_WITHIN_BATCH = (
    "The mean carries the bound of the whole batch: between links, no request gains or loses more than the time of all"
    " bytes, if the engine runs the same passes."
)

_RATE_SOURCE_WORDS = {
    RateSource.GIVEN: "given rate",
    RateSource.WIRE_EFFICIENCY: "line rate less packet headers",
    RateSource.PCIE: "PCIe functions in use",
    RateSource.MEASURED: "measured rate",
}

# Far above rounding in the estimator's division and far below any difference between two measured baselines.
_SAME_BASELINE_RATIO = 1e-9


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
    if estimate.network_share_fraction is not None:
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


def bus_bandwidth_value(subject: str, estimate: CollectiveEstimate) -> PredictedValue:
    """Bus bandwidth of a collective. The metric is itself a bandwidth, so the transfer model has no bytes."""
    return PredictedValue(
        metric=Metric.BUS_BANDWIDTH_BYTES_PER_SECOND,
        subject=subject,
        estimate=estimate.bus_bandwidth_bytes_per_second,
        transfer=_transfer(estimate.link, fixed_seconds=0.0, sent_bytes_per_rank=0),
    )


def training_step_value(
    subject: str, estimate: TrainingStepEstimate, *, compute_step_seconds: float, assumed_source: str = ""
) -> PredictedValue:
    """Step time of data-parallel training; fixed = `compute_step_seconds`, as the estimate was asked with.

    `assumed_source` says in words where the bandwidth of the link comes from, such as `nccl-tests busbw`.
    """
    transfer = _transfer(
        estimate.link, fixed_seconds=compute_step_seconds, sent_bytes_per_rank=estimate.sent_bytes_per_rank
    )
    return PredictedValue(
        metric=Metric.TRAINING_STEP_SECONDS,
        subject=subject,
        estimate=estimate.step_seconds,
        transfer=evolve(transfer, assumed_source=assumed_source) if assumed_source else transfer,
    )


def unpredicted(
    metric: Metric, subject: str, missing_inputs: Sequence[str], *, baseline: Baseline | None = None
) -> PredictedValue:
    """A metric that is measured and not predicted, because nobody stated `missing_inputs`.

    `baseline` goes with the metrics that are a difference.
    """
    return PredictedValue(metric=metric, subject=subject, missing_inputs=tuple(missing_inputs), baseline=baseline)


def prediction(values: Iterable[PredictedValue], *, estimator_version: str = __version__) -> Prediction:
    """The prediction to create a run with. `estimator_version` is that of the estimator which was asked."""
    return Prediction(estimator_version=estimator_version, values=tuple(values))


def _extra_of(estimate: PrefillEstimate) -> Estimate:
    if estimate.extra_ttft_seconds is None:
        raise InvalidArgumentError([Violation("to_link", "is missing; the estimate holds no difference between links")])
    return estimate.extra_ttft_seconds


def _check_baseline(estimate: PrefillEstimate, baseline: Spread) -> None:
    """Hold that `baseline` is the one of the estimate: the mean of a batch does not pass for its last request."""
    share = estimate.network_share_fraction
    if share is None:
        raise InvalidArgumentError([Violation("baseline", "was not given to the estimate")])
    if not math.isclose(share * baseline.mean, _network_seconds(estimate), rel_tol=_SAME_BASELINE_RATIO):
        raise InvalidArgumentError([Violation("baseline", f"{baseline.mean} is not the baseline of the estimate")])


def _network_seconds(estimate: PrefillEstimate) -> float:
    return estimate.sent_bytes_per_rank / estimate.link.effective_bytes_per_second


def _prefill_transfer(estimate: PrefillEstimate, fixed_seconds: float) -> TransferModel:
    link = estimate.link if estimate.to_link is None else estimate.to_link
    return _transfer(link, fixed_seconds=fixed_seconds, sent_bytes_per_rank=estimate.sent_bytes_per_rank)


def _transfer(link: ResolvedLink, *, fixed_seconds: float, sent_bytes_per_rank: float) -> TransferModel:
    return TransferModel(
        fixed_seconds=fixed_seconds,
        sent_bytes_per_rank=sent_bytes_per_rank,
        assumed_bytes_per_second=link.effective_bytes_per_second,
        assumed_source=_RATE_SOURCE_WORDS.get(link.rate_source, ""),
    )
