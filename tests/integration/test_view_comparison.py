"""`v_measured` and `v_comparison` tell what `CompareRun` answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest_service.core.comparison import compare
from ingest_service.core.measured import MeasuredRecords, fold
from linkbound.domain.estimate import Estimate
from linkbound.domain.metric import MEASURED_METRIC_OF_DIFFERENCE, Metric, Spread
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel
from linkbound.domain.records import CollectiveResult, MetricAggregate, Record, RequestRecord, TrainingStep
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.run_comparison import ComparisonRow
from tests.integration.view_store import ViewStore, view_store

RUN = "r"
SUBJECTS = st.sampled_from(["P1", "P4", "full"])
METRICS = [metric for metric in Metric if metric not in (Metric.UNSPECIFIED, Metric.UNKNOWN)]
AMOUNTS = st.floats(0.01, 1e6)
ON_ONE_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)


@pytest.fixture(scope="module")
def shared() -> Iterator[ViewStore]:
    with view_store() as store:
        yield store


@st.composite
def spreads(draw: st.DrawFn) -> Spread:
    low, mean, high = sorted(draw(st.lists(AMOUNTS, min_size=3, max_size=3)))
    has_range = draw(st.booleans())
    return Spread(
        mean=mean,
        minimum=low if has_range else None,
        maximum=high if has_range else None,
        round_count=draw(st.none() | st.integers(1, 9)),
    )


@st.composite
def predicted_values(draw: st.DrawFn) -> PredictedValue:
    metric = draw(st.sampled_from(METRICS))
    low, expected, high = sorted(draw(st.lists(st.floats(-1e4, 1e6), min_size=3, max_size=3)))
    estimate = Estimate(
        lower=low, expected=draw(st.sampled_from([None, expected])), upper=draw(st.sampled_from([None, high]))
    )
    transfer = TransferModel(
        fixed_seconds=draw(st.floats(-100, 100)),
        sent_bytes_per_rank=draw(st.integers(0, 10**12)),
        assumed_bytes_per_second=draw(st.sampled_from([0.0, 1e9, 2.5e10])),
    )
    is_predicted = draw(st.booleans())
    return PredictedValue(
        metric=metric,
        subject=draw(SUBJECTS),
        estimate=estimate if is_predicted else None,
        missing_inputs=() if is_predicted else ("batch size",),
        transfer=draw(st.sampled_from([None, transfer])),
        baseline=Baseline(value=draw(spreads())) if metric in MEASURED_METRIC_OF_DIFFERENCE else None,
    )


predictions = st.builds(
    Prediction,
    estimator_version=st.just("1"),
    values=st.lists(
        predicted_values(), min_size=1, max_size=5, unique_by=lambda value: (value.metric, value.subject)
    ).map(tuple),
)


@st.composite
def requests(draw: st.DrawFn) -> RequestRecord:
    ttft_ns = draw(st.none() | st.integers(1, 10**11))
    last_ns = None if ttft_ns is None else draw(st.none() | st.integers(ttft_ns, 10**12))
    return RequestRecord(
        subject=draw(SUBJECTS),
        round_index=draw(st.integers(-1, 2)),
        request_index=draw(st.integers(0, 3)),
        prompt_tokens=10,
        output_tokens=draw(st.integers(0, 100)),
        ttft_ns=ttft_ns,
        last_token_ns=last_ns,
        first_chunk_tokens=draw(st.sampled_from([None, 1, 4])),
    )


aggregates = st.builds(
    MetricAggregate,
    metric=st.sampled_from([metric for metric in METRICS if metric not in MEASURED_METRIC_OF_DIFFERENCE]),
    subject=SUBJECTS,
    value=spreads(),
)
collectives = st.builds(
    CollectiveResult,
    subject=SUBJECTS,
    rank_count=st.just(2),
    message_bytes=st.sampled_from([None, 1024, 2**30]),
    bus_bandwidth_bytes_per_second=AMOUNTS,
    error_count=st.sampled_from([None, 0, 3]),
)
training_steps = st.builds(
    TrainingStep,
    subject=SUBJECTS,
    node_count=st.just(2),
    step_index=st.sampled_from([None, 0, 1]),
    step_seconds=AMOUNTS,
    samples_per_second=st.none() | AMOUNTS,
    tokens_per_second=st.none() | AMOUNTS,
    elapsed_seconds=st.none() | AMOUNTS,
)


@st.composite
def all_records(draw: st.DrawFn) -> MeasuredRecords:
    def some(strategy: Any) -> Any:
        return tuple(draw(st.lists(strategy, max_size=6)))

    return MeasuredRecords(
        aggregates=some(aggregates),
        requests=some(requests()),
        collectives=some(collectives),
        training_steps=some(training_steps),
    )


def fill(store: ViewStore, prediction: Prediction | None, records: MeasuredRecords) -> None:
    store.clear()
    store.create_run(CreateRunRequest(run_id=RUN, prediction=prediction))
    kinds: Sequence[Sequence[Record]] = attrs.astuple(records, recurse=False)
    for kind in kinds:
        # In two appends: of two aggregates the one that is stored last counts.
        for part in (kind[: len(kind) // 2], kind[len(kind) // 2 :]):
            if part:
                store.append(RUN, *part)


def close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value


def as_in_the_view(row: ComparisonRow) -> dict[str, Any]:
    predicted, baseline = row.predicted, row.baseline
    values = {
        "subject": row.subject,
        "metric": row.metric.name,
        "lower": predicted.lower if predicted is not None else None,
        "expected": predicted.expected if predicted is not None else None,
        "upper": predicted.upper if predicted is not None else None,
        "measured_mean": row.measured,
        "measured_minimum": row.measured_min,
        "measured_maximum": row.measured_max,
        "round_count": row.round_count,
        "is_inside_interval": row.inside_interval,
        "baseline_mean": baseline.value.mean if baseline is not None else None,
        "measured_fraction": row.measured_fraction,
        "assumed_bytes_per_second": row.assumed_bytes_per_second,
        "implied_bytes_per_second": row.implied_bytes_per_second,
        "implied_bandwidth_ratio": row.implied_bandwidth_ratio,
    }
    return {name: close(value) for name, value in values.items()}


def is_clear(row: ComparisonRow) -> bool:
    """Whether no figure hangs on the last digit of a mean: at an end of the interval, or where all of it is fixed."""
    if row.measured is None or row.predicted is None:
        return True
    ends = [end for end in (row.predicted.lower, row.predicted.upper) if end is not None]
    return all(abs(row.measured - end) > 1e-9 * max(1.0, abs(end)) for end in ends)


def has_clear_bandwidth(row: ComparisonRow, value: PredictedValue | None) -> bool:
    """Whether what is left of the measured time without its fixed part does not hang on the last digit of a mean."""
    if row.measured is None or value is None or value.transfer is None:
        return True
    fixed_seconds = value.transfer.fixed_seconds
    baseline = value.baseline.value.mean if value.baseline is not None else 0.0
    return abs(row.measured - fixed_seconds) > 1e-5 * max(1.0, abs(row.measured), abs(fixed_seconds), baseline)


@ON_ONE_STORE
@given(prediction=st.none() | predictions, records=all_records())
def test_rows_are_those_of_the_service(
    shared: ViewStore, prediction: Prediction | None, records: MeasuredRecords
) -> None:
    fill(shared, prediction, records)
    answered = compare(RUN, prediction, fold(records)).rows
    told = shared.dicts("SELECT * FROM v_comparison ORDER BY value_index NULLS LAST, subject")
    assert {(row["metric"], row["subject"]) for row in told} == {(row.metric.name, row.subject) for row in answered}
    assert len(told) == len(answered)
    by_key = {(row["metric"], row["subject"]): row for row in told}
    values = {(value.metric, value.subject): value for value in prediction.values} if prediction is not None else {}
    predicted_count = len(values)
    assert [row["value_index"] for row in told] == [*range(predicted_count), *[None] * (len(told) - predicted_count)]
    for row in answered:
        found = by_key[row.metric.name, row.subject]
        expected = as_in_the_view(row)
        if not is_clear(row):
            del expected["is_inside_interval"]
        if not has_clear_bandwidth(row, values.get((row.metric, row.subject))):
            del expected["implied_bytes_per_second"], expected["implied_bandwidth_ratio"]
        assert {name: found[name] for name in expected} == expected


@ON_ONE_STORE
@given(records=all_records())
def test_measured_values_are_those_of_the_service(shared: ViewStore, records: MeasuredRecords) -> None:
    fill(shared, None, records)
    told = shared.rows("SELECT metric, subject, mean, minimum, maximum, round_count FROM v_measured ORDER BY 2, 1")
    folded = [
        (value.metric.name, value.subject, *map(close, attrs.astuple(value.value))) for value in fold(records).values
    ]
    assert told == sorted(folded, key=lambda row: (row[1], row[0]))


def test_a_prediction_that_was_made_later_is_not_compared(shared: ViewStore) -> None:
    value = PredictedValue(metric=Metric.TTFT_SECONDS, subject="P1", estimate=Estimate(lower=1.0, upper=2.0))
    aggregate = MetricAggregate(metric=Metric.TTFT_SECONDS, subject="P1", value=Spread(mean=1.5))
    fill(shared, Prediction(estimator_version="1", values=(value,)), MeasuredRecords(aggregates=(aggregate,)))
    for table, change in (("predictions", "true AS made_after_the_fact, "), ("predicted_values", "9.0 AS lower, ")):
        shared.connection.execute(
            f"INSERT INTO hot.{table} SELECT * REPLACE ({change}1 AS prediction_index) FROM hot.{table}"
        )
    assert shared.rows("SELECT lower, measured_mean, is_inside_interval FROM v_comparison") == [(1.0, 1.5, True)]
