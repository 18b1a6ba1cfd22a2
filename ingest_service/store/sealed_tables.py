"""What `hot` keeps of sealed runs: their files, how far their writers came, and which rows are still to be dropped."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from ingest_service.store.manifest import SealedFile
from ingest_service.store.queries import select
from linkbound.domain.run import RunState


def insert_sealed_files(connection: duckdb.DuckDBPyConnection, run_id: str, files: Sequence[SealedFile]) -> None:
    """Stores what the files of a run are, within the current transaction."""
    for file in files:
        connection.execute(
            "INSERT INTO hot.sealed_files (run_id, table_name, row_count, size_bytes, sha256) VALUES (?, ?, ?, ?, ?)",
            [run_id, file.table, file.row_count, file.size_bytes, file.sha256],
        )


def select_sealed_files(connection: duckdb.DuckDBPyConnection, run_id: str) -> tuple[SealedFile, ...]:
    """The files of a sealed run, without their times; none of a run that is open."""
    rows = select(
        connection,
        "SELECT table_name, row_count, size_bytes, sha256 FROM hot.sealed_files WHERE run_id = ?",
        [run_id],
    )
    return tuple(
        SealedFile(table=table, row_count=row_count, size_bytes=size_bytes, sha256=sha256)
        for table, row_count, size_bytes, sha256 in rows
    )


def has_sealed_runs(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether any run is sealed."""
    return bool(select(connection, "SELECT 1 FROM hot.runs WHERE state = ? LIMIT 1", [RunState.SEALED.name]))


def insert_sealed_writers(connection: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """Stores how far the writers of a run came, within the current transaction; its ledger is about to be dropped."""
    connection.execute(
        "INSERT INTO hot.sealed_writers (run_id, writer_id, append_kind, committed_sequence_number)"
        " SELECT run_id, writer_id, any_value(append_kind), max(sequence_number) FROM hot.ledger"
        " WHERE run_id = ? GROUP BY run_id, writer_id",
        [run_id],
    )


def mark_dropping(connection: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """From here on the rows of a run in `hot` count no more, within the current transaction."""
    connection.execute("INSERT INTO hot.dropping_runs (run_id) VALUES (?)", [run_id])


def unmark_dropping(connection: duckdb.DuckDBPyConnection, run_id: str) -> None:
    """The rows of a run are gone, within the current transaction."""
    connection.execute("DELETE FROM hot.dropping_runs WHERE run_id = ?", [run_id])


def select_dropping(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """Runs whose rows are still to be dropped."""
    rows = select(connection, "SELECT DISTINCT run_id FROM hot.dropping_runs ORDER BY run_id")
    return tuple(run_id for (run_id,) in rows)
