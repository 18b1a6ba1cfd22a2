"""One query of others: runs on a cursor of its own in a read-only transaction, and hands out what Arrow needs.

A query is open from its first row to its last, or until it is closed, deadline and cancellation included; whoever reads
slowly keeps a cursor and little more, since DuckDB goes on only as rows are taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import duckdb
import pyarrow as pa
import structlog

from ingest_service.core.sql_text import SQL_NOT_READ_ONLY, sql_error
from ingest_service.store.arrow_messages import ArrowMessages
from ingest_service.store.condition import StoreCondition
from ingest_service.store.database import broken_store_error, closed_store_error
from ingest_service.store.public_views import FOLDER_VARIABLE, NO_RUN, as_pattern, quoted
from ingest_service.store.query_watch import QueryEnd, QueryWatch, WatchedQuery
from ingest_service.store.run_commands import existing_run
from ingest_service.store.seal_errors import sealed_file_error
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.sql_guard import SqlGuard, shown_error
from linkbound.domain.errors import (
    CancelledError,
    DeadlineExceededError,
    Error,
    NotFoundError,
    ResourceExhaustedError,
)
from linkbound.domain.sql import SqlRequest, SqlSummary

READ_ROW_COUNT = 2048
"""Rows that are taken from DuckDB at once: as many as it works on at once."""

END_SECONDS = 5.0
"""How long closing waits for queries that were told to end."""

_OUT_OF_MEMORY = "Out of Memory Error"
_READ_ONLY = "read-only"

_log = structlog.get_logger(__name__)


class SqlQueries:
    """The queries of one store. Safe from any thread."""

    def __init__(
        self,
        root: duckdb.DuckDBPyConnection,
        condition: StoreCondition,
        folder: SealedFolder,
        memory_limit_bytes: int,
    ) -> None:
        self._root = root
        self._condition = condition
        self._folder = folder
        self._guard = SqlGuard.of(root)
        self._watch = QueryWatch(root, memory_limit_bytes)
        self._lock = threading.Lock()
        self._is_closed = False
        self._answers: set[SqlAnswer] = set()

    def open(self, request: SqlRequest, limit_seconds: float | None) -> SqlAnswer:
        """The answer to a query, to be begun and closed by the caller; it ends after `limit_seconds` at the latest.

        Raises UnavailableError (STORE_CLOSED, STORE_BROKEN).
        """
        if self._condition.broken_by is not None:
            raise broken_store_error(self._condition.broken_by)
        with self._lock:
            if self._is_closed:
                raise closed_store_error()
            cursor = self._root.cursor()
            query = WatchedQuery(cursor, None if limit_seconds is None else time.monotonic() + limit_seconds)
            self._watch.add(query)
            answer = SqlAnswer(cursor, query, request, self)
            self._answers.add(answer)
        return answer

    def close(self) -> None:
        """Ends the queries that run and lets none begin. Returns once they are over, or do not end in time."""
        with self._lock:
            self._is_closed = True
            answers = list(self._answers)
        self._watch.stop_all(QueryEnd.CANCELLED)
        give_up_time = time.monotonic() + END_SECONDS
        for answer in answers:
            # Of one that is not read to its end, nothing runs, and whoever holds it hears of it when reading on.
            answer.close_within(max(0.0, give_up_time - time.monotonic()))
        left_count = self._watch.query_count
        if left_count:
            # DuckDB plans some for hours, and hears no interrupt meanwhile.
            _log.warning("queries_left_behind", query_count=left_count)
        else:
            self._watch.wait_until_ended()

    @property
    def count(self) -> int:
        """Queries that are not over."""
        return self._watch.query_count

    def make_room(self) -> None:
        """Ends the queries that run, for the memory that they use."""
        self._watch.stop_all(QueryEnd.MEMORY)

    @property
    def place_of_files(self) -> str:
        """The statement that tells views where the files are: a snapshot may be elsewhere than its store was."""
        return f"SET VARIABLE {FOLDER_VARIABLE} = {quoted(as_pattern(str(self._folder.path)))}"

    @property
    def guard(self) -> SqlGuard:
        """What says of a query whether it may run."""
        return self._guard

    def end(self, answer: SqlAnswer, query: WatchedQuery) -> None:
        """Lets go of a query."""
        with self._lock:
            self._answers.discard(answer)
        try:
            query.close()
        finally:
            self._watch.remove(query)

    def error_of(self, error: Exception, query: WatchedQuery) -> Error:
        """What is raised in place of `error`, which DuckDB or Arrow raised in the course of `query`."""
        if query.end is not None:
            return _error_of_end(query.end)
        text = shown_error(error)
        if isinstance(error, duckdb.OutOfMemoryException) or _OUT_OF_MEMORY in text:
            return _error_of_end(QueryEnd.MEMORY)
        unreadable = sealed_file_error(error, self._folder) if isinstance(error, duckdb.Error) else None
        if unreadable is not None:
            return self._error_of_deletion(unreadable.metadata["run"]) or unreadable
        if self._is_broken():
            self._condition.mark_broken(error)
            return broken_store_error(text)
        is_forbidden = isinstance(error, duckdb.PermissionException) or (
            isinstance(error, duckdb.TransactionException) and _READ_ONLY in text
        )
        return sql_error(text, SQL_NOT_READ_ONLY) if is_forbidden else sql_error(text)

    def _error_of_deletion(self, run_id: str) -> NotFoundError | None:
        """The error where the run is deleted by now: files of one that is being read may go."""
        if run_id == NO_RUN:
            return None
        try:
            with self._root.cursor() as cursor:
                existing_run(cursor, run_id)
        except NotFoundError as error:
            return error
        except duckdb.Error:
            pass
        return None

    def _is_broken(self) -> bool:
        """Whether the instance answers nothing any more: a query may fail in odd ways without any harm to it."""
        try:
            with self._root.cursor() as cursor:
                cursor.execute("SELECT 1").fetchall()
        except duckdb.Error:
            return True
        return False


class SqlAnswer:
    """The answer to one query, a context manager. Any method may be called from any thread; `cancel` does not wait."""

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, query: WatchedQuery, request: SqlRequest, queries: SqlQueries
    ) -> None:
        self._cursor = cursor
        self._query = query
        self._request = request
        self._queries = queries
        self._lock = threading.Lock()
        self._is_closed = False
        self._row_count = 0
        self._is_truncated = False
        self._is_whole = False
        self._batches: Iterator[bytes] = iter(())

    def __enter__(self) -> SqlAnswer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def summary(self) -> SqlSummary | None:
        """What the query came to; None until `next_batch` has said that there is no more."""
        return SqlSummary(row_count=self._row_count, truncated=self._is_truncated) if self._is_whole else None

    def begin(self) -> bytes:
        """Runs the query as far as its first rows, and returns the schema, in the Arrow IPC format.

        Raises InvalidArgumentError (SQL_NOT_READ_ONLY, SQL_ERROR), DeadlineExceededError, CancelledError,
        ResourceExhaustedError (QUERY_TOO_LARGE), FailedPreconditionError (RUN_UNREADABLE), NotFoundError where a run
        that it reads is deleted meanwhile, and UnavailableError (STORE_BROKEN).
        """
        with self._lock, self._translated():
            text = self._queries.guard.check(self._cursor, self._request.sql)
            self._cursor.execute(self._queries.place_of_files)
            self._cursor.execute("BEGIN TRANSACTION READ ONLY")
            relation = self._cursor.sql(text)
            if relation is None:
                raise sql_error("answers nothing")
            reader = relation.to_arrow_reader(READ_ROW_COUNT)
            messages = ArrowMessages(reader.schema)
            self._batches = messages.of(self._limited(reader))
            return messages.schema

    def next_batch(self) -> bytes | None:
        """The next rows, one record batch in the Arrow IPC format; None: there are no more.

        Raises what `begin` does.
        """
        with self._lock, self._translated():
            batch = next(self._batches, None)
            if batch is None:
                self._is_whole = True
            return batch

    def cancel(self) -> None:
        """Ends the query: whatever runs of it raises CancelledError soon."""
        self._query.stop(QueryEnd.CANCELLED)

    def close(self) -> None:
        """Lets go of what the query holds, once what runs of it is over. Repeating it is fine."""
        self.close_within(None)

    def close_within(self, limit_seconds: float | None) -> None:
        """The same, unless what runs of it is not over in time."""
        if not self._lock.acquire(timeout=-1 if limit_seconds is None else limit_seconds):
            return
        try:
            if not self._is_closed:
                self._is_closed = True
                self._batches = iter(())
                self._queries.end(self, self._query)
        finally:
            self._lock.release()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turns errors of DuckDB and Arrow within the block into those of the domain."""
        if self._is_closed:
            raise CancelledError("the query was closed")
        try:
            yield
        except (duckdb.Error, pa.ArrowException, OSError, MemoryError, UnicodeError) as error:
            raise self._queries.error_of(error, self._query) from error

    def _limited(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """The rows up to the limit; one more says that there would have been more."""
        for batch in reader:
            if self._query.end is not None:
                # Between two pieces of work an interrupt finds nothing to end.
                raise _error_of_end(self._query.end)
            rest = self._request.effective_row_limit - self._row_count
            if batch.num_rows > rest:
                self._is_truncated = True
                batch = batch.slice(0, rest)  # noqa: PLW2901 - the rows in excess are of no use
            self._row_count += batch.num_rows
            if batch.num_rows:
                yield batch
            if self._is_truncated:
                return


def _error_of_end(end: QueryEnd) -> Error:
    if end is QueryEnd.DEADLINE:
        return DeadlineExceededError("the query took too long")
    if end is QueryEnd.CANCELLED:
        return CancelledError("the query was cancelled")
    return ResourceExhaustedError(
        "the query needs more memory than queries may use; ask for fewer rows, or group and filter earlier",
        reason="QUERY_TOO_LARGE",
    )
