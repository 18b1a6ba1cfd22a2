"""Ends queries that take too long or too much memory, so that the thread that writes never lacks any.

DuckDB has one limit of memory for everything, and a commit that meets it can break the instance. So the queries
together may use a part of it only, and one thread looks every few milliseconds while there are any. Memory that DuckDB
does not count, such as that of long texts, shows in the memory of the process.
"""

from __future__ import annotations

import math
import os
import threading
import time
from contextlib import suppress
from enum import Enum
from pathlib import Path

import duckdb
from attrs import define, field

from ingest_service.store.queries import select_number

WATCH_INTERVAL_SECONDS = 0.01
"""How often memory is looked at. Measured: a query takes up to 2 GB a second."""

QUERY_MEMORY_FRACTION = 0.5
"""Part of the memory limit that queries may use together."""

ALL_STOPPED_FRACTION = 1.25
"""Of that part: where it is used, not only the query that came last is ended but all."""

PROCESS_MEMORY_FACTOR = 1.5
"""Memory limits that the process may grow by while queries run: one that DuckDB fills with tables that were read, and a
part for what it does not count."""

_QUERY_MEMORY = """
SELECT coalesce(sum(memory_usage_bytes), 0)::BIGINT FROM duckdb_memory()
WHERE tag NOT IN ('BASE_TABLE', 'METADATA', 'EXTERNAL_FILE_CACHE', 'ART_INDEX', 'IN_MEMORY_TABLE', 'TRANSACTION')
"""
"""What DuckDB counts for queries; the tags that are left out belong to tables and to what was read of them."""

_PROCESS_MEMORY = Path("/proc/self/statm")


class QueryEnd(Enum):
    """Why a query was ended before its last row."""

    DEADLINE = "it took too long"
    MEMORY = "it took too much memory"
    CANCELLED = "nobody waits for it any more"


@define(eq=False)
class WatchedQuery:
    """One query that runs on `cursor`. Safe from any thread."""

    _cursor: duckdb.DuckDBPyConnection
    give_up_time: float | None
    """By `time.monotonic`; None: it may take as long as it does."""
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _is_over: bool = field(init=False, default=False)
    _end: QueryEnd | None = field(init=False, default=None)

    @property
    def end(self) -> QueryEnd | None:
        """Why it was ended; None where nobody did."""
        return self._end

    def stop(self, end: QueryEnd) -> None:
        """Interrupts the query. An interrupt ends what runs at this moment only, so it has to be repeated."""
        with self._lock:
            if self._is_over:
                return
            self._end = self._end or end
            with suppress(duckdb.Error):
                self._cursor.interrupt()

    def close(self) -> None:
        """Closes the cursor. Nothing interrupts it any more."""
        with self._lock:
            self._is_over = True
        self._cursor.close()


class QueryWatch:
    """Watches the queries of one store, on a thread that runs while there are any."""

    def __init__(self, root: duckdb.DuckDBPyConnection, memory_limit_bytes: int) -> None:
        self._root = root
        self._memory_limit_bytes = memory_limit_bytes
        self._changed = threading.Condition()
        self._queries: list[WatchedQuery] = []
        self._idle_process_bytes = 0
        self._thread: threading.Thread | None = None

    def add(self, query: WatchedQuery) -> None:
        """Watches one more query."""
        with self._changed:
            if not self._queries:
                self._idle_process_bytes = _process_bytes()
            self._queries.append(query)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="linkbound-query-watch", daemon=True)
                self._thread.start()

    def remove(self, query: WatchedQuery) -> None:
        """Watches it no longer."""
        with self._changed:
            self._queries.remove(query)
            self._changed.notify_all()

    def stop_all(self, end: QueryEnd) -> None:
        """Ends every query that runs now."""
        for query in self._running():
            query.stop(end)

    @property
    def query_count(self) -> int:
        """Queries that are not over."""
        with self._changed:
            return len(self._queries)

    def wait_until_ended(self) -> None:
        """Returns once the thread has ended, after the last query."""
        with self._changed:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        cursor = self._root.cursor()
        try:
            while True:
                with self._changed:
                    if not self._queries:
                        self._thread = None
                        return
                    self._changed.wait(WATCH_INTERVAL_SECONDS)
                self._look(cursor)
        finally:
            cursor.close()

    def _look(self, cursor: duckdb.DuckDBPyConnection) -> None:
        now = time.monotonic()
        running = self._running()
        for query in running:
            if query.end is not None:
                query.stop(query.end)
            elif query.give_up_time is not None and now >= query.give_up_time:
                query.stop(QueryEnd.DEADLINE)
        if running:
            self._keep_within_budget(running, self._used_fraction(cursor))

    def _keep_within_budget(self, running: list[WatchedQuery], used_fraction: float) -> None:
        """Ends the query that came last, since the others did with the memory until it came; all where that is late."""
        if used_fraction > ALL_STOPPED_FRACTION:
            for query in running:
                query.stop(QueryEnd.MEMORY)
        elif used_fraction > 1 and all(query.end is None for query in running):
            running[-1].stop(QueryEnd.MEMORY)

    def _used_fraction(self, cursor: duckdb.DuckDBPyConnection) -> float:
        """What the queries use of what they may."""
        process_bytes = _process_bytes() - self._idle_process_bytes
        if process_bytes > PROCESS_MEMORY_FACTOR * self._memory_limit_bytes:
            return math.inf
        try:
            return select_number(cursor, _QUERY_MEMORY) / (QUERY_MEMORY_FRACTION * self._memory_limit_bytes)
        except duckdb.OutOfMemoryException:
            return math.inf
        except duckdb.Error:
            # A store that broke says so to whoever reads it.
            return 0.0

    def _running(self) -> list[WatchedQuery]:
        with self._changed:
            return list(self._queries)


def _process_bytes() -> int:
    """Memory of this process; 0 where the system does not tell."""
    try:
        return int(_PROCESS_MEMORY.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
