"""Watching runs: revisions, and what happened to which run."""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from linkbound.domain.names import RUN_ID
from linkbound.domain.rules import Checked, optional, whole
from linkbound.domain.run import Run, RunRowCounts


class RunChange(Enum):
    """What happened to a run."""

    UNSPECIFIED = "RUN_CHANGE_UNSPECIFIED"
    CREATED = "RUN_CHANGE_CREATED"
    APPENDED = "RUN_CHANGE_APPENDED"
    SEALED = "RUN_CHANGE_SEALED"
    DELETED = "RUN_CHANGE_DELETED"
    UNKNOWN = "RUN_CHANGE_UNKNOWN"


@frozen(kw_only=True)
class WatchRunsRequest(Checked):
    """Watches runs from a revision on, or one `run` alone; 0: as they are now, then changes."""

    start_revision: int = field(default=0, metadata=whole(0, 2**62))
    run: str | None = field(default=None, metadata=optional(RUN_ID))


@frozen(kw_only=True)
class RunUpdate:
    """A run changed, or without `run` nothing did up to `revision`. `run_id` of a deleted run is all that is left."""

    revision: int
    change: RunChange = RunChange.UNSPECIFIED
    run_id: str = ""
    run: Run | None = None
    row_counts: RunRowCounts | None = None
