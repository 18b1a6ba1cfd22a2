"""Holds the frozen prediction of a run beside what was measured: `docs/formulas.md`, implied bandwidth.

Rows mean what `ComparisonRow` in the proto of the query service says.
"""

from __future__ import annotations

from attrs import evolve

from ingest_service.core.findings import find
from ingest_service.core.measured import MeasuredKey, Measurements
from linkbound.domain.metric import MEASURED_METRIC_OF_DIFFERENCE, Metric, Spread
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
from linkbound.domain.run_comparison import ComparisonRow, RunComparison

TIME_METRICS = frozenset(
    {
        Metric.TTFT_SECONDS,
        Metric.LAST_TTFT_SECONDS,
        Metric.MEAN_TTFT_SECONDS,
        Metric.EXTRA_TTFT_SECONDS,
        Metric.EXTRA_LAST_TTFT_SECONDS,
        Metric.EXTRA_MEAN_TTFT_SECONDS,
        Metric.TRAINING_STEP_SECONDS,
        Metric.TRAINING_ELAPSED_SECONDS,
    }
)
"""Metrics that are a time: a transfer model gives their implied bandwidth."""


def compare(run_id: str, prediction: Prediction | None, measurements: Measurements) -> RunComparison:
    """Rows of what is predicted or measured, and what stands out in them.

    Predicted rows come in the order of the prediction, the others by subject and metric. A measured metric that is
    only the minuend of a predicted difference has a row of its own too.
    """
    measured = {value.key: value.value for value in measurements.values}
    predicted = prediction.values if prediction is not None else ()
    rows = [_predicted_row(value, measured) for value in predicted]
    predicted_keys = {(value.metric, value.subject) for value in predicted}
    rows += [
        _measured_row(ComparisonRow(metric=value.metric, subject=value.subject), value.value)
        for value in measurements.values
        if value.key not in predicted_keys
    ]
    return RunComparison(run_id=run_id, rows=tuple(rows), findings=find(predicted, tuple(rows), measurements))


def implied_bytes_per_second(metric: Metric, transfer: TransferModel, measured: float) -> float | None:
    """Bandwidth at which the transfer model gives `measured`: sent bytes / (measured - fixed seconds).

    A measured bandwidth is its own answer. None where the metric does not follow from a bandwidth, nothing is sent, or
    `measured` is not above the fixed part: then no bandwidth explains it.
    """
    if metric is Metric.BUS_BANDWIDTH_BYTES_PER_SECOND:
        return measured
    transfer_seconds = measured - transfer.fixed_seconds
    if metric not in TIME_METRICS or transfer.sent_bytes_per_rank <= 0 or transfer_seconds <= 0:
        return None
    return transfer.sent_bytes_per_rank / transfer_seconds


def _predicted_row(value: PredictedValue, measured: dict[MeasuredKey, Spread]) -> ComparisonRow:
    row = ComparisonRow(
        metric=value.metric,
        subject=value.subject,
        predicted=value.estimate,
        baseline=value.baseline,
        missing_inputs=value.missing_inputs,
        assumed_bytes_per_second=_assumed_bytes_per_second(value.transfer),
        assumed_source=value.transfer.assumed_source if value.transfer is not None else "",
    )
    base_metric = MEASURED_METRIC_OF_DIFFERENCE.get(value.metric, value.metric)
    spread = measured.get((base_metric, value.subject))
    if spread is None:
        return row
    row = _measured_row(row, spread) if value.baseline is None else _difference_row(row, spread, value.baseline)
    return _judged_row(row, value.transfer)


def _measured_row(row: ComparisonRow, spread: Spread) -> ComparisonRow:
    return evolve(
        row,
        measured=spread.mean,
        measured_min=spread.minimum,
        measured_max=spread.maximum,
        round_count=spread.round_count,
    )


def _difference_row(row: ComparisonRow, spread: Spread, baseline: Baseline) -> ComparisonRow:
    """Measured less baseline; the ends of the range are the furthest that two rounds can be apart."""
    difference = spread.mean - baseline.value.mean
    return evolve(
        row,
        measured=difference,
        measured_min=_less(spread.minimum, baseline.value.maximum),
        measured_max=_less(spread.maximum, baseline.value.minimum),
        round_count=spread.round_count,
        measured_fraction=difference / baseline.value.mean,
    )


def _less(minuend: float | None, subtrahend: float | None) -> float | None:
    return None if minuend is None or subtrahend is None else minuend - subtrahend


def _assumed_bytes_per_second(transfer: TransferModel | None) -> float | None:
    return transfer.assumed_bytes_per_second if transfer is not None and transfer.assumed_bytes_per_second > 0 else None


def _judged_row(row: ComparisonRow, transfer: TransferModel | None) -> ComparisonRow:
    """The row with what follows from prediction and measurement together."""
    measured = row.measured
    if measured is None:
        return row
    implied = implied_bytes_per_second(row.metric, transfer, measured) if transfer is not None else None
    assumed = row.assumed_bytes_per_second
    return evolve(
        row,
        inside_interval=row.predicted.contains(measured) if row.predicted is not None else None,
        implied_bytes_per_second=implied,
        implied_bandwidth_ratio=implied / assumed if implied is not None and assumed is not None else None,
    )
