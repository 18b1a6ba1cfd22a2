"""What holds for every comparison, whatever the figures."""

import math

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import given

from ingest_service.core.comparison import compare, implied_bytes_per_second
from ingest_service.core.measured import MeasuredRecords, fold
from linkbound.domain.estimate import Estimate
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
from linkbound.domain.records import MetricAggregate, RequestRecord
from linkbound.domain.run_comparison import ComparisonRow, RunComparison, Severity

seconds = st.floats(1e-3, 1e5)
rates = st.floats(1e6, 1e12)
sizes = st.integers(1, 10**13)
subjects = st.sampled_from(("P1", "P2", "4 nodes"))


@st.composite
def spreads(draw: st.DrawFn) -> Spread:
    """Spreads with a range."""
    minimum, mean, maximum = sorted(draw(st.lists(seconds, min_size=3, max_size=3)))
    return Spread(mean=mean, minimum=minimum, maximum=maximum, round_count=draw(st.integers(1, 9)))


@st.composite
def transfers(draw: st.DrawFn) -> TransferModel:
    """Transfer models of a time."""
    return TransferModel(
        fixed_seconds=draw(st.floats(-1e3, 1e3)),
        sent_bytes_per_rank=draw(sizes),
        assumed_bytes_per_second=draw(rates),
    )


def one_row(predicted: PredictedValue, measured: Spread, metric: Metric) -> ComparisonRow:
    aggregate = MetricAggregate(metric=metric, subject=predicted.subject, value=measured)
    prediction = Prediction(estimator_version="1", values=(predicted,))
    return compare("r", prediction, fold(MeasuredRecords(aggregates=(aggregate,)))).rows[0]


@given(transfer=transfers(), bandwidth=rates)
def test_the_implied_bandwidth_undoes_the_transfer_model(transfer: TransferModel, bandwidth: float) -> None:
    transfer_seconds = transfer.sent_bytes_per_rank / bandwidth
    measured = transfer.fixed_seconds + transfer_seconds
    implied = implied_bytes_per_second(Metric.TRAINING_STEP_SECONDS, transfer, measured)
    # The fixed part swallows digits of a transfer that is small beside it.
    lost = math.ulp(abs(transfer.fixed_seconds) + transfer_seconds) / transfer_seconds
    if lost < 1e-6:
        assert implied == pytest.approx(bandwidth, rel=1e-9 + 2 * lost)


@given(transfer=transfers(), first=seconds, second=seconds)
def test_a_longer_time_never_implies_more_bandwidth(transfer: TransferModel, first: float, second: float) -> None:
    shorter, longer = sorted((first, second))
    of_longer = implied_bytes_per_second(Metric.TTFT_SECONDS, transfer, longer)
    of_shorter = implied_bytes_per_second(Metric.TTFT_SECONDS, transfer, shorter)
    if of_shorter is not None:
        assert of_longer is not None
        assert of_longer <= of_shorter


@given(measured=spreads(), baseline=spreads())
def test_the_range_of_a_difference_holds_every_difference_of_rounds(measured: Spread, baseline: Spread) -> None:
    predicted = PredictedValue(
        metric=Metric.EXTRA_TTFT_SECONDS,
        subject="P1",
        estimate=Estimate(lower=0.0),
        baseline=Baseline(value=baseline),
    )
    row = one_row(predicted, measured, Metric.TTFT_SECONDS)
    assert row.measured is not None
    assert row.measured_min is not None
    assert row.measured_max is not None
    assert row.measured_min <= row.measured <= row.measured_max
    ends = [
        over - under
        for over in (measured.minimum, measured.maximum)
        for under in (baseline.minimum, baseline.maximum)
        if over is not None and under is not None
    ]
    assert (row.measured_min, row.measured_max) == (min(ends), max(ends))


@given(measured=spreads(), lower=seconds, width=st.one_of(st.none(), seconds))
def test_a_finding_says_outside_exactly_where_the_row_does(measured: Spread, lower: float, width: float | None) -> None:
    upper = None if width is None else lower + width
    predicted = PredictedValue(metric=Metric.TTFT_SECONDS, subject="P1", estimate=Estimate(lower=lower, upper=upper))
    aggregate = MetricAggregate(metric=Metric.TTFT_SECONDS, subject="P1", value=measured)
    comparison = compare(
        "r",
        Prediction(estimator_version="1", values=(predicted,)),
        fold(MeasuredRecords(aggregates=(aggregate,))),
    )
    inside = lower <= measured.mean and (upper is None or measured.mean <= upper)
    assert comparison.rows[0].inside_interval is inside
    assert [f.code for f in comparison.findings] == ([] if inside else ["OUTSIDE_INTERVAL"])


@st.composite
def runs(draw: st.DrawFn) -> RunComparison:
    """Comparisons of mixed content."""
    keys = draw(
        st.lists(
            st.tuples(st.sampled_from((Metric.TTFT_SECONDS, Metric.TRAINING_STEP_SECONDS)), subjects),
            unique=True,
            min_size=1,
        )
    )
    predicted = tuple(
        PredictedValue(
            metric=metric,
            subject=subject,
            estimate=Estimate(lower=0.0, upper=draw(seconds)),
            transfer=draw(transfers()),
        )
        for metric, subject in keys
    )
    aggregates = tuple(
        MetricAggregate(
            metric=draw(st.sampled_from((Metric.TTFT_SECONDS, Metric.TRAINING_STEP_SECONDS, Metric.MEAN_TTFT_SECONDS))),
            subject=draw(subjects),
            value=draw(spreads()),
        )
        for _ in range(draw(st.integers(0, 8)))
    )
    prediction = Prediction(estimator_version="1", values=predicted)
    comparison = compare("r", prediction, fold(MeasuredRecords(aggregates=aggregates)))
    assert [(row.metric, row.subject) for row in comparison.rows[: len(keys)]] == keys
    assert {(a.metric, a.subject) for a in aggregates} <= {(row.metric, row.subject) for row in comparison.rows}
    return comparison


@given(comparison=runs())
def test_each_metric_of_a_subject_has_one_row(comparison: RunComparison) -> None:
    keys = [(row.metric, row.subject) for row in comparison.rows]
    assert len(set(keys)) == len(keys)


@given(comparison=runs())
def test_findings_never_get_worse_down_the_list(comparison: RunComparison) -> None:
    badness = {Severity.ERROR: 2, Severity.WARNING: 1, Severity.INFO: 0}
    found = [badness[finding.severity] for finding in comparison.findings]
    assert found == sorted(found, reverse=True)


@given(ttfts_ns=st.lists(st.integers(1, 10**12), min_size=2, max_size=6))
def test_mean_ttft_is_never_above_last_ttft(ttfts_ns: list[int]) -> None:
    records = tuple(
        RequestRecord(
            subject="P4",
            round_index=0,
            request_index=index,
            prompt_tokens=1,
            output_tokens=1,
            send_ns=0,
            ttft_ns=ttft_ns,
            last_token_ns=ttft_ns,
        )
        for index, ttft_ns in enumerate(ttfts_ns)
    )
    found = {value.metric: value.value for value in fold(MeasuredRecords(requests=records)).values}
    assert found[Metric.MEAN_TTFT_SECONDS].mean <= found[Metric.LAST_TTFT_SECONDS].mean
    reordered = fold(MeasuredRecords(requests=tuple(attrs.evolve(r) for r in reversed(records))))
    assert {value.metric: value.value for value in reordered.values} == found
