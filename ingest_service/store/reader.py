"""Reads of the store, each on a cursor of its own and on one snapshot; safe from any thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
from ingest_service.store.record_tables import (
    COLLECTIVE_RESULTS,
    METRIC_AGGREGATES,
    REQUEST_RECORDS,
    TRAINING_STEPS,
    select_request_records,
)
from ingest_service.store.run_commands import existing_run
from ingest_service.store.run_table import count_rows, select_runs
from ingest_service.store.transactions import BREAKING_ERRORS
from linkbound.domain.errors import DeadlineExceededError
from linkbound.domain.paging import Page, PageRequest
from linkbound.domain.records import ListRequestRecordsRequest, RequestRecord
from linkbound.domain.run import Run, RunDetails

INTERRUPT_INTERVAL_SECONDS = 0.1
"""An interrupt ends the query that runs and no later one, so it is repeated until the work is over."""


class Reader:
    """Reads what is committed, while the writer writes.

    Errors of every method besides its own: UnavailableError (STORE_CLOSED, STORE_BROKEN).
    """

    def __init__(self, root: duckdb.DuckDBPyConnection, condition: StoreCondition) -> None:
        self._root = root
        self._condition = condition
        self._lock = threading.Lock()
        self._closed = False

    def get_run(self, run_id: str) -> RunDetails:
        """A run with its prediction and its row counts. Raises NotFoundError."""
        with self._snapshot() as cursor:
            return RunDetails(run=existing_run(cursor, run_id).run, row_counts=count_rows(cursor, run_id))

    def list_runs(self, request: PageRequest) -> Page[Run]:
        """One page of runs, newest first, without their predictions. Raises InvalidArgumentError on `page_token`."""
        after = decode_page_token(request.page_token)
        limit = request.effective_page_size
        with self._snapshot() as cursor:
            runs = select_runs(cursor, after, limit + 1)
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
        with self._snapshot() as cursor, _interrupted_after(cursor, limit_seconds):
            existing_run(cursor, request.run)
            records = select_request_records(cursor, request.run, request.subject, after, limit + 1)
        if len(records) <= limit:
            return Page(entries=records)
        page = records[:limit]
        return Page(entries=page, next_page_token=encode_record_token(next_record_position(page, after)))

    def read_measured(self, run_id: str, limit_seconds: float | None = None) -> tuple[Run, MeasuredRecords]:
        """A run with its prediction, and everything measured in it.

        Raises NotFoundError, and DeadlineExceededError where the queries take longer than `limit_seconds`.
        """
        with self._snapshot() as cursor, _interrupted_after(cursor, limit_seconds):
            run = existing_run(cursor, run_id).run
            records = MeasuredRecords(
                aggregates=METRIC_AGGREGATES.select(cursor, run_id),
                requests=REQUEST_RECORDS.select(cursor, run_id),
                collectives=COLLECTIVE_RESULTS.select(cursor, run_id),
                training_steps=TRAINING_STEPS.select(cursor, run_id),
            )
        return run, records

    def close(self) -> None:
        """Lets no new read begin."""
        with self._lock:
            self._closed = True

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
            cursor.begin()
            yield cursor
        except BREAKING_ERRORS as error:
            self._condition.mark_broken(error)
            raise broken_store_error(str(error)) from error
        finally:
            # Ends the transaction too: nothing was written in it.
            cursor.close()


@contextmanager
def _interrupted_after(cursor: duckdb.DuckDBPyConnection, limit_seconds: float | None) -> Iterator[None]:
    """Ends the queries of the block once the time is over. Raises DeadlineExceededError then."""
    if limit_seconds is None:
        yield
        return
    done = threading.Event()

    def interrupt() -> None:
        wait_seconds = limit_seconds
        while not done.wait(wait_seconds):
            cursor.interrupt()
            wait_seconds = INTERRUPT_INTERVAL_SECONDS

    thread = threading.Thread(target=interrupt, name="linkbound-interrupt", daemon=True)
    thread.start()
    try:
        yield
    except duckdb.InterruptException as error:
        raise DeadlineExceededError(f"the read took longer than {limit_seconds:g} s") from error
    finally:
        done.set()
        thread.join()
