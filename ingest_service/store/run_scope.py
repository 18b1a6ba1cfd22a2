"""Lets a connection read one run alone: under the usual names, and from nothing but its own files where it is sealed.

The views of `main` look for files of every run, which takes time with thousands of them, and see that one is missing
but not that a bit in it has changed. So a read of one run puts temporary views in front of them, which go with its
connection. Whether a file is the one that was sealed is checked before this process first reads it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import duckdb
from attrs import define, field

from ingest_service.store.manifest import SealedFile
from ingest_service.store.public_views import SAMPLES_TABLE, Table, no_rows, run_rows
from ingest_service.store.row_counts import MOVED_TABLES
from ingest_service.store.seal_errors import unreadable_run
from ingest_service.store.sealed_folder import SealedFolder, sha256_of
from ingest_service.store.sealed_presence import NOT_WHAT_WAS_SEALED, size_fault, unreadable_fault
from ingest_service.store.sealed_tables import select_sealed_files
from linkbound.domain.run import Run, RunState

_Identity = tuple[int, int, int]
"""Inode, time of the last change and size: a file with the same ones has the same content."""


@define
class CheckedFiles:
    """Which files have the content that was sealed, as far as this process looked. Safe from any thread."""

    _identities: dict[Path, _Identity] = field(init=False, factory=dict)
    _lock: threading.Lock = field(init=False, factory=threading.Lock)

    def check(self, run_id: str, path: Path, sealed: SealedFile) -> None:
        """Raises FailedPreconditionError (RUN_UNREADABLE) where the file is missing or another one."""
        fault = size_fault(path, sealed.size_bytes)
        if fault is not None:
            raise unreadable_run(run_id, path, fault.description)
        try:
            status = path.stat()
            identity = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._identities.get(path) == identity:
                return
            if sha256_of(path) != sealed.sha256:
                raise unreadable_run(run_id, path, NOT_WHAT_WAS_SEALED)
        except OSError as error:
            raise unreadable_run(run_id, path, unreadable_fault(path, error).description) from error
        with self._lock:
            self._identities[path] = identity


@define
class RunScope:
    """Narrows connections to one run. Safe from any thread."""

    folder: SealedFolder
    _tables: dict[str, Table]
    _checked: CheckedFiles = field(init=False, factory=CheckedFiles)

    @classmethod
    def of(cls, folder: SealedFolder, tables: Iterable[Table]) -> RunScope:
        """A scope over the store that has `tables`."""
        return cls(folder, {table.name: table for table in tables})

    def narrow(self, connection: duckdb.DuckDBPyConnection, run: Run, tables: Sequence[str] = MOVED_TABLES) -> None:
        """Makes the names of `tables`, and with samples of their series, mean the rows of `run` for this connection.

        Raises FailedPreconditionError (RUN_UNREADABLE) where a file of the run is missing or damaged.
        """
        sealed: dict[str, SealedFile] | None = None
        if run.state is RunState.SEALED:
            sealed = {file.table: file for file in select_sealed_files(connection, run.run_id)}
        for name in dict.fromkeys((*tables, *(["series"] if SAMPLES_TABLE in tables else []))):
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {self._rows(run.run_id, name, sealed)}")

    def _rows(self, run_id: str, name: str, sealed: dict[str, SealedFile] | None) -> str:
        table = self._tables[name]
        if sealed is None:
            return run_rows(table, run_id, None)
        file = sealed.get(name)
        if file is None:
            return no_rows(table)
        path = self.folder.file_path(run_id, name)
        self._checked.check(run_id, path, file)
        return run_rows(table, run_id, path)
