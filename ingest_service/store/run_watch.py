"""Watching runs: what is told to one watcher, and in what order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import duckdb
from attrs import define, evolve, field

from ingest_service.store.change_signal import ChangeSignal
from ingest_service.store.queries import select
from ingest_service.store.row_counts import count_rows
from ingest_service.store.run_changes import StoredChange, kept_revisions, select_changes
from ingest_service.store.run_table import select_run
from linkbound.domain.errors import OutOfRangeError
from linkbound.domain.run import Run
from linkbound.domain.run_watch import RunChange, RunUpdate, WatchRunsRequest

READ_CHANGE_COUNT = 1_000
"""Changes that are read at once; of several of one run only the last is told."""

TOLD_RUN_COUNT = 100
"""Runs that are looked up for one answer."""

PROGRESS_INTERVAL_SECONDS = 10.0
"""How often a watcher is told how far it is, where nothing happens."""

Read = Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]]
"""Opens a cursor in a transaction of its own."""


@define
class RunWatch:
    """One watch. Belongs to one thread at a time; `listening` may be used from another."""

    _request: WatchRunsRequest
    _read: Read
    _located: Callable[[Run], Run]
    _signal: ChangeSignal
    _has_begun: bool = field(init=False, default=False)
    _waiting: deque[StoredChange] = field(init=False, factory=deque)
    _next_revision: int = field(init=False, default=0)
    """First revision that is not read yet."""
    _told_revision: int = field(init=False, default=0)
    _listed_revision: int | None = field(init=False, default=None)
    """Revision that holds once every run of the first listing is told; None: that is done, or there is none."""

    @contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls `listener`, from another thread, when there may be more to tell."""
        with self._signal.listening(listener):
            yield

    def next_updates(self) -> tuple[RunUpdate, ...]:
        """What is to be told now; nothing where nothing is.

        Raises OutOfRangeError (REVISION_COMPACTED), UnavailableError (STORE_CLOSED, STORE_BROKEN).
        """
        with self._read() as cursor:
            if not self._has_begun:
                self._begin(cursor)
                self._has_begun = True
            if self._listed_revision is None:
                self._take_changes(cursor)
            updates = [
                update
                for _ in range(min(TOLD_RUN_COUNT, len(self._waiting)))
                if (update := self._update(cursor, self._waiting.popleft())) is not None
            ]
        if not self._waiting and self._listed_revision is not None:
            # Whoever breaks off before hears of every run again.
            self._told_revision, self._listed_revision = self._listed_revision, None
            updates.append(self.progress)
        return tuple(updates)

    @property
    def progress(self) -> RunUpdate:
        """That nothing happened, and how far the watch is."""
        return RunUpdate(revision=self._told_revision)

    def _begin(self, cursor: duckdb.DuckDBPyConnection) -> None:
        kept = kept_revisions(cursor)
        start = self._request.start_revision
        if start == 0:
            self._waiting.extend(StoredChange(0, run_id, RunChange.CREATED) for run_id in self._run_ids(cursor))
            self._listed_revision = kept.latest
            self._next_revision = kept.latest + 1
            return
        if not kept.oldest <= start <= kept.latest + 1:
            raise OutOfRangeError(
                f"revision {start} is not there; the store has {kept.oldest} to {kept.latest}: begin at 0 again",
                reason="REVISION_COMPACTED",
                metadata={
                    "startRevision": str(start),
                    "oldestRevision": str(kept.oldest),
                    "latestRevision": str(kept.latest),
                },
            )
        self._next_revision, self._told_revision = start, start - 1

    def _run_ids(self, cursor: duckdb.DuckDBPyConnection) -> list[str]:
        if self._request.run is not None:
            return [self._request.run]
        rows = select(cursor, "SELECT run_id FROM runs ORDER BY create_time_utc, run_id")
        return [run_id for (run_id,) in rows]

    def _take_changes(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Reads further changes, unless some are still to be told; a run is told of at its last one."""
        while not self._waiting and (changes := select_changes(cursor, self._next_revision, READ_CHANGE_COUNT)):
            last = {change.run_id: change for change in changes if self._request.run in (None, change.run_id)}
            self._waiting.extend(sorted(last.values(), key=lambda change: change.revision))
            self._next_revision = changes[-1].revision + 1
            if not self._waiting:
                self._told_revision = changes[-1].revision

    def _update(self, cursor: duckdb.DuckDBPyConnection, change: StoredChange) -> RunUpdate | None:
        """What is told of a change; None where the run is gone and its deletion is still to come."""
        self._told_revision = change.revision
        if change.change is RunChange.DELETED:
            return RunUpdate(revision=change.revision, change=change.change, run_id=change.run_id)
        stored = select_run(cursor, change.run_id)
        if stored is None:
            return None
        return RunUpdate(
            revision=change.revision,
            change=change.change,
            run_id=change.run_id,
            run=self._located(_without_prediction(stored.run)),
            row_counts=count_rows(cursor, change.run_id),
        )


def _without_prediction(run: Run) -> Run:
    return evolve(run, prediction=None)
