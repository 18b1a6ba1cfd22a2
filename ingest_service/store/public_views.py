"""What readers see: views in the schema `main`, over the tables of `hot` and over the files of sealed runs.

Rows are appended to `hot`. When a run is sealed its rows move into files, and the view of the table's name holds both.
DuckDB forgets the comments of a view that is replaced, so views and comments are always made together, by this module:
comments of tables are those of the migrations, the views of `views/*.sql` bring their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import groupby
from pathlib import Path

import duckdb
from attrs import frozen

from ingest_service.store.queries import select

PUBLIC_TABLES = (
    "runs",
    "settings",
    "predictions",
    "predicted_values",
    "series",
    "counter_samples",
    "requests",
    "tokens",
    "collectives",
    "metric_aggregates",
    "link_tests",
    "training_steps",
    "events",
    "ledger",
    "findings",
)
"""Tables that have a view of their name. The others of `hot` are the service's own."""

ORDERED_TABLES = (
    "counter_samples",
    "requests",
    "tokens",
    "collectives",
    "metric_aggregates",
    "link_tests",
    "training_steps",
    "events",
)
"""Tables whose views say in which order rows were stored. Files keep it among rows that their order does not part."""

_SORTED_TABLES = ("requests", "tokens")
"""Those of them whose files are in another order first (`seal_export`)."""

KEPT_TABLES = ("runs", "settings", "predictions", "predicted_values")
"""Tables whose rows stay in `hot` when their run is sealed; its files are copies of them."""

SAMPLES_TABLE = "counter_samples"

NO_RUN = "-"
"""Id of no run, under which there is a file without rows of each table: DuckDB takes the columns of all files from it,
whatever happens to the others, and finds it where there are none."""

FOLDER_VARIABLE = "sealed_folder"
"""The variable of DuckDB by which a reader tells where the folder of sealed runs is, if it is not where it was."""

SEALED_RUNS = "(SELECT run_id FROM hot.runs WHERE state = 'SEALED')"
"""Whose files are read: those of a run that is about to be sealed or deleted are in the folder too."""


@frozen
class Column:
    """One column as the catalogue of the store tells it."""

    name: str
    data_type: str
    is_nullable: bool
    comment: str


@frozen
class Table:
    """One table or view as the catalogue of the store tells it."""

    name: str
    comment: str
    columns: tuple[Column, ...]

    @property
    def file_columns(self) -> tuple[Column, ...]:
        """The columns that its files have: the folder of a file tells the run, the place in the file the order."""
        return tuple(column for column in self.columns if column.name not in ("run_id", STORED_INDEX))


STORED_INDEX = "stored_index"
"""The column of views that no table has: the place of the row in the table, or in its file."""

_IN_ORDER = (
    "Rises in the order in which rows were stored, with gaps; for rows of one run and, of samples, of one series."
)
_IN_FILE_ORDER = (
    "Rises in the order in which rows were stored, with gaps; for rows of one run. Once the run is sealed: by subject,"
    " round and request, and among those that agree as they were stored."
)


RUN_ID = Column("run_id", "VARCHAR", False, "The run.")
"""The column of samples that their table has not: the series tell it there."""


def public_tables(connection: duckdb.DuckDBPyConnection) -> tuple[Table, ...]:
    """The views of tables that readers see, in the order of `PUBLIC_TABLES`, with the comments of the migrations."""
    comments = dict(select(connection, "SELECT table_name, comment FROM duckdb_tables() WHERE schema_name = 'hot'"))
    rows = select(
        connection,
        "SELECT table_name, column_name, data_type, is_nullable, comment FROM duckdb_columns()"
        " WHERE schema_name = 'hot' ORDER BY table_name, column_index",
    )
    columns = {
        str(name): tuple(Column(*row[1:]) for row in group) for name, group in groupby(rows, key=lambda row: row[0])
    }
    for name in ORDERED_TABLES:
        comment = _IN_FILE_ORDER if name in _SORTED_TABLES else _IN_ORDER
        columns[name] += (Column(STORED_INDEX, "BIGINT", False, comment),)
    columns[SAMPLES_TABLE] = (RUN_ID, *columns[SAMPLES_TABLE])
    return tuple(Table(name, comments[name], columns[name]) for name in PUBLIC_TABLES)


def create_public_views(connection: duckdb.DuckDBPyConnection, sealed_folder: Path | None) -> bool:
    """Makes every view and macro of `main` with its comments, within the current transaction.

    Returns False where they are there already, just so, and nothing was done. `sealed_folder` has the files of sealed
    runs; None: the views are of `hot` alone. Raises duckdb.Error where the folder lacks the files of `NO_RUN`.
    """
    script = _views_script(connection, sealed_folder)
    if select(connection, "SELECT digest FROM hot.public_views") == [(_digest(script),)]:
        return False
    connection.execute(script)
    _note_views(connection, script)
    return True


def show_files(connection: duckdb.DuckDBPyConnection, table: Table, sealed_folder: Path) -> None:
    """Makes the view of one table look for files too, within the current transaction. Raises duckdb.Error."""
    connection.execute(_table_script(table, sealed_folder))


def note_shown_files(connection: duckdb.DuckDBPyConnection, sealed_folder: Path) -> None:
    """All views look for files by now, within the current transaction: the next opening finds them in order."""
    _note_views(connection, _views_script(connection, sealed_folder))


def _views_script(connection: duckdb.DuckDBPyConnection, sealed_folder: Path | None) -> str:
    tables = [_table_script(table, sealed_folder) for table in public_tables(connection)]
    return "\n".join([*tables, *analyst_views()])


def _table_script(table: Table, sealed_folder: Path | None) -> str:
    sources = [_hot_rows(table)]
    if sealed_folder is not None and table.name not in KEPT_TABLES:
        prefix = _folder_prefix(f"{as_pattern(str(sealed_folder))}/")
        sources.append(f"{_file_rows(table, prefix)} SEMI JOIN {SEALED_RUNS} USING (run_id)")
        sources.append(_missing_rows(table, prefix, _folder_prefix(f"{sealed_folder}/")))
    return "\n".join(_view_statements(table, sources))


def _note_views(connection: duckdb.DuckDBPyConnection, script: str) -> None:
    connection.execute("DELETE FROM hot.public_views")
    connection.execute("INSERT INTO hot.public_views VALUES (?)", [_digest(script)])


def _digest(script: str) -> bytes:
    return hashlib.sha256(script.encode()).digest()


def file_views_script(tables: Sequence[Table]) -> str:
    """Statements that make the same views over files alone, for a DuckDB whose working folder is that of the files."""
    statements = [
        statement for table in tables for statement in _view_statements(table, [_file_rows(table, _folder_prefix(""))])
    ]
    return "\n".join([*statements, *analyst_views()])


def run_rows(table: Table, run_id: str, file: Path | None) -> str:
    """A SELECT of what the view of `table` holds of one run: rows of `hot`, or those of `file` once it is sealed."""
    run = quoted(run_id)
    if file is not None:
        names = _names(table, "file_row_number", run)
        return (
            f"SELECT {names} FROM read_parquet({quoted(as_pattern(str(file)))}, {_READING}, hive_partitioning = false)"
        )
    if table.name == SAMPLES_TABLE:
        condition = f"series_id IN (SELECT series_id FROM hot.series WHERE run_id = {run})"
    else:
        condition = f"run_id = {run}"
    return f"SELECT {_names(table, 'rowid', run)} FROM hot.{table.name} WHERE {condition}"


def no_rows(table: Table) -> str:
    """A SELECT of no rows, with the columns of the view of `table`."""
    columns = ", ".join(f"NULL::{column.data_type} AS {column.name}" for column in table.columns)
    return f"SELECT {columns} WHERE false"


def analyst_views() -> tuple[str, ...]:
    """The scripts of the views and macros that compute something, in the order in which they build on each other."""
    folder = resources.files("ingest_service.store") / "views"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return tuple(file.read_text(encoding="utf-8") for file in files)


def _view_statements(table: Table, sources: Sequence[str]) -> Iterator[str]:
    yield f"CREATE OR REPLACE VIEW main.{table.name} AS {' UNION ALL BY NAME '.join(sources)};"
    yield f"COMMENT ON VIEW main.{table.name} IS {quoted(table.comment)};"
    for column in table.columns:
        yield f"COMMENT ON COLUMN main.{table.name}.{column.name} IS {quoted(column.comment)};"


def _hot_rows(table: Table) -> str:
    """The rows that are not about to be dropped: those of a sealed run are for a while."""
    names = _names(table, "stored.rowid", "run_id")
    source = f"SELECT {names} FROM hot.{table.name} AS stored"
    if table.name in KEPT_TABLES:
        return source
    if table.name == SAMPLES_TABLE:
        series = "SELECT series_id, run_id FROM hot.series ANTI JOIN hot.dropping_runs USING (run_id)"
        return f"{source} JOIN ({series}) AS series USING (series_id)"
    return f"{source} ANTI JOIN hot.dropping_runs USING (run_id)"


_READING = "file_row_number = true"


def _folder_prefix(default: str) -> str:
    """An expression for what comes before the names of folders of runs."""
    return f"coalesce(getvariable('{FOLDER_VARIABLE}') || '/', {quoted(default)})"


def _file_rows(table: Table, prefix: str) -> str:
    """The rows of all files below `prefix`, which is an expression.

    The folder `run_id=...` of a file tells its run: DuckDB opens no file of another run than it is asked for. It must
    not guess the type of the id.
    """
    paths = ", ".join(f"{prefix} || {quoted(f'run_id={run}/{table.name}.parquet')}" for run in (NO_RUN, "*"))
    hive = "hive_partitioning = true, hive_types = {'run_id': VARCHAR}"
    return f"SELECT {_names(table, 'file_row_number', 'run_id')} FROM read_parquet([{paths}], {hive}, {_READING})"


def _missing_rows(table: Table, prefix: str, shown_prefix: str) -> str:
    """No rows, and an error where a run that is asked for lacks its file: DuckDB passes over files that are not there.

    Files that are there and files that have to be meet in a grouping by run, since conditions on the run go below it
    and nothing else does. Each column is the error, so that no other condition takes it away.
    """
    folder = "'run_id=' || CASE run_id WHEN 'null' THEN '%6eull' ELSE run_id END"
    path = f"{shown_prefix} || {folder} || {quoted(f'/{table.name}.parquet')}"
    text = f"'sealed run ' || run_id || ' cannot be read: ' || {path} || {quoted(MISSING_FILE)}"
    failure = f"CASE WHEN is_missing THEN error({text}) END"
    columns = ", ".join(
        column.name if column.name == "run_id" else f"CAST({failure} AS {column.data_type}) AS {column.name}"
        for column in table.columns
    )
    return (
        f"SELECT {columns} FROM (SELECT run_id, bool_and(is_due) AS is_missing FROM ("
        f"SELECT run_id, true AS is_due FROM hot.sealed_files WHERE table_name = {quoted(table.name)} UNION ALL"
        f" SELECT url_decode(substr(split_part(file, '/', -2), {len('run_id=') + 1})), false"
        f" FROM glob({prefix} || 'run_id=*/{table.name}.parquet')) GROUP BY run_id)"
        f" WHERE is_missing AND {failure} IS NOT NULL"
    )


MISSING_FILE = " is missing; bring it back from a copy, or ask for other runs alone (run_id = '...')"
"""What the views say of it."""


def _names(table: Table, place: str, run: str) -> str:
    """The columns of a view, with what a source calls the place of a row and its run."""
    return ", ".join(_name(column, place, run) for column in table.columns)


def _name(column: Column, place: str, run: str) -> str:
    if column.name == STORED_INDEX:
        return f"{place}::BIGINT AS {column.name}"
    return f"{run} AS run_id" if column.name == "run_id" else column.name


def as_pattern(path: str) -> str:
    """A pattern of DuckDB that `path` alone matches."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


def quoted(text: str) -> str:
    """`text` as a string of SQL."""
    return "'" + text.replace("'", "''") + "'"
