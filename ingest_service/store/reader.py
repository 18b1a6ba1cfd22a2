"""Reads of the store, each on a cursor of its own and on one snapshot; safe from any thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import duckdb

from ingest_service.core.measured import MeasuredRecords
from ingest_service.core.page_token import (
    PagePosition,
    decode_page_token,
    decode_record_token,
    encode_page_token,
    encode_record_token,
    next_record_position,
)
from ingest_service.store.condition import StoreCondition
from ingest_service.store.database import broken_store_error, closed_store_error
from ingest_service.store.public_views import SAMPLES_TABLE
from ingest_service.store.query_limit import interrupted_after
from ingest_service.store.record_tables import (
    COLLECTIVE_RESULTS,
    METRIC_AGGREGATES,
    REQUEST_RECORDS,
    TRAINING_STEPS,
    select_request_records,
)
from ingest_service.store.row_counts import count_rows
from ingest_service.store.run_commands import existing_run
from ingest_service.store.run_scope import RunScope
from ingest_service.store.run_table import select_runs
from ingest_service.store.seal_errors import RUN_UNREADABLE, sealed_file_error
from ingest_service.store.sealed_presence import with_faults
from ingest_service.store.traffic_answers import phase_traffic, port_traffic
from ingest_service.store.transactions import BREAKING_ERRORS
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.paging import Page, PageRequest
from linkbound.domain.records import ListRequestRecordsRequest, RequestRecord
from linkbound.domain.run import Run, RunDetails
from linkbound.domain.traffic import ListPhaseTrafficRequest, PhaseTraffic, PortTraffic, TrafficRequest


class Reader:
    """Reads what is committed, while the writer writes.

    Errors of every method besides its own: UnavailableError (STORE_CLOSED, STORE_BROKEN).
    """

    def __init__(self, root: duckdb.DuckDBPyConnection, condition: StoreCondition, scope: RunScope) -> None:
        self._root = root
        self._condition = condition
        self._scope = scope
        self._lock = threading.Lock()
        self._closed = False

    def get_run(self, run_id: str) -> RunDetails:
        """A run with its prediction and its row counts. Raises NotFoundError."""
        with self._snapshot() as cursor:
            [run] = with_faults(cursor, self._scope.folder, [existing_run(cursor, run_id).run])
            return RunDetails(run=run, row_counts=count_rows(cursor, run_id))

    def list_runs(self, request: PageRequest) -> Page[Run]:
        """One page of runs, newest first, without their predictions. Raises InvalidArgumentError on `page_token`."""
        after = decode_page_token(request.page_token)
        limit = request.effective_page_size
        with self._snapshot() as cursor:
            runs = with_faults(cursor, self._scope.folder, select_runs(cursor, after, limit + 1))
        if len(runs) <= limit:
            return Page(entries=runs)
        last = runs[limit - 1]
        token = encode_page_token(PagePosition(create_time=last.create_time, run_id=last.run_id))
        return Page(entries=runs[:limit], next_page_token=token)

    def list_request_records(
        self, request: ListRequestRecordsRequest, limit_seconds: float | None = None
    ) -> Page[RequestRecord]:
        """One page of the request records of a run, by subject, round and position in the round.

        Raises NotFoundError, InvalidArgumentError on `page_token`, and DeadlineExceededError where the query takes
        longer than `limit_seconds`.
        """
        after = decode_record_token(request.page_token)
        limit = request.effective_page_size
        with self._snapshot() as cursor, interrupted_after(cursor, limit_seconds):
            self._narrow(cursor, request.run, REQUEST_RECORDS.name)
            records = select_request_records(cursor, request.run, request.subject, after, limit + 1)
        if len(records) <= limit:
            return Page(entries=records)
        page = records[:limit]
        return Page(entries=page, next_page_token=encode_record_token(next_record_position(page, after)))

    def read_measured(self, run_id: str, limit_seconds: float | None = None) -> tuple[Run, MeasuredRecords]:
        """A run with its prediction, and everything measured in it.

        Raises NotFoundError, and DeadlineExceededError where the queries take longer than `limit_seconds`.
        """
        with self._snapshot() as cursor, interrupted_after(cursor, limit_seconds):
            tables = (METRIC_AGGREGATES, REQUEST_RECORDS, COLLECTIVE_RESULTS, TRAINING_STEPS)
            run = self._narrow(cursor, run_id, *(table.name for table in tables))
            records = MeasuredRecords(
                aggregates=METRIC_AGGREGATES.select(cursor, run_id),
                requests=REQUEST_RECORDS.select(cursor, run_id),
                collectives=COLLECTIVE_RESULTS.select(cursor, run_id),
                training_steps=TRAINING_STEPS.select(cursor, run_id),
            )
        return run, records

    def query_traffic(self, request: TrafficRequest, limit_seconds: float | None = None) -> tuple[PortTraffic, ...]:
        """Rates of the counters of a run over windows of time.

        Raises NotFoundError, InvalidArgumentError for a metric that counts no bytes, and DeadlineExceededError where it
        takes longer than `limit_seconds`.
        """
        with self._snapshot() as cursor, interrupted_after(cursor, limit_seconds) as limit:
            run = self._narrow(cursor, request.run, SAMPLES_TABLE)
            return port_traffic(cursor, run, request, limit.check)

    def list_phase_traffic(
        self, request: ListPhaseTrafficRequest, limit_seconds: float | None = None
    ) -> Page[PhaseTraffic]:
        """One page of the traffic of a run in the phases of its requests.

        Raises NotFoundError, InvalidArgumentError on `page_token`, and DeadlineExceededError where it takes longer than
        `limit_seconds`.
        """
        with self._snapshot() as cursor, interrupted_after(cursor, limit_seconds) as limit:
            run = self._narrow(cursor, request.run, SAMPLES_TABLE, REQUEST_RECORDS.name)
            return phase_traffic(cursor, run, request, limit.check)

    def reading(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """A cursor on one snapshot, for a read that others put together."""
        return self._snapshot()

    def close(self) -> None:
        """Lets no new read begin."""
        with self._lock:
            self._closed = True

    def _narrow(self, cursor: duckdb.DuckDBPyConnection, run_id: str, *tables: str) -> Run:
        """The run, of which alone `tables` tell from now on. Raises NotFoundError."""
        run = existing_run(cursor, run_id).run
        self._scope.narrow(cursor, run, tables)
        return run

    @contextmanager
    def _snapshot(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cause = self._condition.broken_by
        if cause is not None:
            raise broken_store_error(cause)
        with self._lock:
            if self._closed:
                raise closed_store_error()
            cursor = self._root.cursor()
        try:
            with self._breaking_errors():
                cursor.begin()
                yield cursor
        except FailedPreconditionError as error:
            if error.reason == RUN_UNREADABLE:
                self._check_existence(error.metadata["run"])
            raise
        finally:
            # Ends the transaction too: nothing was written in it.
            cursor.close()

    @contextmanager
    def _breaking_errors(self) -> Iterator[None]:
        """Notices errors that say that the store is of no more use, and those that are about a sealed run alone."""
        try:
            yield
        except duckdb.Error as error:
            unreadable = sealed_file_error(error, self._scope.folder)
            if unreadable is not None:
                raise unreadable from error
            if not isinstance(error, BREAKING_ERRORS):
                raise
            self._condition.mark_broken(error)
            raise broken_store_error(str(error)) from error

    def _check_existence(self, run_id: str) -> None:
        """Raises NotFoundError where the run is deleted by now: the files of one that is being read may go."""
        with self._root.cursor() as cursor:
            existing_run(cursor, run_id)
