"""Deletes the rows of a run in `hot` that count no more, a slice at a time, so that appends go on in between."""

from __future__ import annotations

import duckdb
from attrs import define, field

from ingest_service.store.public_views import SAMPLES_TABLE
from ingest_service.store.queries import select, select_row
from ingest_service.store.row_counts import MOVED_TABLES
from ingest_service.store.sealed_tables import unmark_dropping
from ingest_service.store.transactions import transaction

SLICE_ROW_COUNT = 122_880
"""Rows of one transaction, which ends where a row group does. DuckDB drops a group that is empty, but what is left of
one it puts together with its neighbours at the next checkpoint, and writers wait for that. Measured: where slices of
50,000 rows end anywhere, checkpoints take up to three times as long, and the transactions half as long again in total.
"""

KEYED_SLICE_ROW_COUNT = 10_000
"""The same where a primary key is kept too."""

_SERIES_TABLE = "series"
_KEYED_TABLES = frozenset({"ledger", _SERIES_TABLE})


def _dropping_order() -> list[str]:
    """Series last: they tell which samples belong to the run."""
    return [*(name for name in MOVED_TABLES if name != _SERIES_TABLE), _SERIES_TABLE]


@define
class RowDropper:
    """Drops what `hot` has of one run that is marked as dropping. Belongs to the connection that writes."""

    run_id: str
    _left: list[str] = field(init=False, factory=_dropping_order)

    def drop_slice(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Deletes some rows in one transaction; False once there are none, and the run is no longer marked."""
        with transaction(connection):
            while self._left:
                if self._drop_from(connection, self._left[0]):
                    return True
                del self._left[0]
            unmark_dropping(connection, self.run_id)
            return False

    def _drop_from(self, connection: duckdb.DuckDBPyConnection, table: str) -> bool:
        condition, parameters = "run_id = ?", [self.run_id]
        if table == SAMPLES_TABLE:
            series = select(connection, "SELECT series_id FROM hot.series WHERE run_id = ?", [self.run_id])
            condition, parameters = f"series_id IN ({', '.join(str(number) for (number,) in series) or 'NULL'})", []
        limit = KEYED_SLICE_ROW_COUNT if table in _KEYED_TABLES else SLICE_ROW_COUNT
        # The place of a row holds within a transaction only: a checkpoint may move it.
        places = select_row(
            connection,
            f"SELECT min(rowid), max(rowid) FROM (SELECT rowid FROM hot.{table} WHERE {condition} LIMIT {limit})",
            parameters,
        )
        if places is None or places == (None, None):
            return False
        first, last = places
        end = (first // SLICE_ROW_COUNT + 1) * SLICE_ROW_COUNT
        connection.execute(
            f"DELETE FROM hot.{table} WHERE {condition} AND rowid BETWEEN ? AND ?",
            [*parameters, first, min(last, end - 1)],
        )
        return True
