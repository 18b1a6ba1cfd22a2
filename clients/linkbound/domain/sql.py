"""SQL over what is stored, and the copy of it that other processes open."""

from __future__ import annotations

from datetime import datetime

from attrs import field, frozen

from linkbound.domain.rules import Checked, document, whole

LARGEST_SQL_BYTES = 100_000
USUAL_ROW_LIMIT = 10**6
LARGEST_ROW_LIMIT = 10**9


@frozen(kw_only=True)
class SqlRequest(Checked):
    """One SELECT in the words of DuckDB; `row_limit` 0 is the usual one."""

    sql: str = field(metadata=document(LARGEST_SQL_BYTES))
    row_limit: int = field(default=0, metadata=whole(0, LARGEST_ROW_LIMIT))

    @property
    def effective_row_limit(self) -> int:
        """Rows to answer at most."""
        return self.row_limit or USUAL_ROW_LIMIT


@frozen(kw_only=True)
class SqlSummary:
    """What a query came to: rows answered, and whether there were more than its limit."""

    row_count: int
    truncated: bool


SqlPart = bytes | SqlSummary
"""Of an answer: the schema, which comes first, or rows, both in the Arrow IPC format; or the summary, which is last."""


class TruncatedAnswerWarning(UserWarning):
    """A query had more rows than its limit; `summary` says how many were answered."""

    def __init__(self, summary: SqlSummary) -> None:
        super().__init__(f"the query has more rows than the {summary.row_count} that were answered; raise row_limit")
        self.summary = summary


@frozen(kw_only=True)
class PublishSnapshotRequest(Checked):
    """Asks for a new read-only copy of what is stored now."""


@frozen(kw_only=True)
class Snapshot:
    """The read-only copy: `path` on the machine of the service, and the highest `revision` of a run that is in it."""

    path: str
    snapshot_time: datetime
    size_bytes: int
    revision: int


class SnapshotWarning(UserWarning):
    """Another process holds the store, so its last snapshot is read: `snapshot_time` is when that was taken."""

    def __init__(self, snapshot_time: datetime, age_seconds: float, pid: str) -> None:
        holder = f"process {pid}" if pid else "another process"
        super().__init__(f"{holder} holds the store; this is its snapshot of {age_seconds:.0f} s ago")
        self.snapshot_time = snapshot_time
        self.age_seconds = age_seconds
        self.pid = pid
