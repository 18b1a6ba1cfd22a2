"""A store in memory with its views, filled with records and readings directly: no writer, no numbers, no service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import attrs
import duckdb
import pyarrow as pa
from attrs import define, field

from ingest_service.store.arrow_rows import insert_arrow
from ingest_service.store.public_views import PUBLIC_TABLES, create_public_views
from ingest_service.store.record_tables import table_of
from ingest_service.store.run_table import insert_run
from ingest_service.store.schema import migrate, shipped_migrations
from ingest_service.store.token_table import HOT_TOKENS, token_rows
from linkbound.domain.records import AppendRequest, Record
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import SeriesDescriptor
from tests.property.traffic_reference import Reading

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@define
class ViewStore:
    """Appends go to `hot`; queries see the views."""

    connection: duckdb.DuckDBPyConnection
    _append_count: int = field(init=False, default=0)

    def create_run(self, request: CreateRunRequest) -> None:
        insert_run(self.connection, request, b"digest", NOW)

    def append(self, run: str, *records: Record, writer: str = "bench") -> None:
        """Stores records of one kind."""
        self._append_count += 1
        request = AppendRequest(run=run, writer_id=writer, sequence_number=self._append_count, records=records)
        table = table_of(request)
        rows = table.rows(request.run, request.writer_id, request.sequence_number, request.records)
        insert_arrow(self.connection, table.hot_name, rows)
        chunks = token_rows(request)
        if chunks is not None:
            insert_arrow(self.connection, HOT_TOKENS, chunks)

    def add_series(self, run: str, series_id: int, descriptor: SeriesDescriptor, writer: str = "sampler") -> None:
        """Stores a series under the id."""
        columns = {"series_id": series_id, "run_id": run, "writer_id": writer, **attrs.asdict(descriptor)}
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        self.connection.execute(f"INSERT INTO hot.series ({names}) VALUES ({marks})", list(columns.values()))

    def add_readings(self, readings: Sequence[Reading]) -> None:
        """Stores readings in their order."""
        if not readings:
            return
        columns = {
            "series_id": pa.array([reading.series_id for reading in readings], pa.int32()),
            "time_ns": pa.array([reading.time_ns for reading in readings], pa.int64()),
            "value": pa.array([reading.value for reading in readings], pa.int64()),
            "read_duration_ns": pa.array([reading.read_duration_ns or None for reading in readings], pa.int64()),
        }
        insert_arrow(self.connection, "hot.counter_samples", pa.table(columns))

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """What a query yields."""
        found: list[tuple[Any, ...]] = self.connection.execute(sql, list(parameters)).fetchall()
        return found

    def dicts(self, sql: str, *parameters: object) -> list[dict[str, Any]]:
        """The same, each row by the names of its columns."""
        found = self.connection.execute(sql, list(parameters))
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def clear(self) -> None:
        """Forgets everything that was stored."""
        for table in PUBLIC_TABLES:
            self.connection.execute(f"DELETE FROM hot.{table}")
        self._append_count = 0


@contextmanager
def view_store() -> Iterator[ViewStore]:
    """A new store."""
    with duckdb.connect(config={"threads": 1}) as connection:
        migrate(connection, shipped_migrations(), lambda: NOW)
        create_public_views(connection, None)
        yield ViewStore(connection)
