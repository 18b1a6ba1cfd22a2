"""Runs in `runs` and `settings`, and everything that hangs on them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
from attrs import evolve, frozen

from ingest_service.core.page_token import PagePosition
from ingest_service.store.arrow_rows import arrow_table, insert_arrow
from ingest_service.store.prediction_table import delete_prediction, insert_prediction, select_prediction
from ingest_service.store.queries import select, select_row
from ingest_service.store.timestamps import from_utc_column, to_utc_column
from linkbound.domain.errors import NotFoundError, Resource
from linkbound.domain.run import CreateRunRequest, Run, RunState, Setting

NEAR_NAME_COUNT = 3
LEAST_NEAR_SIMILARITY = 0.85
"""Jaro-Winkler similarity from which a name counts as near. Empirical: one or two wrong letters in ten."""

_COLUMNS = "run_id, display_name, state, create_time_utc, seal_time_utc, source"
_SETTINGS_SCHEMA = pa.schema([("run_id", pa.string()), ("key", pa.string()), ("value", pa.string())])


@frozen
class StoredRun:
    """A run with the digest of what it was created with."""

    run: Run
    content_digest: bytes


def select_run(connection: duckdb.DuckDBPyConnection, run_id: str) -> StoredRun | None:
    """The run with its settings and prediction; None where there is none."""
    row = select_row(connection, f"SELECT {_COLUMNS}, content_digest FROM runs WHERE run_id = ?", [run_id])
    if row is None:
        return None
    run = evolve(
        _runs(connection, [row[:-1]])[0],
        prediction=select_prediction(connection, run_id),
    )
    return StoredRun(run, bytes(row[-1]))


def select_runs(connection: duckdb.DuckDBPyConnection, after: PagePosition | None, limit: int) -> tuple[Run, ...]:
    """Up to `limit` runs without their predictions, newest first, those behind `after`."""
    where = ""
    parameters: list[object] = [limit]
    if after is not None:
        where = "WHERE (create_time_utc, run_id) < (?, ?)"
        parameters = [to_utc_column(after.create_time), after.run_id, limit]
    rows = select(
        connection,
        f"SELECT {_COLUMNS} FROM runs {where} ORDER BY create_time_utc DESC, run_id DESC LIMIT ?",
        parameters,
    )
    return _runs(connection, rows)


def insert_run(
    connection: duckdb.DuckDBPyConnection, request: CreateRunRequest, digest: bytes, create_time: datetime
) -> None:
    """Stores a new open run with its settings and prediction within the current transaction."""
    connection.execute(
        f"INSERT INTO hot.runs ({_COLUMNS}, content_digest) VALUES (?, ?, ?, ?, NULL, ?, ?)",
        [
            request.run_id,
            request.display_name,
            RunState.OPEN.name,
            to_utc_column(create_time),
            request.source,
            digest,
        ],
    )
    rows = [(request.run_id, setting.key, setting.value) for setting in request.settings]
    if rows:
        insert_arrow(connection, "hot.settings", arrow_table(_SETTINGS_SCHEMA, rows))
    if request.prediction is not None:
        insert_prediction(connection, request.run_id, request.prediction, create_time)


def mark_sealed(connection: duckdb.DuckDBPyConnection, run_id: str, seal_time: datetime) -> None:
    """Seals a run within the current transaction."""
    connection.execute(
        "UPDATE hot.runs SET state = ?, seal_time_utc = ? WHERE run_id = ?",
        [RunState.SEALED.name, to_utc_column(seal_time), run_id],
    )


def delete_run_rows(connection: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Deletes what says that there is a run, within the current transaction; its data is still to be dropped."""
    delete_prediction(connection, run_id)
    for name in ("sealed_files", "sealed_writers", "settings", "runs"):
        connection.execute(f"DELETE FROM hot.{name} WHERE run_id = ?", [run_id])


def run_not_found(connection: duckdb.DuckDBPyConnection, run_id: str) -> NotFoundError:
    """The error for a run that does not exist, with the names that a person may have meant."""
    rows = select(
        connection,
        "SELECT run_id FROM (SELECT run_id, jaro_winkler_similarity(run_id, ?) AS similarity FROM runs)"
        " WHERE similarity >= ? ORDER BY similarity DESC, run_id LIMIT ?",
        [run_id, LEAST_NEAR_SIMILARITY, NEAR_NAME_COUNT],
    )
    return NotFoundError.of(Resource("run", run_id), [name for (name,) in rows])


def _runs(connection: duckdb.DuckDBPyConnection, rows: Sequence[tuple[Any, ...]]) -> tuple[Run, ...]:
    """Runs from rows of `_COLUMNS`, with their settings sorted by key."""
    settings: dict[str, list[Setting]] = {row[0]: [] for row in rows}
    found = select(
        connection,
        "SELECT run_id, key, value FROM settings WHERE run_id IN (SELECT unnest(?)) ORDER BY run_id, key",
        [list(settings)],
    )
    for run_id, key, value in found:
        settings[run_id].append(Setting(key=key, value=value))
    sizes = dict(
        select(
            connection,
            "SELECT run_id, sum(size_bytes)::BIGINT FROM hot.sealed_files"
            " WHERE run_id IN (SELECT unnest(?)) GROUP BY run_id",
            [list(settings)],
        )
    )
    return tuple(
        Run(
            run_id=run_id,
            display_name=display_name,
            state=RunState[state],
            create_time=from_utc_column(create_time),
            seal_time=from_utc_column(seal_time) if seal_time is not None else None,
            source=source,
            settings=tuple(settings[run_id]),
            sealed_size_bytes=sizes.get(run_id, 0),
        )
        for run_id, display_name, state, create_time, seal_time, source in rows
    )
