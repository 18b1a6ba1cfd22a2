"""What happened to runs, in `hot.run_changes`: one row for each change, with a revision that rises by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import duckdb
from attrs import frozen

from ingest_service.store.queries import select, select_row
from ingest_service.store.timestamps import to_utc_column
from linkbound.domain.run_watch import RunChange

KEPT_CHANGE_COUNT = 10_000
"""Changes that are kept at least, for those who went away and come back."""

COMPACTION_COUNT = 1_000
"""Changes by which there may be more of them, so that rows are not deleted one by one."""


@frozen
class StoredChange:
    """One change as stored."""

    revision: int
    run_id: str
    change: RunChange


@frozen
class KeptRevisions:
    """The revisions that are stored, from `oldest` to `latest`; 1 and 0 where nothing has happened yet."""

    oldest: int
    latest: int


def insert_changes(
    connection: duckdb.DuckDBPyConnection, run_ids: Sequence[str], change: RunChange, now: datetime
) -> None:
    """Stores that `change` happened to each of the runs, within the current transaction of the one who writes."""
    if not run_ids:
        return
    revisions = kept_revisions(connection)
    time = to_utc_column(now)
    rows = [(revisions.latest + place, run_id, change.name, time) for place, run_id in enumerate(run_ids, 1)]
    connection.executemany("INSERT INTO hot.run_changes VALUES (?, ?, ?, ?)", rows)
    if revisions.latest - revisions.oldest >= KEPT_CHANGE_COUNT + COMPACTION_COUNT:
        connection.execute("DELETE FROM hot.run_changes WHERE revision <= ?", [revisions.latest - KEPT_CHANGE_COUNT])


def insert_untold_appends(connection: duckdb.DuckDBPyConnection, clock: Callable[[], datetime]) -> None:
    """Stores a change for each run with appends that are younger than its last one: a crash kept it from being told."""
    rows = select(
        connection,
        "SELECT run_id FROM (SELECT run_id, max(commit_time_utc) AS appended FROM hot.ledger GROUP BY run_id)"
        " LEFT JOIN (SELECT run_id, max(change_time_utc) AS told FROM hot.run_changes GROUP BY run_id) USING (run_id)"
        " WHERE told IS NULL OR appended > told ORDER BY run_id",
    )
    if rows:
        insert_changes(connection, [run_id for (run_id,) in rows], RunChange.APPENDED, clock())


def kept_revisions(connection: duckdb.DuckDBPyConnection) -> KeptRevisions:
    """The revisions that are stored."""
    row = select_row(connection, "SELECT min(revision), max(revision) FROM hot.run_changes")
    return KeptRevisions(1, 0) if row is None or row[0] is None else KeptRevisions(*row)


def select_changes(connection: duckdb.DuckDBPyConnection, start_revision: int, limit: int) -> tuple[StoredChange, ...]:
    """Up to `limit` changes from a revision on, in their order."""
    rows = select(
        connection,
        "SELECT revision, run_id, change FROM hot.run_changes WHERE revision >= ? ORDER BY revision LIMIT ?",
        [start_revision, limit],
    )
    return tuple(StoredChange(revision, run_id, RunChange[change]) for revision, run_id, change in rows)
