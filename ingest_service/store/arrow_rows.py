"""Rows as Arrow tables, and their way into DuckDB: the fast one, three orders of magnitude above single INSERTs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb
import pyarrow as pa

_INCOMING = "incoming_rows"


def arrow_table(schema: pa.Schema, rows: Sequence[tuple[object, ...]]) -> pa.Table:
    """The `rows`, each with one value per field of `schema`, as a table."""
    columns: Iterable[Sequence[object]] = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table(
        [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def insert_arrow(connection: duckdb.DuckDBPyConnection, table_name: str, rows: pa.Table) -> None:
    """Inserts `rows` into the table by the names of their columns, within the current transaction."""
    connection.register(_INCOMING, rows)
    connection.execute(f"INSERT INTO {table_name} BY NAME SELECT * FROM {_INCOMING}")
    connection.unregister(_INCOMING)


def insert_in_order(connection: duckdb.DuckDBPyConnection, table_name: str, rows: pa.Table) -> None:
    """Inserts `rows` into the table, whose columns come in the same order, within the current transaction.

    Measured: a third faster than `insert_arrow`, where few rows come at a time.
    """
    connection.from_arrow(rows).insert_into(table_name)


def warm_up(connection: duckdb.DuckDBPyConnection) -> None:
    """Makes the first Arrow insert of the process, which was measured to take up to 200 ms, and stores nothing."""
    connection.begin()
    insert_arrow(connection, "hot.settings", pa.table({"run_id": [""], "key": [""], "value": [""]}))
    connection.rollback()
