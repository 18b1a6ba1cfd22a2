"""How many rows of each kind a run has: counted in `hot` while it is open, as its files say once it is sealed."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from ingest_service.store.public_views import KEPT_TABLES, PUBLIC_TABLES, SAMPLES_TABLE
from ingest_service.store.queries import select, select_row
from linkbound.domain.run import RunRowCounts, RunState

_TABLE_OF_COUNT: Mapping[str, str] = {
    "request_record_count": "requests",
    "metric_aggregate_count": "metric_aggregates",
    "collective_result_count": "collectives",
    "training_step_count": "training_steps",
    "sample_count": SAMPLES_TABLE,
    "link_test_count": "link_tests",
    "event_count": "events",
    "chunk_count": "tokens",
}

MOVED_TABLES = tuple(name for name in PUBLIC_TABLES if name not in KEPT_TABLES)
"""Tables whose rows leave `hot` when their run is sealed."""


def count_rows(connection: duckdb.DuckDBPyConnection, run_id: str) -> RunRowCounts:
    """Rows of a run by kind."""
    counts = count_by_table(connection, run_id)
    return RunRowCounts(**{field: counts[table] for field, table in _TABLE_OF_COUNT.items()})


def count_by_table(connection: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, int]:
    """Rows of a run in each of `MOVED_TABLES`."""
    state = select_row(connection, "SELECT state FROM hot.runs WHERE run_id = ?", [run_id])
    if state == (RunState.SEALED.name,):
        found = select(connection, "SELECT table_name, row_count FROM hot.sealed_files WHERE run_id = ?", [run_id])
        return dict.fromkeys(MOVED_TABLES, 0) | dict(found)
    return dict(select(connection, _COUNTS, [run_id] * len(MOVED_TABLES)))


def _count(table: str) -> str:
    condition = "run_id = ?"
    if table == SAMPLES_TABLE:
        condition = "series_id IN (SELECT series_id FROM hot.series WHERE run_id = ?)"
    return f"SELECT '{table}', count(*) FROM hot.{table} WHERE {condition}"


_COUNTS = " UNION ALL ".join(map(_count, MOVED_TABLES))
