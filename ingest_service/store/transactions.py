"""One transaction, and what it means when DuckDB cannot finish it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb


class StoreBrokenError(Exception):
    """DuckDB could not finish a transaction, and nothing more can be asked of it. The cause is its error."""


BREAKING_ERRORS = (duckdb.FatalException, duckdb.InternalException, duckdb.IOException)
"""After these the instance is invalid, or the disk does not take what it should."""


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Runs the block in one transaction: committed at its end, rolled back where it raises.

    Raises StoreBrokenError after an error of DuckDB that leaves it of no use, and where COMMIT or ROLLBACK itself
    fails. After a failed COMMIT nobody knows whether it is durable; after a restart the ledger does.
    """
    try:
        connection.begin()
    except duckdb.Error as error:
        raise StoreBrokenError from error
    try:
        yield
    except BREAKING_ERRORS as error:
        raise StoreBrokenError from error
    except BaseException:
        _roll_back(connection)
        raise
    try:
        connection.commit()
    except duckdb.Error as error:
        raise StoreBrokenError from error


def _roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.rollback()
    except duckdb.Error as error:
        raise StoreBrokenError from error
