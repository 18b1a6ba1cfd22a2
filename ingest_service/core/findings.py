"""What a person should know about a comparison: each finding with its figures and with what to do, worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from ingest_service.core.figures import bytes_figure, metric_figure, metric_words, percent_figure, rate_figure
from ingest_service.core.measured import Exclusion, ExclusionReason, MeasuredValue, Measurements
from linkbound.domain.estimate import Estimate
from linkbound.domain.metric import Metric
from linkbound.domain.prediction import PredictedValue, TransferModel
from linkbound.domain.run_comparison import ComparisonRow, Finding, Severity

LOW_BANDWIDTH_RATIO = 0.5
"""Below this share of the assumed bandwidth something is probably wrong. Empirical: overlap, small transfers and
stragglers cost less than half; sockets instead of RDMA leave about 3 of 22 GB/s on a 200 Gb/s port."""

MATERIAL_SHARE_FRACTION = 0.1
"""Least share of the measured time that the missing bandwidth has to explain. Empirical: it keeps out transfers so
small that the implied bandwidth is noise, such as the 5 MB of a LoRA step in 0.46 s."""

SMALL_DISTANCE_FRACTION = 0.05
"""A value this close to its interval, with no spread to judge it by, is worth knowing and no more. Empirical."""

_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.INFO)
"""Worst first."""

_HIGHER_IS_BETTER = frozenset(
    {
        Metric.DECODE_TOKENS_PER_SECOND,
        Metric.BUS_BANDWIDTH_BYTES_PER_SECOND,
        Metric.TRAINING_TOKENS_PER_SECOND,
        Metric.TRAINING_SAMPLES_PER_SECOND,
    }
)


@frozen(kw_only=True)
class _Ranked:
    """A finding and how far off it is, as a share; comparable among findings of one code."""

    finding: Finding
    size: float


def find(
    predicted: Sequence[PredictedValue], rows: Sequence[ComparisonRow], measurements: Measurements
) -> tuple[Finding, ...]:
    """All findings, worst first: by severity, then causes before symptoms, then the furthest off.

    `rows` starts with those of `predicted`, in the same order.
    """
    pairs = list(zip(predicted, rows, strict=False))
    by_code: tuple[Iterable[_Ranked | None], ...] = (
        (_excluded(exclusion) for exclusion in measurements.exclusions),
        (_bandwidth_below_assumed(value, row) for value, row in pairs),
        (_outside_interval(row) for row in rows),
        (_measured_twice(values) for values in _by_key(measurements.superseded)),
    )
    found: list[Finding] = []
    for ranked in by_code:
        of_code = sorted((r for r in ranked if r is not None), key=lambda r: -r.size)
        found += [r.finding for r in of_code]
    return tuple(sorted(found, key=lambda finding: _SEVERITIES.index(finding.severity)))


def _bandwidth_below_assumed(value: PredictedValue, row: ComparisonRow) -> _Ranked | None:
    implied, ratio, transfer = row.implied_bytes_per_second, row.implied_bandwidth_ratio, value.transfer
    if implied is None or ratio is None or transfer is None or ratio >= LOW_BANDWIDTH_RATIO:
        return None
    is_bandwidth = row.metric is Metric.BUS_BANDWIDTH_BYTES_PER_SECOND
    if not is_bandwidth and _unexplained_fraction(row, transfer) < MATERIAL_SHARE_FRACTION:
        return None
    source = f", which came from {transfer.assumed_source}" if transfer.assumed_source else ""
    evidence = (
        f"{'measured' if is_bandwidth else 'implied'} {rate_figure(implied)} is {percent_figure(ratio)}"
        f" of the assumed {rate_figure(transfer.assumed_bytes_per_second)}{source}"
    )
    if not is_bandwidth:
        sent_bytes = transfer.sent_bytes_per_rank
        evidence += (
            f"; the {bytes_figure(sent_bytes)} that each rank sends took {sent_bytes / implied:.4g} s"
            f" instead of {sent_bytes / transfer.assumed_bytes_per_second:.4g} s"
        )
    finding = Finding(
        code="BANDWIDTH_BELOW_ASSUMED",
        severity=Severity.WARNING,
        subject=row.subject,
        evidence=evidence,
        advice=(
            "likely causes: the transport fell back to sockets (NCCL_DEBUG=INFO says NET/Socket, not NET/IB), a switch"
            " in a degraded state, or one function of the port in use instead of all (NCCL_IB_HCA);"
            " run nccl-tests on the same nodes just before the job"
        ),
    )
    return _Ranked(finding=finding, size=1 - ratio)


def _unexplained_fraction(row: ComparisonRow, transfer: TransferModel) -> float:
    """Share of the measured time, of a difference together with its baseline, beyond fixed part and assumed rate."""
    if row.measured is None:
        return 0.0
    explained = transfer.fixed_seconds + transfer.sent_bytes_per_rank / transfer.assumed_bytes_per_second
    return (row.measured - explained) / _whole(row, row.measured)


def _whole(row: ComparisonRow, measured: float) -> float:
    return measured + (row.baseline.value.mean if row.baseline is not None else 0.0)


def _outside_interval(row: ComparisonRow) -> _Ranked | None:
    if row.predicted is None or row.measured is None or row.inside_interval is not False:
        return None
    above = row.predicted.upper is not None and row.measured > row.predicted.upper
    end = row.predicted.upper if above and row.predicted.upper is not None else row.predicted.lower
    distance = abs(row.measured - end)
    share = f" ({percent_figure(distance / abs(end))})" if end else ""
    evidence = (
        f"{metric_words(row.metric)}: measured {metric_figure(row.metric, row.measured)} is"
        f" {metric_figure(row.metric, distance)}{share} {'above the upper' if above else 'below the lower'} end,"
        f" {metric_figure(row.metric, end)}"
    )
    if row.measured_min is not None and row.measured_max is not None:
        evidence += f"; rounds from {row.measured_min:.4g} to {metric_figure(row.metric, row.measured_max)}"
    finding = Finding(
        code="OUTSIDE_INTERVAL",
        severity=_severity_outside(row, row.predicted, distance),
        subject=row.subject,
        evidence=evidence,
        advice=_advice_outside(row.metric, row.predicted, above=above),
    )
    return _Ranked(finding=finding, size=distance / abs(end) if end else 1.0)


def _severity_outside(row: ComparisonRow, predicted: Estimate, distance: float) -> Severity:
    """INFO where the rounds reach into the interval, or no range is stated and the value is close to it."""
    if row.measured_min is None or row.measured_max is None:
        close = row.measured is not None and distance <= SMALL_DISTANCE_FRACTION * abs(row.measured)
        return Severity.INFO if close else Severity.WARNING
    reaches_up = row.measured_max >= predicted.lower
    reaches_down = predicted.upper is None or row.measured_min <= predicted.upper
    return Severity.INFO if reaches_up and reaches_down else Severity.WARNING


def _advice_outside(metric: Metric, predicted: Estimate, *, above: bool) -> str:
    if above == (metric in _HIGHER_IS_BETTER):
        return "better than the prediction allows: check the bytes, the rate and the baseline that it started from"
    if not predicted.effects_left_out:
        return "worse than the prediction allows: check that the run had the settings and the link that it assumed"
    effects = ", ".join(effect.name.lower().replace("_", " ") for effect in predicted.effects_left_out)
    return f"worse than the prediction allows, which is silent about: {effects}; check these first"


def _excluded(exclusion: Exclusion) -> _Ranked:
    counts = f"{exclusion.excluded_count} of {exclusion.record_count}"
    if exclusion.reason is ExclusionReason.WRONG_COLLECTIVE_VALUES:
        finding = Finding(
            code="WRONG_COLLECTIVE_VALUES",
            severity=Severity.ERROR,
            subject=exclusion.subject,
            evidence=f"{counts} results of the collective benchmark have wrong values; they are left out",
            advice="a link that corrupts data cannot be measured: check memory, cables and firmware first",
        )
    else:
        finding = Finding(
            code="UNFINISHED_REQUESTS",
            severity=Severity.WARNING,
            subject=exclusion.subject,
            evidence=f"{counts} measured requests did not finish; what they do not state is left out",
            advice="look for errors and timeouts of the engine, then measure these rounds again",
        )
    return _Ranked(finding=finding, size=exclusion.excluded_count / exclusion.record_count)


def _by_key(values: Sequence[MeasuredValue]) -> Iterator[list[MeasuredValue]]:
    keys = dict.fromkeys(value.key for value in values)
    for key in keys:
        yield [value for value in values if value.key == key]


def _measured_twice(superseded: Sequence[MeasuredValue]) -> _Ranked:
    first = superseded[0]
    means = ", ".join(metric_figure(value.metric, value.value.mean) for value in superseded)
    finding = Finding(
        code="MEASURED_TWICE",
        severity=Severity.INFO,
        subject=first.subject,
        evidence=f"{metric_words(first.metric)} is stated more than once; not used: {means}",
        advice="single records count before what a source printed, and the later of two aggregates counts",
    )
    return _Ranked(finding=finding, size=0.0)
