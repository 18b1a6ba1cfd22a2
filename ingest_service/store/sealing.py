"""Writes the files of a closed run beside those of the others; the store itself is left as it is."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import duckdb
from attrs import define, field

from ingest_service.store.condition import StoreCondition
from ingest_service.store.database import broken_store_error, closed_store_error
from ingest_service.store.free_space import FreeSpace
from ingest_service.store.life_steps import LifeStep, OnStep
from ingest_service.store.manifest import Manifest
from ingest_service.store.public_views import Table
from ingest_service.store.seal_errors import seal_error
from ingest_service.store.seal_export import RunExport
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.sealed_layout import prepare_folder

SPACE_INTERVAL_SECONDS = 0.1
"""How often the disk is looked at while files are written: the store must not be the one that meets its end."""


@define
class Sealing:
    """Publishes runs, one at a time, so that only one is sorted in memory. Safe from any thread."""

    _root: duckdb.DuckDBPyConnection
    _folder: SealedFolder
    _tables: Sequence[Table]
    _schema_version: int
    _space: FreeSpace
    _condition: StoreCondition
    _on_step: OnStep
    _turn: threading.Lock = field(init=False, factory=threading.Lock)
    _reading: duckdb.DuckDBPyConnection | None = field(init=False, default=None)
    _is_ending: bool = field(init=False, default=False)

    def publish(self, run_id: str, seal_time: datetime) -> Manifest:
        """Writes the files of a run, reads them back and gives their folder its name. Leaves nothing where it raises.

        Raises FailedPreconditionError (SEAL_FAILED), ResourceExhaustedError (DISK_FULL) and UnavailableError
        (STORE_CLOSED, STORE_BROKEN).
        """
        staged: Path | None = None
        try:
            self._space.check()
            with self._turn, self._connection() as connection:
                prepare_folder(connection, self._folder, self._tables)
                staged = self._folder.stage(run_id)
                export = RunExport(
                    tables=self._tables,
                    schema_version=self._schema_version,
                    run_id=run_id,
                    seal_time=seal_time,
                    on_step=self._on_step,
                )
                manifest = export.write(connection, staged)
            self._folder.publish(staged, run_id)
        except BaseException as error:
            if staged is not None:
                shutil.rmtree(staged, ignore_errors=True)
            raise self._domain_error(run_id, error) from error
        self._on_step(LifeStep.PUBLISHED)
        return manifest

    def end(self) -> None:
        """Ends what is being written, with STORE_CLOSED."""
        self._is_ending = True
        reading = self._reading
        if reading is not None:
            reading.interrupt()

    @contextmanager
    def _connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection within one transaction, in which nothing changes, that is interrupted when space runs short."""
        connection = self._root.cursor()
        done = threading.Event()
        watch = threading.Thread(target=self._watch_space, args=(connection, done), name="linkbound-seal", daemon=True)
        self._reading = connection
        watch.start()
        try:
            connection.begin()
            yield connection
        finally:
            done.set()
            watch.join()
            self._reading = None
            connection.close()

    def _watch_space(self, connection: duckdb.DuckDBPyConnection, done: threading.Event) -> None:
        while not done.wait(SPACE_INTERVAL_SECONDS):
            # An interrupt ends the query that runs and no later one, so it is repeated until the work is over.
            if self._is_ending or self._space.is_short:
                connection.interrupt()

    def _domain_error(self, run_id: str, error: BaseException) -> BaseException:
        match error:
            case duckdb.FatalException() | duckdb.InternalException():
                self._condition.mark_broken(error)
                return broken_store_error(str(error))
            case duckdb.InterruptException() if self._is_ending:
                return closed_store_error()
            case duckdb.Error() | OSError():
                return seal_error(run_id, error)
            case _:
                return error
