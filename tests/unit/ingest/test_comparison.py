"""Predicted beside measured, on the figures of the two studies and by definition."""

import attrs
import pytest

from ingest_service.core.comparison import compare, implied_bytes_per_second
from ingest_service.core.measured import MeasuredRecords, fold
from linkbound.domain.estimate import Estimate
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
from linkbound.domain.records import CollectiveResult, MetricAggregate
from linkbound.domain.run_comparison import ComparisonRow, RunComparison
from tests.unit.ingest.study import PRINTED_STEPS, PRINTED_TTFTS


def compared(records: MeasuredRecords, *predicted: PredictedValue) -> RunComparison:
    prediction = Prediction(estimator_version="1", values=predicted) if predicted else None
    return compare("r", prediction, fold(records))


STUDY = compared(
    MeasuredRecords(
        aggregates=tuple(test.measured for test in PRINTED_TTFTS),
        training_steps=tuple(step.measured for step in PRINTED_STEPS),
    ),
    *(test.predicted for test in PRINTED_TTFTS),
    *(step.predicted for step in PRINTED_STEPS),
)
ROWS = {row.subject: row for row in STUDY.rows if row.predicted is not None}


@pytest.mark.parametrize(
    ("subject", "bound", "increase", "percent", "inside"),
    [
        ("P1", 0.12, 0.01, 1.1, True),
        ("P2", 0.92, 0.88, 13.9, True),
        ("P3", 3.69, 3.55, 13.1, True),
        ("P4", 3.69, 3.44, 15.0, True),
        ("P5", 7.39, 6.99, 12.6, True),
        ("P6", 7.39, 8.44, 18.4, False),
    ],
)
def test_the_table_of_section_8_4(subject: str, bound: float, increase: float, percent: float, *, inside: bool) -> None:
    row = ROWS[subject]
    assert row.predicted is not None
    assert row.predicted.upper == pytest.approx(bound, abs=0.005)
    # The study took its differences before rounding: 62.47 - 55.47 is printed as 6.99.
    assert row.measured == pytest.approx(increase, abs=0.0101)
    assert row.measured_fraction is not None
    assert row.measured_fraction * 100 == pytest.approx(percent, abs=0.1)
    assert row.inside_interval is inside
    assert row.round_count == 3


def test_the_range_of_a_difference_is_the_furthest_that_two_rounds_are_apart() -> None:
    row = ROWS["P6"]
    assert row.measured_min == pytest.approx(54.08 - 46.52)
    assert row.measured_max == pytest.approx(54.60 - 45.36)


def test_what_is_measured_for_a_difference_has_its_own_row_behind_the_predicted_ones() -> None:
    measured_only = STUDY.rows[len(PRINTED_TTFTS) + len(PRINTED_STEPS) :]
    assert [(row.subject, row.metric) for row in measured_only] == [
        (test.subject, test.metric) for test in PRINTED_TTFTS
    ]
    assert all(row.predicted is None and row.inside_interval is None for row in measured_only)


@pytest.mark.parametrize(
    ("subject", "implied_gigabytes_per_second", "percent_of_assumed", "inside"),
    [
        ("full 2 RJ45", 1.2, 103, True),
        ("full 4 RJ45", 1.2, 102, True),
        ("full 2 QSFP", 1.7, 8, False),
        ("full 4 QSFP", 1.9, 8, False),
    ],
)
def test_full_fine_tuning_shows_the_bandwidth_that_it_saw(
    subject: str, implied_gigabytes_per_second: float, percent_of_assumed: float, *, inside: bool
) -> None:
    row = ROWS[subject]
    assert row.implied_bytes_per_second is not None
    assert row.implied_bandwidth_ratio is not None
    assert row.implied_bytes_per_second / 1e9 == pytest.approx(implied_gigabytes_per_second, abs=0.05)
    assert row.implied_bandwidth_ratio * 100 == pytest.approx(percent_of_assumed, abs=0.5)
    assert row.inside_interval is inside


BANDWIDTH = PredictedValue(
    metric=Metric.BUS_BANDWIDTH_BYTES_PER_SECOND,
    subject="4 nodes",
    estimate=Estimate(lower=0.0, upper=25e9),
    transfer=TransferModel(
        fixed_seconds=0.0, sent_bytes_per_rank=0, assumed_bytes_per_second=25e9, assumed_source="given rate"
    ),
)


def test_a_bus_bandwidth_is_its_own_implied_bandwidth() -> None:
    result = CollectiveResult(subject="4 nodes", rank_count=4, bus_bandwidth_bytes_per_second=22.07e9)
    [row] = compared(MeasuredRecords(collectives=(result,)), BANDWIDTH).rows
    assert row.implied_bytes_per_second == 22.07e9
    assert row.implied_bandwidth_ratio == pytest.approx(0.8828)
    assert (row.assumed_bytes_per_second, row.assumed_source) == (25e9, "given rate")
    assert row.measured_min is None
    assert row.round_count is None


MODEL = TransferModel(fixed_seconds=2.0, sent_bytes_per_rank=12 * 10**9, assumed_bytes_per_second=4e9)


@pytest.mark.parametrize(
    ("metric", "transfer", "measured", "expected"),
    [
        (Metric.TRAINING_STEP_SECONDS, MODEL, 8.0, 2e9),
        (Metric.TRAINING_STEP_SECONDS, MODEL, 2.0, None),
        (Metric.TRAINING_STEP_SECONDS, MODEL, 1.0, None),
        (Metric.TRAINING_STEP_SECONDS, attrs.evolve(MODEL, sent_bytes_per_rank=0), 8.0, None),
        (Metric.TRAINING_TOKENS_PER_SECOND, MODEL, 8.0, None),
        (Metric.DECODE_TOKENS_PER_SECOND, MODEL, 8.0, None),
        (Metric.EXTRA_TTFT_SECONDS, attrs.evolve(MODEL, fixed_seconds=-3.0), 1.0, 3e9),
        (Metric.EXTRA_TTFT_SECONDS, attrs.evolve(MODEL, fixed_seconds=-3.0), -3.0, None),
    ],
)
def test_the_implied_bandwidth_by_definition(
    metric: Metric, transfer: TransferModel, measured: float, expected: float | None
) -> None:
    assert implied_bytes_per_second(metric, transfer, measured) == expected


def test_an_assumed_bandwidth_of_0_gives_no_ratio() -> None:
    assert BANDWIDTH.transfer is not None
    unknown = attrs.evolve(BANDWIDTH, transfer=attrs.evolve(BANDWIDTH.transfer, assumed_bytes_per_second=0.0))
    result = CollectiveResult(subject="4 nodes", rank_count=4, bus_bandwidth_bytes_per_second=22.07e9)
    comparison = compared(MeasuredRecords(collectives=(result,)), unknown)
    assert comparison.rows[0].implied_bandwidth_ratio is None
    assert comparison.rows[0].assumed_bytes_per_second is None
    assert comparison.findings == ()


def test_what_was_not_measured_keeps_its_prediction() -> None:
    [row] = compared(MeasuredRecords(), BANDWIDTH).rows
    assert row == ComparisonRow(
        metric=BANDWIDTH.metric,
        subject="4 nodes",
        predicted=BANDWIDTH.estimate,
        assumed_bytes_per_second=25e9,
        assumed_source="given rate",
    )


def test_what_could_not_be_predicted_names_its_inputs_beside_the_measurement() -> None:
    unpredicted = PredictedValue(
        metric=Metric.TRAINING_TOKENS_PER_SECOND, subject="nanochat", missing_inputs=("model size",)
    )
    measured = MetricAggregate(metric=Metric.TRAINING_TOKENS_PER_SECOND, subject="nanochat", value=Spread(mean=9691.3))
    [row] = compared(MeasuredRecords(aggregates=(measured,)), unpredicted).rows
    assert row.predicted is None
    assert row.inside_interval is None
    assert row.measured == 9691.3
    assert row.missing_inputs == ("model size",)
    assert (row.assumed_bytes_per_second, row.assumed_source) == (None, "")


def test_a_range_that_one_side_does_not_state_stays_unstated() -> None:
    predicted = PredictedValue(
        metric=Metric.EXTRA_TTFT_SECONDS,
        subject="P1",
        estimate=Estimate(lower=0.0),
        baseline=Baseline(value=Spread(mean=1.0, minimum=0.5)),
    )
    measured = MetricAggregate(
        metric=Metric.TTFT_SECONDS, subject="P1", value=Spread(mean=3.0, minimum=2.0, maximum=4.0)
    )
    row = compared(MeasuredRecords(aggregates=(measured,)), predicted).rows[0]
    assert (row.measured, row.measured_min, row.measured_max) == (2.0, None, 3.5)
    assert row.round_count is None
    assert row.inside_interval is True


def test_a_run_without_a_prediction_has_measured_rows_only() -> None:
    comparison = compared(MeasuredRecords(aggregates=(PRINTED_TTFTS[0].measured,)))
    assert [row.measured for row in comparison.rows] == [0.97]
    assert comparison.findings == ()
