"""The ledger: which numbers of which writers are stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import structlog
from attrs import frozen

from ingest_service.core.append import Append, AppendKind, RunProgress, WriterProgress
from ingest_service.store.arrow_rows import arrow_table, insert_in_order
from ingest_service.store.public_views import as_pattern, quoted
from ingest_service.store.queries import select, select_row
from ingest_service.store.sealed_folder import SealedFolder
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

_SEALED = RunState.SEALED.name
_PROGRESS = (
    "SELECT writer_id, any_value(append_kind), max(sequence_number) FROM hot.ledger WHERE run_id = ? GROUP BY writer_id"
)
_SEALED_PROGRESS = "SELECT writer_id, append_kind, committed_sequence_number FROM hot.sealed_writers WHERE run_id = ?"

_log = structlog.get_logger(__name__)


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
    insert_in_order(connection, "hot.ledger", arrow_table(_SCHEMA, rows))


def select_progress(connection: duckdb.DuckDBPyConnection, run_id: str) -> RunProgress | None:
    """How far each writer of a run is; None where there is no such run."""
    run = select_row(connection, "SELECT state FROM hot.runs WHERE run_id = ?", [run_id])
    if run is None:
        return None
    is_sealed = RunState[run[0]] is RunState.SEALED
    rows = select(connection, _SEALED_PROGRESS if is_sealed else _PROGRESS, [run_id])
    return RunProgress(
        run_id=run_id,
        sealed=is_sealed,
        writers=tuple(
            WriterProgress(writer_id=writer_id, kind=AppendKind[kind], committed_sequence_number=number)
            for writer_id, kind, number in rows
        ),
    )


def select_rejected_row_count(connection: duckdb.DuckDBPyConnection, run_id: str, writer_id: str) -> int:
    """Rows that a writer of an open run brought and that were not stored."""
    row = select_row(
        connection,
        "SELECT coalesce(sum(rejected_row_count), 0)::BIGINT FROM hot.ledger WHERE run_id = ? AND writer_id = ?",
        [run_id, writer_id],
    )
    return 0 if row is None else int(row[0])


def select_digest(connection: duckdb.DuckDBPyConnection, append: Append, folder: SealedFolder) -> bytes | None:
    """Digest of the content that is stored under the number of `append`; None where a sealed ledger cannot be read.

    Raises LookupError where there is none.
    """
    row = select_row(
        connection,
        "SELECT digest FROM hot.ledger WHERE run_id = ? AND writer_id = ? AND sequence_number = ?",
        [append.run_id, append.writer_id, append.sequence_number],
    )
    if row is None:
        row = _sealed_digest(connection, append, folder.file_path(append.run_id, "ledger"))
    if row is None:
        raise LookupError(f"the ledger lacks number {append.sequence_number} of writer {append.writer_id}")
    return None if row[0] is None else bytes(row[0])


def _sealed_digest(
    connection: duckdb.DuckDBPyConnection, append: Append, file: Path
) -> tuple[bytes | None, ...] | None:
    """The digest in the ledger of a sealed run: None in the row where it cannot be read, no row where there is none."""
    if select_row(connection, "SELECT state FROM hot.runs WHERE run_id = ?", [append.run_id]) != (_SEALED,):
        return None
    # On a connection of its own: an error would end the transaction that appends are stored in.
    reading = connection.cursor()
    try:
        return select_row(
            reading,
            f"SELECT digest FROM read_parquet({quoted(as_pattern(str(file)))}, hive_partitioning = false)"
            " WHERE writer_id = ? AND sequence_number = ?",
            [append.writer_id, append.sequence_number],
        )
    except duckdb.Error as error:
        _log.warning("sealed_ledger_unreadable", run=append.run_id, path=str(file), exc_info=error)
        return (None,)
    finally:
        reading.close()
