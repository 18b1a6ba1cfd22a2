"""The shipped records, predicted and compared by the services, beside what the studies print.

Everything here comes out of `CompareRun`. The studies print rounded means, so increases that are recomputed from them
may differ from the printed ones by 0.1 point, changes of the decode speed by 0.8 point.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from linkbound import ComparisonRow, EstimatorClient, IngestClient, Metric, RunComparison, Severity
from linkbound.data.study import load_study
from linkbound.demo.runner import Loader
from linkbound.demo.tables import Comparisons
from tests.golden.printed import as_printed

PRINTED: dict[str, list[dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("study_comparison.toml").read_text("utf-8")
)
INCREASE_TOLERANCE_POINTS = 0.1
DECODE_TOLERANCE_POINTS = 0.8

pytestmark = pytest.mark.storage


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Comparisons:
    """The four runs, loaded into a store of this process."""
    with (
        EstimatorClient("local:") as estimator,
        IngestClient("local:", data_directory=tmp_path_factory.mktemp("data")) as ingest,
    ):
        return Loader(estimator, ingest, lambda _line: None).load(load_study())


def row_of(comparison: RunComparison, metric: Metric, subject: str) -> ComparisonRow:
    (row,) = [row for row in comparison.rows if (row.metric, row.subject) == (metric, subject)]
    return row


def rows_named(group: str, key: str) -> list[Any]:
    return [pytest.param(row, id=row[key]) for row in PRINTED[group]]


def ttft_metric(test: str) -> tuple[Metric, Metric]:
    """TTFT of a test and its difference: of lone requests, or of the last of four."""
    if test in ("P4", "P6"):
        return Metric.LAST_TTFT_SECONDS, Metric.EXTRA_LAST_TTFT_SECONDS
    return Metric.TTFT_SECONDS, Metric.EXTRA_TTFT_SECONDS


def check_spread(row: ComparisonRow, printed: list[str]) -> None:
    mean, minimum, maximum = printed
    assert row.measured is not None
    assert row.measured_min is not None
    assert row.measured_max is not None
    assert as_printed(row.measured, mean) == mean
    assert as_printed(row.measured_min, minimum) == minimum
    assert as_printed(row.measured_max, maximum) == maximum
    assert row.round_count == 3


@pytest.mark.parametrize("printed", rows_named("ttft", "test"))
def test_table_8_4_measured(printed: dict[str, Any], compared: Comparisons) -> None:
    metric, _ = ttft_metric(printed["test"])
    check_spread(row_of(compared.faster, metric, printed["test"]), printed["ttft_200"])
    check_spread(row_of(compared.slower, metric, printed["test"]), printed["ttft_109"])


@pytest.mark.parametrize("printed", rows_named("ttft", "test"))
def test_table_8_4_increase_beside_its_bound(printed: dict[str, Any], compared: Comparisons) -> None:
    _, difference = ttft_metric(printed["test"])
    row = row_of(compared.slower, difference, printed["test"])
    assert row.measured is not None
    assert row.measured_fraction is not None
    # The study subtracts before it rounds, the records are rounded: half a hundredth of each of the two means.
    assert row.measured == pytest.approx(float(printed["increase_seconds"]), abs=0.0101)
    assert 100 * row.measured_fraction == pytest.approx(
        float(printed["increase_percent"]), abs=INCREASE_TOLERANCE_POINTS
    )
    assert row.predicted is not None
    assert row.predicted.upper is not None
    assert as_printed(row.predicted.upper, printed["bound_seconds"]) == printed["bound_seconds"]
    assert row.inside_interval is printed["inside"]
    assert row.baseline is not None
    assert row.baseline.run == "study-200g"


def test_the_rounds_of_p6_span_what_two_rounds_can_be_apart(compared: Comparisons) -> None:
    row = row_of(compared.slower, Metric.EXTRA_LAST_TTFT_SECONDS, "P6")
    assert row.measured_min is not None
    assert row.measured_max is not None
    assert as_printed(row.measured_min, "7.56") == "7.56"
    assert as_printed(row.measured_max, "9.24") == "9.24"


@pytest.mark.parametrize("printed", rows_named("mean_ttft", "test"))
def test_means_over_four_requests_are_rows_of_their_own_without_a_range(
    printed: dict[str, Any], compared: Comparisons
) -> None:
    before = row_of(compared.faster, Metric.MEAN_TTFT_SECONDS, printed["test"])
    after = row_of(compared.slower, Metric.MEAN_TTFT_SECONDS, printed["test"])
    assert before.measured == float(printed["mean_200"])
    assert after.measured == float(printed["mean_109"])
    for row in (before, after):
        assert (row.measured_min, row.measured_max) == (None, None)
    extra = row_of(compared.slower, Metric.EXTRA_MEAN_TTFT_SECONDS, printed["test"])
    assert extra.measured_fraction is not None
    assert 100 * extra.measured_fraction == pytest.approx(
        float(printed["increase_percent"]), abs=INCREASE_TOLERANCE_POINTS
    )
    assert extra.implied_bytes_per_second is None


@pytest.mark.parametrize("printed", rows_named("decode", "test"))
def test_table_8_5_no_decode_speed_falls_below_its_floor(printed: dict[str, Any], compared: Comparisons) -> None:
    before = row_of(compared.faster, Metric.DECODE_TOKENS_PER_SECOND, printed["test"])
    after = row_of(compared.slower, Metric.DECODE_TOKENS_PER_SECOND, printed["test"])
    assert before.measured == float(printed["tokens_per_second_200"])
    assert after.measured == float(printed["tokens_per_second_109"])
    assert before.measured is not None
    assert after.measured is not None
    assert 100 * (after.measured / before.measured - 1) == pytest.approx(
        float(printed["change_percent"]), abs=DECODE_TOLERANCE_POINTS
    )
    assert before.predicted is None
    assert before.missing_inputs == ("acceptance_length_tokens",)
    assert after.predicted is not None
    assert after.predicted.upper is None
    assert 0.7 * before.measured < after.predicted.lower < before.measured
    assert after.inside_interval is True


@pytest.mark.parametrize("printed", rows_named("nccl", "setup"))
def test_part_6_bus_bandwidth_beside_the_line_rate(printed: dict[str, Any], compared: Comparisons) -> None:
    row = row_of(compared.nccl, Metric.BUS_BANDWIDTH_BYTES_PER_SECOND, printed["setup"])
    assert row.measured == float(printed["gigabytes_per_second"]) * 1e9
    assert row.inside_interval is True
    assert row.implied_bandwidth_ratio is not None
    assert as_printed(100 * row.implied_bandwidth_ratio, printed["efficiency_percent"]) == printed["efficiency_percent"]


@pytest.mark.parametrize("printed", rows_named("full_fine_tuning", "setup"))
def test_part_7_2_the_bandwidth_that_full_fine_tuning_implies(printed: dict[str, Any], compared: Comparisons) -> None:
    row = row_of(compared.training, Metric.TRAINING_STEP_SECONDS, printed["setup"])
    assert row.measured == float(printed["step_seconds"])
    assert row.inside_interval is printed["inside"]
    assert row.implied_bytes_per_second is not None
    assert row.implied_bandwidth_ratio is not None
    implied, share = printed["implied_gigabytes_per_second"], printed["share_percent"]
    assert as_printed(row.implied_bytes_per_second / 1e9, implied) == implied
    assert as_printed(100 * row.implied_bandwidth_ratio, share) == share


def test_part_7_2_the_slow_training_is_a_finding_and_the_small_one_is_not(compared: Comparisons) -> None:
    slow = [finding for finding in compared.training.findings if finding.code == "BANDWIDTH_BELOW_ASSUMED"]
    assert {finding.subject for finding in slow} == {"full, 2 nodes, QSFP", "full, 4 nodes, QSFP"}
    assert {finding.severity for finding in slow} == {Severity.WARNING}


def test_part_7_1_nanochat_is_measured_and_says_what_a_prediction_would_need(compared: Comparisons) -> None:
    rows = [row for row in compared.training.rows if row.metric is Metric.TRAINING_TOKENS_PER_SECOND]
    assert [(row.subject, row.measured) for row in rows] == [
        ("nanochat, 1 node", 9945.5),
        ("nanochat, 2 nodes, RJ45", 10742.9),
        ("nanochat, 4 nodes, RJ45", 9691.3),
    ]
    for row in rows:
        assert row.predicted is None
        assert "compute step time of one node" in row.missing_inputs


def test_one_node_alone_is_an_input_and_has_no_prediction(compared: Comparisons) -> None:
    for setup, step_seconds in (("LoRA, 1 node", 0.45), ("full, 1 node", 2.289)):
        row = row_of(compared.training, Metric.TRAINING_STEP_SECONDS, setup)
        assert (row.measured, row.predicted) == (step_seconds, None)
