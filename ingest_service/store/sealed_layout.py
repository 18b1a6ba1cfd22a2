"""What makes the folder of sealed runs readable: a file without rows of each table, and `views.sql`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb

from ingest_service.store.public_views import NO_RUN, Table, as_pattern, file_views_script, quoted
from ingest_service.store.queries import select
from ingest_service.store.seal_export import write_empty_file
from ingest_service.store.sealed_folder import SealedFolder, write_durably

_HEAD = """\
-- The sealed runs as tables and views, with the names that they have in the store. In this folder:
--     duckdb -cmd '.read views.sql'
-- Written by the ingest service; do not edit.
"""


def prepare_folder(connection: duckdb.DuckDBPyConnection, folder: SealedFolder, tables: Sequence[Table]) -> None:
    """Makes the folder, and in it what is missing or not as it should be. Raises OSError and duckdb.Error."""
    folder.run_path(NO_RUN).mkdir(parents=True, exist_ok=True)
    for table in tables:
        path = folder.file_path(NO_RUN, table.name)
        if not _has_columns(connection, table, path):
            _write_empty_file(connection, table, path)
    script = f"{_HEAD}\n{file_views_script(tables)}"
    if not _holds(folder.views_path, script):
        write_durably(folder.views_path, script)


def _has_columns(connection: duckdb.DuckDBPyConnection, table: Table, path: Path) -> bool:
    """Whether the file has the columns of the view of the table, and no others."""
    if not path.is_file():
        return False
    reading = f"read_parquet({quoted(as_pattern(str(path)))}, hive_partitioning = false)"
    try:
        found = select(connection, f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {reading})")
    except duckdb.Error:
        return False
    return found == [(column.name, column.data_type) for column in table.file_columns]


def _write_empty_file(connection: duckdb.DuckDBPyConnection, table: Table, path: Path) -> None:
    aside = path.with_name(f"_{path.name}")
    write_empty_file(connection, table, aside)
    aside.replace(path)


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False
