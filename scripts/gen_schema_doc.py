"""Writes docs/schema.md from the migrations and the views, or checks that it is up to date.

    gen_schema_doc.py write
    gen_schema_doc.py check

The descriptions are the comments that stand in the store itself, so the file says what the store says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb

from ingest_service.store.public_views import PUBLIC_TABLES, create_public_views
from ingest_service.store.schema import migrate, shipped_migrations
from ingest_service.store.timestamps import utc_now

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "schema.md"

HEADER = """# The store

Generated from the migrations and views by `scripts/gen_schema_doc.py`; do not edit. Questions that they answer, with
their answers: [sql.md](sql.md).

The ingest service keeps everything in one DuckDB file, `linkbound.duckdb` in its data directory, and the rows of sealed
runs in Parquet files beside it. What people read are the views below, in the schema `main`; the service writes to
tables of the same names in the schema `hot`, which is its own. `linkbound sql` asks a running service;
`duckdb snapshot.duckdb` opens the copy that it publishes, with DuckDB from 1.5 on. The descriptions are in the file
too, as comments on views, columns and macros.

The unit of a number is the end of its name. `*_utc` is an instant in UTC; `*_ns` counts on one host's monotonic clock,
`*_unix_ns` on its wall clock, and two of those are never subtracted. `run_id` joins everything to `runs`. Primary keys
are those of the tables in `hot`; rows of data have none and are kept unique by `ledger`, which is written in one
transaction with them.
"""

TABLES_HEADER = """# Tables

Rows as they were sent, one view for each table of the service.
"""
VIEWS_HEADER = """# Views

What follows from the tables. A view over all runs is as fast as one run where `WHERE run_id = ...` stands behind it.
"""
MACROS_HEADER = """# Macros

Views with parameters, called like functions: `FROM windows('my-run', INTERVAL '20 ms')`. In an attached file they are
found after `USE`.
"""

VIEWS = "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal ORDER BY view_oid"
COLUMNS = """
    SELECT shown.table_name, shown.column_name, shown.data_type, coalesce(stored.is_nullable, true), shown.comment
    FROM duckdb_columns() AS shown
    LEFT JOIN duckdb_columns() AS stored
        ON stored.schema_name = 'hot' AND stored.table_name = shown.table_name
        AND stored.column_name = shown.column_name
    WHERE NOT shown.internal AND shown.schema_name = 'main'
    ORDER BY shown.table_oid, shown.column_index
"""
KEYS = """
    SELECT table_name, constraint_column_names
    FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'
"""
MACROS = """
    SELECT function_name, parameters, comment
    FROM duckdb_functions() WHERE NOT internal AND function_type = 'table_macro' ORDER BY function_name
"""


def document() -> str:
    """Returns the text of docs/schema.md."""
    with duckdb.connect() as connection:
        migrate(connection, shipped_migrations(), utc_now)
        create_public_views(connection, sealed_folder=None)
        views = connection.execute(VIEWS).fetchall()
        columns = connection.execute(COLUMNS).fetchall()
        keys = dict(connection.execute(KEYS).fetchall())
        macros = connection.execute(MACROS).fetchall()
        macro_columns = {name: _macro_columns(connection, name, parameters) for name, parameters, _ in macros}
    by_view = {name: list(group) for name, group in groupby(columns, key=lambda column: str(column[0]))}
    sections = {
        name: _section(name, comment, keys.get(name), [row[1:] for row in by_view[name]]) for name, comment in views
    }
    return "\n".join(
        [
            HEADER,
            TABLES_HEADER,
            *(sections[name] for name in sections if name in PUBLIC_TABLES),
            VIEWS_HEADER,
            *(sections[name] for name in sections if name not in PUBLIC_TABLES),
            MACROS_HEADER,
            *(_macro(name, parameters, comment, macro_columns[name]) for name, parameters, comment in macros),
        ]
    )


def _section(name: str, comment: str, key: Sequence[str] | None, columns: Sequence[Sequence[Any]]) -> str:
    lines = [f"## {name}", "", comment, ""]
    if key is not None:
        lines += [f"Primary key: {', '.join(f'`{column}`' for column in key)}.", ""]
    lines += ["| column | type | |", "| --- | --- | --- |"]
    for column, data_type, is_nullable, description in columns:
        shown_type = data_type if is_nullable else f"{data_type} NOT NULL"
        lines.append(f"| `{column}` | {shown_type} | {description} |")
    return "\n".join(lines) + "\n"


def _macro(name: str, parameters: Sequence[str], comment: str, columns: str) -> str:
    return f"## {name}({', '.join(parameters)})\n\n{comment}\n\nColumns: {columns}.\n"


def _macro_columns(connection: duckdb.DuckDBPyConnection, name: str, parameters: Sequence[str]) -> str:
    """The names of the columns, which the views of fixed widths describe."""
    arguments = ", ".join("INTERVAL '1 s'" if parameter == "width" else "''" for parameter in parameters)
    found = connection.execute(f"DESCRIBE SELECT * FROM {name}({arguments})").fetchall()
    return ", ".join(f"`{column[0]}`" for column in found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the process exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("command", choices=("write", "check"))
    command = parser.parse_args(arguments).command
    text = document()
    if command == "write":
        OUTPUT.write_text(text, encoding="utf-8")
        print(f"wrote {OUTPUT.relative_to(ROOT)}")
        return 0
    if not OUTPUT.exists() or OUTPUT.read_text(encoding="utf-8") != text:
        print("error: docs/schema.md is out of date; run scripts/gen_schema_doc.py write", file=sys.stderr)
        return 1
    print("docs/schema.md is up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
