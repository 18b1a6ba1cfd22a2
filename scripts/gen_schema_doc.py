"""Writes docs/schema.md from the migrations, or checks that it is up to date.

    gen_schema_doc.py write
    gen_schema_doc.py check

The descriptions are the comments that the migrations put on tables and columns, so the file says what the store itself
says.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import duckdb

from ingest_service.store.schema import migrate, shipped_migrations
from ingest_service.store.timestamps import utc_now

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "docs" / "schema.md"

HEADER = """# The store

Generated from the migrations by `scripts/gen_schema_doc.py`; do not edit.

The ingest service keeps everything in one DuckDB file, `linkbound.duckdb` in its data directory. It can be opened by
every DuckDB from 1.5 on once the service has closed it: `duckdb linkbound.duckdb`. The descriptions below are in the
file too, as comments on tables and columns.

The unit of a number is the end of its name. `*_utc` is an instant in UTC; `*_ns` counts on one host's monotonic clock,
`*_unix_ns` on its wall clock, and two of those are never subtracted. `run_id` joins every table to `runs`, except
`counter_samples`, which reaches it over `series`. Only the tables that say so have a primary key: rows of data are
kept unique by `ledger`, which is written in one transaction with them.
"""

TABLES = "SELECT table_name, comment FROM duckdb_tables() WHERE NOT internal ORDER BY table_oid"
COLUMNS = """
    SELECT table_name, column_name, data_type, is_nullable, comment
    FROM duckdb_columns() WHERE NOT internal ORDER BY table_oid, column_index
"""
KEYS = """
    SELECT table_name, constraint_column_names
    FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'
"""


def document() -> str:
    """Returns the text of docs/schema.md."""
    with duckdb.connect() as connection:
        migrate(connection, shipped_migrations(), utc_now)
        tables = connection.execute(TABLES).fetchall()
        columns = connection.execute(COLUMNS).fetchall()
        keys = dict(connection.execute(KEYS).fetchall())
    by_table = {name: list(group) for name, group in groupby(columns, key=lambda column: str(column[0]))}
    sections = [HEADER]
    for name, comment in tables:
        lines = [f"## {name}", "", comment, ""]
        if name in keys:
            lines += [f"Primary key: {', '.join(f'`{column}`' for column in keys[name])}.", ""]
        lines += ["| column | type | |", "| --- | --- | --- |"]
        for _, column, data_type, is_nullable, description in by_table[name]:
            shown_type = data_type if is_nullable else f"{data_type} NOT NULL"
            lines.append(f"| `{column}` | {shown_type} | {description} |")
        sections.append("\n".join(lines) + "\n")
    return "\n".join(sections)


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
