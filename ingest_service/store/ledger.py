"""The ledger: which numbers of which writers are stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import duckdb
import pyarrow as pa
from attrs import frozen

from ingest_service.core.append import Append, AppendKind, RunProgress, WriterProgress
from ingest_service.store.arrow_rows import arrow_table, insert_arrow
from ingest_service.store.queries import select, select_row
from ingest_service.store.timestamps import to_utc_column
from linkbound.domain.run import RunState

_SCHEMA = pa.schema(
    [
        ("run_id", pa.string()),
        ("writer_id", pa.string()),
        ("sequence_number", pa.int64()),
        ("append_kind", pa.string()),
        ("digest", pa.binary()),
        ("row_count", pa.int64()),
        ("rejected_row_count", pa.int64()),
        ("rejection_message", pa.string()),
        ("commit_time_utc", pa.timestamp("us")),
    ]
)


@frozen(kw_only=True)
class LedgerEntry:
    """One append as the ledger holds it."""

    append: Append
    row_count: int
    rejected_row_count: int
    rejection_message: str


def insert_entries(
    connection: duckdb.DuckDBPyConnection, entries: Sequence[LedgerEntry], commit_time: datetime
) -> None:
    """Stores the entries within the current transaction."""
    instant = to_utc_column(commit_time)
    rows = [
        (
            entry.append.run_id,
            entry.append.writer_id,
            entry.append.sequence_number,
            entry.append.kind.name,
            entry.append.digest,
            entry.row_count,
            entry.rejected_row_count,
            entry.rejection_message,
            instant,
        )
        for entry in entries
    ]
    insert_arrow(connection, "ledger", arrow_table(_SCHEMA, rows))


def select_progress(connection: duckdb.DuckDBPyConnection, run_id: str) -> RunProgress | None:
    """How far each writer of a run is; None where there is no such run."""
    run = select_row(connection, "SELECT state FROM runs WHERE run_id = ?", [run_id])
    if run is None:
        return None
    rows = select(
        connection,
        "SELECT writer_id, any_value(append_kind), max(sequence_number) FROM ledger"
        " WHERE run_id = ? GROUP BY writer_id",
        [run_id],
    )
    return RunProgress(
        run_id=run_id,
        sealed=RunState[run[0]] is RunState.SEALED,
        writers=tuple(
            WriterProgress(writer_id=writer_id, kind=AppendKind[kind], committed_sequence_number=number)
            for writer_id, kind, number in rows
        ),
    )


def select_digest(connection: duckdb.DuckDBPyConnection, append: Append) -> bytes:
    """Digest of the content that is stored under the number of `append`. Raises LookupError where there is none."""
    row = select_row(
        connection,
        "SELECT digest FROM ledger WHERE run_id = ? AND writer_id = ? AND sequence_number = ?",
        [append.run_id, append.writer_id, append.sequence_number],
    )
    if row is None:
        raise LookupError(f"the ledger lacks number {append.sequence_number} of writer {append.writer_id}")
    return bytes(row[0])


def delete_ledger(connection: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Deletes the entries of a run within the current transaction."""
    connection.execute("DELETE FROM ledger WHERE run_id = ?", [run_id])
