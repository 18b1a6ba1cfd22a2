"""Puts the store and the folder of sealed runs in line when the store is opened.

Rows in files are deleted only where the store itself says that the run is deleted, or has the same rows: a store that
was brought back from an older copy may know less than the folder.
"""

from __future__ import annotations

import duckdb
import structlog
from attrs import frozen

from ingest_service.store.manifest import read_manifest
from ingest_service.store.public_views import NO_RUN
from ingest_service.store.queries import select
from ingest_service.store.row_counts import count_by_table
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.sealed_presence import faults_of_all
from ingest_service.store.sealed_tables import select_dropping
from linkbound.domain.run import RunState

_log = structlog.get_logger(__name__)


@frozen
class DroppingRun:
    """A run whose rows in `hot` are still to be dropped; whether it is deleted or was sealed."""

    run_id: str
    is_deleted: bool


def recover(connection: duckdb.DuckDBPyConnection, folder: SealedFolder) -> tuple[DroppingRun, ...]:
    """Deletes what is left over in the folder, and returns the runs whose rows are still to be dropped."""
    try:
        return _recover(connection, folder)
    except OSError as error:
        # Nothing reads what is left over; the next opening tries again.
        _log.warning("sealed_folder_not_cleared", folder=str(folder.path), exc_info=error)
        return ()


def _recover(connection: duckdb.DuckDBPyConnection, folder: SealedFolder) -> tuple[DroppingRun, ...]:
    for name in folder.remove_leftovers():
        _log.info("sealing_leftover_removed", folder=name)
    states = dict(select(connection, "SELECT run_id, state FROM hot.runs"))
    dropping = tuple(DroppingRun(run_id, run_id not in states) for run_id in select_dropping(connection))
    deleted = {run.run_id for run in dropping if run.is_deleted}
    for run_id in folder.run_ids():
        state = states.get(run_id)
        if state == RunState.OPEN.name:
            _clear_folder_of_open_run(connection, folder, run_id)
        elif state is None and run_id != NO_RUN and run_id not in deleted:
            _log.warning("sealed_run_unknown", run=run_id, folder=str(folder.run_path(run_id)))
    _warn_of_damage(connection, folder)
    return dropping


def _clear_folder_of_open_run(connection: duckdb.DuckDBPyConnection, folder: SealedFolder, run_id: str) -> None:
    """The process was killed right before the run became sealed, if the folder holds what the store does."""
    path = folder.run_path(run_id)
    stored = count_by_table(connection, run_id)
    try:
        sealed = {file.table: file.row_count for file in read_manifest(path).files}
    except (OSError, ValueError):
        sealed = {}
    if all(sealed.get(table, 0) == row_count for table, row_count in stored.items()):
        folder.remove(run_id)
        _log.info("unfinished_sealing_removed", run=run_id)
    else:
        aside = folder.set_aside(run_id)
        _log.warning("sealed_folder_set_aside", run=run_id, folder=str(aside))


def _warn_of_damage(connection: duckdb.DuckDBPyConnection, folder: SealedFolder) -> None:
    """Looks whether every file is there with its size; its content is looked at when it is read."""
    for run_id, faults in faults_of_all(connection, folder).items():
        for fault in faults:
            _log.warning("sealed_file_damaged", run=run_id, path=fault.path, fault=fault.description)
