"""Creates runs, and takes the steps of their life that are one transaction on the connection that writes."""

from __future__ import annotations

from datetime import datetime

import duckdb

from ingest_service.core.digest import digest_of_run
from ingest_service.store.append_committer import AppendCommitter
from ingest_service.store.manifest import Manifest
from ingest_service.store.row_counts import count_rows
from ingest_service.store.run_changes import insert_changes
from ingest_service.store.run_table import (
    StoredRun,
    delete_run_rows,
    insert_run,
    mark_sealed,
    run_not_found,
    select_run,
)
from ingest_service.store.sealed_tables import insert_sealed_files, insert_sealed_writers, mark_dropping
from ingest_service.store.transactions import transaction
from linkbound.domain.errors import AlreadyExistsError, FailedPreconditionError, Resource
from linkbound.domain.run import CreateRunRequest, Run, RunRowCounts, RunState, SealRunRequest
from linkbound.domain.run_watch import RunChange
from linkbound.domain.words import counted


def create_run(connection: duckdb.DuckDBPyConnection, request: CreateRunRequest, now: datetime) -> Run:
    """Creates a run, or returns the one that was created with the same content.

    Raises AlreadyExistsError (RUN_EXISTS) where the id belongs to a run with other content.
    """
    digest = digest_of_run(request)
    with transaction(connection):
        if select_run(connection, request.run_id) is None:
            insert_run(connection, request, digest, now)
            insert_changes(connection, [request.run_id], RunChange.CREATED, now)
        stored = existing_run(connection, request.run_id)
    if stored.content_digest != digest:
        raise AlreadyExistsError(
            f"run {request.run_id!r} exists with other content",
            resource=Resource("run", request.run_id),
            reason="RUN_EXISTS",
            metadata={"run": request.run_id},
        )
    return stored.run


def begin_sealing(connection: duckdb.DuckDBPyConnection, appends: AppendCommitter, request: SealRunRequest) -> Run:
    """Closes a run for appends, or returns it as it is where it is sealed already; nothing changes in the store.

    Raises NotFoundError, or FailedPreconditionError (ROW_COUNT_MISMATCH) where it holds other rows than expected.
    """
    with transaction(connection):
        run = existing_run(connection, request.run).run
        if request.expected_row_count is not None:
            _check_row_count(connection, request.run, request.expected_row_count)
    if run.state is RunState.OPEN:
        appends.close_run(request.run)
    return run


def commit_sealing(connection: duckdb.DuckDBPyConnection, appends: AppendCommitter, manifest: Manifest) -> Run:
    """Seals a closed run whose files are in their place: from here on they count, and the rows in `hot` no more."""
    run_id = manifest.run_id
    with transaction(connection):
        mark_sealed(connection, run_id, manifest.seal_time)
        insert_sealed_files(connection, run_id, manifest.files)
        insert_sealed_writers(connection, run_id)
        mark_dropping(connection, run_id)
        insert_changes(connection, [run_id], RunChange.SEALED, manifest.seal_time)
        run = existing_run(connection, run_id).run
    appends.reopen_run(run_id)
    return run


def begin_deletion(connection: duckdb.DuckDBPyConnection, appends: AppendCommitter, run_id: str) -> RunRowCounts:
    """Takes a run away from everybody, and returns what it held; its rows are still to be dropped, and its files.

    Raises NotFoundError.
    """
    with transaction(connection):
        existing_run(connection, run_id)
        counts = count_rows(connection, run_id)
        delete_run_rows(connection, run_id)
        mark_dropping(connection, run_id)
        insert_changes(connection, [run_id], RunChange.DELETED, appends.now())
    appends.remove(run_id)
    return counts


def existing_run(connection: duckdb.DuckDBPyConnection, run_id: str) -> StoredRun:
    """The run. Raises NotFoundError with near names."""
    stored = select_run(connection, run_id)
    if stored is None:
        raise run_not_found(connection, run_id)
    return stored


def _check_row_count(connection: duckdb.DuckDBPyConnection, run_id: str, expected: int) -> None:
    stored = count_rows(connection, run_id).total_row_count
    if stored != expected:
        raise FailedPreconditionError(
            f"run {run_id} holds {counted(stored, 'row')}, not {expected}; it stays as it is",
            reason="ROW_COUNT_MISMATCH",
            metadata={"run": run_id, "expectedRowCount": str(expected), "storedRowCount": str(stored)},
        )
