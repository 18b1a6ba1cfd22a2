"""What SQL of others may be: one SELECT that changes nothing and reads nothing but the store.

This is the part of the guard that looks at a query. What holds besides, whatever the query is: files outside the folder
of sealed runs cannot be opened, settings cannot be changed (`database`), and the transaction is a read-only one
(`sql_query`). Each part is needed: `read_csv` is a SELECT, a read-only transaction lets COPY and ATTACH pass, and some
functions of a SELECT change the instance.
"""

from __future__ import annotations

import re

import duckdb
from attrs import frozen

from ingest_service.core.sql_text import SQL_ERROR, SQL_NOT_READ_ONLY, prepared_sql, sql_error
from ingest_service.store.queries import select
from linkbound.domain.errors import InvalidArgumentError

TABLE_FUNCTIONS = frozenset(
    {
        "duckdb_columns",
        "duckdb_constraints",
        "duckdb_functions",
        "duckdb_indexes",
        "duckdb_keywords",
        "duckdb_schemas",
        "duckdb_sequences",
        "duckdb_tables",
        "duckdb_types",
        "duckdb_views",
        "generate_series",
        "glob",
        "json_each",
        "json_tree",
        "parquet_file_metadata",
        "parquet_kv_metadata",
        "parquet_metadata",
        "parquet_scan",
        "parquet_schema",
        "pg_timezone_names",
        "pragma_show",
        "pragma_table_info",
        "pragma_version",
        "range",
        "read_parquet",
        "summary",
        "unnest",
    }
)
"""Table functions of DuckDB that a query may name. Others read files in other ways, take addresses in memory, run text
as SQL, or change the instance: checkpoint(), enable_logging(), create_external_resource()."""

REFUSED_FUNCTIONS = frozenset(
    {
        # They change something.
        "currval",
        "nextval",
        "setseed",
        "setval",
        "write_log",
        # They only take time.
        "pg_sleep",
        "sleep_ms",
        # They make much of little, at once and outside the memory that DuckDB limits.
        "array_reduce",
        "array_resize",
        "bitstring",
        "format",
        "generate_series",
        "list_reduce",
        "list_resize",
        "lpad",
        "printf",
        "range",
        "reduce",
        "repeat",
        "rpad",
    }
)
"""Functions that no expression may use. In FROM, `range` and `generate_series` are others, which yield row by row."""

_FUNCTION = re.compile(r'"function_name":"((?:[^"\\]|\\.)*)"')
_TABLE_FUNCTION_MARK = '"type":"TABLE_FUNCTION"'
_TABLE_FUNCTION = re.compile(_TABLE_FUNCTION_MARK + r'[^{}]*"function":\{[^{}]*?"function_name":"((?:[^"\\]|\\.)*)"')


@frozen
class SqlGuard:
    """Says of a query whether it may run. Safe from any thread."""

    _refused_in_from: frozenset[str]
    _refused_in_expressions: frozenset[str]

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection) -> SqlGuard:
        """The guard for the DuckDB of `connection`, which may have other functions than the next one.

        Macros that the store itself defines may be used.
        """
        rows = select(connection, "SELECT function_name, function_type FROM duckdb_functions() WHERE internal")
        functions = {(str(name).lower(), str(kind)) for name, kind in rows}
        of_tables = {name for name, kind in functions if kind in ("table", "table_macro")}
        others = {name for name, kind in functions if kind in ("scalar", "aggregate", "macro")}
        refused = frozenset(of_tables - TABLE_FUNCTIONS)
        return cls(refused, (refused - others) | REFUSED_FUNCTIONS)

    def check(self, cursor: duckdb.DuckDBPyConnection, sql: str) -> str:
        """The text to run for the query `sql`.

        Raises InvalidArgumentError: SQL_NOT_READ_ONLY for what is not one SELECT, or uses what a query may not; and
        SQL_ERROR for what cannot be parsed.
        """
        text = prepared_sql(sql)
        _check_is_one_select(cursor, text)
        self._check_functions(cursor, text)
        return text

    def _check_functions(self, cursor: duckdb.DuckDBPyConnection, text: str) -> None:
        [(tree,)] = select(cursor, "SELECT json_serialize_sql(?)", [text])
        if '"error":true' in tree[:20]:
            raise sql_error("is a SELECT that cannot be looked into", SQL_NOT_READ_ONLY)
        in_from = [name.lower() for name in _TABLE_FUNCTION.findall(tree)]
        if len(in_from) != tree.count(_TABLE_FUNCTION_MARK):
            raise _not_read_only("takes a sample of a function in FROM, which a query may not")
        in_expressions = [name.lower() for name in _FUNCTION.findall(tree)]
        for name in in_from:
            in_expressions.remove(name)
        for name in in_from:
            if name in self._refused_in_from:
                raise _not_read_only(f"uses {name} in FROM, which a query may not")
        for name in in_expressions:
            if name in self._refused_in_expressions:
                hint = "; it may stand in FROM" if name in TABLE_FUNCTIONS else ""
                raise _not_read_only(f"uses {name}, which a query may not{hint}")


def _check_is_one_select(cursor: duckdb.DuckDBPyConnection, text: str) -> None:
    # A PRAGMA, which DuckDB 1.5 says is a SELECT, is refused by its name before anything parses it (`prepared_sql`).
    try:
        kinds = [statement.type for statement in cursor.extract_statements(text)]
    except duckdb.Error as error:
        # DuckDB 1.5 reads the files of an IMPORT while it parses it.
        is_forbidden = isinstance(error, duckdb.PermissionException)
        raise sql_error(shown_error(error), SQL_NOT_READ_ONLY if is_forbidden else SQL_ERROR) from error
    except ValueError as error:
        # The Python module of DuckDB 2.0 has no name for some kinds of statement.
        raise _not_read_only("is a statement of an unusual kind; it takes one SELECT") from error
    if len(kinds) != 1:
        raise _not_read_only(f"is {len(kinds)} statements; it takes one SELECT{_pivot_hint(text)}")
    if kinds[0] != duckdb.StatementType.SELECT:
        name = getattr(kinds[0], "name", str(kinds[0]))
        raise _not_read_only(f"is of the kind {name}; it takes one SELECT{_pivot_hint(text)}")


def _pivot_hint(text: str) -> str:
    """DuckDB makes a type of the values of a PIVOT before it answers, unless they are named."""
    return ", and a PIVOT is one if its values are named with IN" if "PIVOT" in text.upper() else ""


def shown_error(error: Exception) -> str:
    """What DuckDB says is wrong with a query."""
    return str(error).strip() or type(error).__name__


def _not_read_only(description: str) -> InvalidArgumentError:
    return sql_error(description, SQL_NOT_READ_ONLY)
