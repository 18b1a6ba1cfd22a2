"""Frozen predictions in `predictions` and `predicted_values`, readable by SQL and restored exactly."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa

from ingest_service.store.arrow_rows import arrow_table, insert_arrow
from ingest_service.store.queries import select, select_row
from ingest_service.store.timestamps import from_utc_column, to_utc_column
from linkbound.domain.estimate import Basis, Constraint, Effect, Estimate
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction, TransferModel

_TEXTS = pa.list_(pa.string())
_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("prediction_index", pa.int32()),
        ("value_index", pa.int32()),
        ("metric", pa.string()),
        ("subject", pa.string()),
        ("lower", pa.float64()),
        ("expected", pa.float64()),
        ("upper", pa.float64()),
        ("lower_basis", pa.string()),
        ("expected_basis", pa.string()),
        ("upper_basis", pa.string()),
        ("binding_constraint", pa.string()),
        ("effects_left_out", _TEXTS),
        ("transfer_fixed_seconds", pa.float64()),
        ("transfer_sent_bytes_per_rank", pa.int64()),
        ("transfer_assumed_bytes_per_second", pa.float64()),
        ("transfer_assumed_source", pa.string()),
        ("baseline_mean", pa.float64()),
        ("baseline_minimum", pa.float64()),
        ("baseline_maximum", pa.float64()),
        ("baseline_round_count", pa.int32()),
        ("baseline_run_id", pa.string()),
        ("missing_inputs", _TEXTS),
        ("assumptions", _TEXTS),
    ]
)


FROZEN_INDEX = 0
"""Position of the prediction that was stored with its run."""


def insert_prediction(
    connection: duckdb.DuckDBPyConnection, run_id: str, prediction: Prediction, store_time: datetime
) -> None:
    """Stores the frozen prediction of a new run within the current transaction."""
    connection.execute(
        "INSERT INTO hot.predictions (run_id, prediction_index, made_after_the_fact, estimator_version, store_time_utc)"
        " VALUES (?, ?, false, ?, ?)",
        [run_id, FROZEN_INDEX, prediction.estimator_version, to_utc_column(store_time)],
    )
    rows = [_row(run_id, index, value) for index, value in enumerate(prediction.values)]
    insert_arrow(connection, "hot.predicted_values", arrow_table(_SCHEMA, rows))


def select_prediction(connection: duckdb.DuckDBPyConnection, run_id: str) -> Prediction | None:
    """The frozen prediction of a run; None where it has none."""
    head = select_row(
        connection,
        "SELECT prediction_index, estimator_version, store_time_utc FROM predictions"
        " WHERE run_id = ? AND NOT made_after_the_fact",
        [run_id],
    )
    if head is None:
        return None
    index, version, store_time = head
    names = ", ".join(_SCHEMA.names[3:])
    rows = select(
        connection,
        f"SELECT {names} FROM predicted_values WHERE run_id = ? AND prediction_index = ? ORDER BY value_index",
        [run_id, index],
    )
    return Prediction(
        estimator_version=version, values=tuple(map(_value, rows)), store_time=from_utc_column(store_time)
    )


def delete_prediction(connection: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Deletes the predictions of a run within the current transaction."""
    connection.execute("DELETE FROM hot.predicted_values WHERE run_id = ?", [run_id])
    connection.execute("DELETE FROM hot.predictions WHERE run_id = ?", [run_id])


def _row(run_id: str, index: int, value: PredictedValue) -> tuple[object, ...]:
    return (
        run_id,
        FROZEN_INDEX,
        index,
        value.metric.name,
        value.subject,
        *_estimate_columns(value.estimate),
        *_transfer_columns(value.transfer),
        *_baseline_columns(value.baseline),
        value.missing_inputs,
        value.assumptions,
    )


def _estimate_columns(estimate: Estimate | None) -> tuple[object, ...]:
    """The columns from `lower` to `effects_left_out`."""
    if estimate is None:
        return (None,) * 8
    return (
        estimate.lower,
        estimate.expected,
        estimate.upper,
        estimate.lower_basis.name,
        estimate.expected_basis.name,
        estimate.upper_basis.name,
        estimate.binding_constraint.name,
        [effect.name for effect in estimate.effects_left_out],
    )


def _transfer_columns(transfer: TransferModel | None) -> tuple[object, ...]:
    """The columns `transfer_*`."""
    if transfer is None:
        return (None,) * 4
    return (
        transfer.fixed_seconds,
        transfer.sent_bytes_per_rank,
        transfer.assumed_bytes_per_second,
        transfer.assumed_source,
    )


def _baseline_columns(baseline: Baseline | None) -> tuple[object, ...]:
    """The columns `baseline_*`."""
    if baseline is None:
        return (None,) * 5
    value = baseline.value
    return value.mean, value.minimum, value.maximum, value.round_count, baseline.run


def _value(row: Sequence[Any]) -> PredictedValue:
    """The value in a row of `_SCHEMA` without its key; the columns are nullable, so their types are not known."""
    metric, subject = row[:2]
    missing_inputs, assumptions = row[-2:]
    return PredictedValue(
        metric=Metric[metric],
        subject=subject,
        estimate=_estimate(row[2:10]),
        transfer=_transfer(row[10:14]),
        baseline=_baseline(row[14:19]),
        missing_inputs=tuple(missing_inputs),
        assumptions=tuple(assumptions),
    )


def _estimate(columns: Sequence[Any]) -> Estimate | None:
    lower, expected, upper, lower_basis, expected_basis, upper_basis, constraint, effects = columns
    if lower is None:
        return None
    return Estimate(
        lower=lower,
        expected=expected,
        upper=upper,
        lower_basis=Basis[lower_basis],
        expected_basis=Basis[expected_basis],
        upper_basis=Basis[upper_basis],
        binding_constraint=Constraint[constraint],
        effects_left_out=tuple(Effect[name] for name in effects),
    )


def _transfer(columns: Sequence[Any]) -> TransferModel | None:
    fixed_seconds, sent_bytes_per_rank, assumed_bytes_per_second, assumed_source = columns
    if fixed_seconds is None:
        return None
    return TransferModel(
        fixed_seconds=fixed_seconds,
        sent_bytes_per_rank=sent_bytes_per_rank,
        assumed_bytes_per_second=assumed_bytes_per_second,
        assumed_source=assumed_source,
    )


def _baseline(columns: Sequence[Any]) -> Baseline | None:
    mean, minimum, maximum, round_count, run_id = columns
    if mean is None:
        return None
    return Baseline(value=Spread(mean=mean, minimum=minimum, maximum=maximum, round_count=round_count), run=run_id)
