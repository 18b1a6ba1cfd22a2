"""The last snapshot of a store that another process holds: everything that reads, and nothing that writes."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import duckdb
from attrs import evolve

from ingest_service.core.comparison import compare
from ingest_service.core.measured import fold
from ingest_service.settings import StoreSettings
from ingest_service.store.condition import StoreCondition
from ingest_service.store.database import open_snapshot
from ingest_service.store.public_views import public_tables
from ingest_service.store.reader import Reader
from ingest_service.store.run_scope import RunScope
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.snapshot import snapshot_path
from ingest_service.store.sql_query import SqlAnswer, SqlQueries
from linkbound.domain.paging import Page, PageRequest
from linkbound.domain.records import ListRequestRecordsRequest, RequestRecord
from linkbound.domain.run import Run, RunDetails, RunRequest, RunState
from linkbound.domain.run_comparison import RunComparison
from linkbound.domain.sql import SqlRequest
from linkbound.domain.traffic import ListPhaseTrafficRequest, PhaseTraffic, PortTraffic, TrafficRequest


class SnapshotStore:
    """Answers the reads of `Ingest`, with the same words and errors, from the snapshot of the store."""

    def __init__(self, root: duckdb.DuckDBPyConnection, settings: StoreSettings, status: os.stat_result) -> None:
        self._root = root
        self._status = status
        self._folder = SealedFolder.beside(settings.path)
        condition = StoreCondition()
        self._reader = Reader(root, condition, RunScope.of(self._folder, public_tables(root)))
        self._queries = SqlQueries(root, condition, self._folder, settings.memory_limit_bytes)

    @classmethod
    def open(cls, settings: StoreSettings) -> SnapshotStore:
        """Opens the snapshot of the store at `settings.path`.

        Raises FileNotFoundError where there is none, FailedPreconditionError (STORE_UNREADABLE, SCHEMA_NEWER).
        """
        path = snapshot_path(settings.path)
        status = path.stat()
        root = open_snapshot(path, settings)
        try:
            return cls(root, settings, status)
        except BaseException:
            root.close()
            raise

    def __enter__(self) -> SnapshotStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def snapshot_time(self) -> datetime:
        """When the snapshot was taken."""
        return datetime.fromtimestamp(self._status.st_mtime, UTC)

    def is_replaced(self, store_path: Path) -> bool:
        """Whether there is a later snapshot of the store."""
        try:
            status = snapshot_path(store_path).stat()
        except FileNotFoundError:
            return False
        return (status.st_ino, status.st_mtime_ns) != (self._status.st_ino, self._status.st_mtime_ns)

    def close(self) -> None:
        """Lets go of the file. Repeating it is fine."""
        self._reader.close()
        self._queries.close()
        self._root.close()

    def get_run(self, run_id: str) -> RunDetails:
        """As `Ingest.get_run`."""
        details = self._reader.get_run(RunRequest(run=run_id).run)
        return evolve(details, run=self._located(details.run))

    def list_runs(self, request: PageRequest) -> Page[Run]:
        """As `Ingest.list_runs`."""
        page = self._reader.list_runs(request)
        return evolve(page, entries=tuple(map(self._located, page.entries)))

    def list_request_records(self, request: ListRequestRecordsRequest) -> Page[RequestRecord]:
        """As `Ingest.list_request_records`."""
        return self._reader.list_request_records(request)

    def query_traffic(self, request: TrafficRequest) -> tuple[PortTraffic, ...]:
        """As `Ingest.query_traffic`."""
        return self._reader.query_traffic(request)

    def list_phase_traffic(self, request: ListPhaseTrafficRequest) -> Page[PhaseTraffic]:
        """As `Ingest.list_phase_traffic`."""
        return self._reader.list_phase_traffic(request)

    def compare_run(self, run_id: str) -> RunComparison:
        """As `Ingest.compare_run`."""
        run, records = self._reader.read_measured(RunRequest(run=run_id).run)
        return compare(run.run_id, run.prediction, fold(records))

    def query_sql(self, request: SqlRequest, limit_seconds: float | None = None) -> SqlAnswer:
        """As `Ingest.query_sql`."""
        return self._queries.open(request, limit_seconds)

    def _located(self, run: Run) -> Run:
        if run.state is not RunState.SEALED:
            return run
        return evolve(run, sealed_path=str(self._folder.run_path(run.run_id)))
