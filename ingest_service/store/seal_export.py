"""Writes the rows of one run into Parquet files and reads them back; the store itself is left as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import duckdb
from attrs import frozen

from ingest_service.store.life_steps import LifeStep, OnStep
from ingest_service.store.manifest import Manifest, SealedFile, TimeRange, write_manifest
from ingest_service.store.public_views import SAMPLES_TABLE, Table, as_pattern, quoted
from ingest_service.store.queries import select_number, select_row
from ingest_service.store.sealed_folder import sha256_of, sync_file, sync_folder, table_file
from ingest_service.store.timestamps import to_utc_column
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.run import RunState

COMPRESSION = "zstd"

_SORTED_BY: Mapping[str, str] = {
    SAMPLES_TABLE: "series_id, rowid",
    "series": "series_id",
    "requests": "subject, round_index, request_index, rowid",
    "tokens": "subject, round_index, request_index, rowid",
    "ledger": "writer_id, sequence_number",
}
"""The order of rows in a file; where it is not said, that in which they were stored. Rows that agree in everything else
stay in that order too. So do samples of a series, whose times rise with it but where a clock was set back: what readers
make of that depends on what came first."""

_TIME_COLUMNS: Mapping[str, str] = {
    "runs": "create_time_utc",
    "predictions": "store_time_utc",
    SAMPLES_TABLE: "time_ns",
    "requests": "send_ns",
    "events": "time_ns",
    "ledger": "commit_time_utc",
    "findings": "create_time_utc",
}
"""The column that tells when, of the tables that have one."""


@frozen(kw_only=True)
class RunExport:
    """One run to be written as of the current transaction of a connection that only reads."""

    tables: Sequence[Table]
    schema_version: int
    run_id: str
    seal_time: datetime
    on_step: OnStep

    def write(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> Manifest:
        """Writes every table that has rows, reads each file back, and writes the manifest, all of it durably.

        Raises FailedPreconditionError (SEAL_FAILED) where a file does not say what is stored, duckdb.Error and OSError.
        """
        files: list[SealedFile] = []
        empty: list[str] = []
        for table in self.tables:
            if select_number(connection, f"SELECT count(*) FROM ({self._rows(table)})"):
                files.append(self._write_table(connection, table, table_file(folder, table.name)))
            else:
                empty.append(table.name)
        manifest = Manifest(
            run_id=self.run_id,
            seal_time=self.seal_time,
            schema_version=self.schema_version,
            linkbound_version=metadata.version("linkbound"),
            files=tuple(files),
            empty_tables=tuple(empty),
        )
        write_manifest(folder, manifest)
        sync_folder(folder)
        self.on_step(LifeStep.MANIFEST_WRITTEN)
        return manifest

    def _write_table(self, connection: duckdb.DuckDBPyConnection, table: Table, path: Path) -> SealedFile:
        order = _SORTED_BY.get(table.name, "rowid")
        connection.execute(
            f"COPY ({self._rows(table, f'ORDER BY {order}')}) TO {quoted(str(path))}"
            f" (FORMAT parquet, COMPRESSION {COMPRESSION})"
        )
        sync_file(path)
        self.on_step(LifeStep.FILE_WRITTEN)
        reading = f"SELECT * FROM read_parquet({quoted(as_pattern(str(path)))}, hive_partitioning = false)"
        names = [column.name for column in table.file_columns]
        stored, written = (_content(connection, source, names) for source in (self._rows(table), reading))
        if written != stored:
            raise FailedPreconditionError(
                f"run {self.run_id} stays open: {path.name} does not hold the {stored[0]} rows that are stored",
                reason="SEAL_FAILED",
                metadata={"run": self.run_id, "table": table.name},
            )
        self.on_step(LifeStep.FILE_VERIFIED)
        return SealedFile(
            table=table.name,
            row_count=stored[0],
            size_bytes=path.stat().st_size,
            sha256=sha256_of(path),
            time_range=_time_range(connection, table.name, reading),
        )

    def _rows(self, table: Table, order: str = "") -> str:
        """A SELECT of the run's rows; the name of the folder tells the run, so they do not."""
        run = quoted(self.run_id)
        condition = f"run_id = {run}"
        if table.name == SAMPLES_TABLE:
            condition = f"series_id IN (SELECT series_id FROM hot.series WHERE run_id = {run})"
        names = ", ".join(self._name(table, column.name) for column in table.file_columns)
        return f"SELECT {names} FROM hot.{table.name} WHERE {condition} {order}"

    def _name(self, table: Table, name: str) -> str:
        """A column of the file; what changes by the sealing is written as it will be."""
        if table.name == "runs" and name == "state":
            return f"'{RunState.SEALED.name}' AS state"
        if table.name == "runs" and name == "seal_time_utc":
            return f"TIMESTAMP '{to_utc_column(self.seal_time)}' AS seal_time_utc"
        return name


def write_empty_file(connection: duckdb.DuckDBPyConnection, table: Table, path: Path) -> None:
    """Writes a file with the columns of a table and no rows."""
    columns = ", ".join(f"NULL::{column.data_type} AS {column.name}" for column in table.file_columns)
    connection.execute(f"COPY (SELECT {columns} WHERE false) TO {quoted(str(path))} (FORMAT parquet)")


def _content(connection: duckdb.DuckDBPyConnection, source: str, names: Sequence[str]) -> tuple[int, int]:
    """How many rows `source` has, and the sum of their hashes: equal for the same rows in any order."""
    columns = ", ".join(names)
    row = select_row(connection, f"SELECT count(*), coalesce(sum(hash({columns})::HUGEINT), 0) FROM ({source})")
    row_count, hash_sum = row or (0, 0)
    return int(row_count), int(hash_sum)


def _time_range(connection: duckdb.DuckDBPyConnection, table_name: str, source: str) -> TimeRange | None:
    column = _TIME_COLUMNS.get(table_name)
    if column is None:
        return None
    row = select_row(connection, f"SELECT min({column}), max({column}) FROM ({source})")
    least, greatest = row or (None, None)
    if least is None:
        return None
    return TimeRange(column=column, least=_instant(least), greatest=_instant(greatest))


def _instant(value: Any) -> int | str:
    """A number of nanoseconds as it is, an instant in UTC as text."""
    return f"{value.isoformat()}Z" if isinstance(value, datetime) else int(value)
