"""Queries that fetch their whole result: one that is left open keeps the connection from other work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb


def select(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    rows: list[tuple[Any, ...]] = connection.execute(sql, list(parameters)).fetchall()
    return rows


def select_row(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()
) -> tuple[Any, ...] | None:
    """The one row of a query; None where it has none."""
    rows = select(connection, sql, parameters)
    return rows[0] if rows else None


def select_number(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object] = ()) -> int:
    """The one whole number that a query of one row and column yields."""
    [(number,)] = select(connection, sql, parameters)
    return int(number)
