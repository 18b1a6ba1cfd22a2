"""Makes the views of a store look for files before it has its first sealed run.

Until then they look for none, so that a copy of the database file alone has everything. There are many statements in
it, so each view is a step of its own on the thread that writes; in between, nobody sees a difference.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

import duckdb
from attrs import define, field

from ingest_service.store.append_committer import AppendCommitter
from ingest_service.store.public_views import KEPT_TABLES, Table, note_shown_files, show_files
from ingest_service.store.seal_errors import seal_error
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.writer import Writer

_Change = Callable[[duckdb.DuckDBPyConnection], None]


@define
class FileViews:
    """The views of one store. Safe from any thread."""

    _folder: SealedFolder
    _tables: Sequence[Table]
    _show_files: bool
    _lock: threading.Lock = field(init=False, factory=threading.Lock)

    def show_files(self, writer: Writer, run_id: str) -> None:
        """Makes the views look for files, unless they do, since `run_id` is about to have nothing else.

        Raises FailedPreconditionError (SEAL_FAILED) and ResourceExhaustedError (DISK_FULL).
        """
        with self._lock:
            if self._show_files:
                return
            for table in self._tables:
                if table.name not in KEPT_TABLES:
                    writer.change(_step(run_id, partial(show_files, table=table, sealed_folder=self._folder.path)))
            writer.change(_step(run_id, partial(note_shown_files, sealed_folder=self._folder.path)))
            self._show_files = True


def _step(run_id: str, change: _Change) -> Callable[[duckdb.DuckDBPyConnection, AppendCommitter], None]:
    """`change` in a transaction of its own. A file that it does not find is no trouble of the store."""

    def step(connection: duckdb.DuckDBPyConnection, _appends: AppendCommitter) -> None:
        connection.begin()
        try:
            change(connection)
        except duckdb.Error as error:
            connection.rollback()
            raise seal_error(run_id, error) from error
        connection.commit()

    return step
