"""Which sealed runs are kept no longer: those of a certain age, and the oldest while all take too much space."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum

from attrs import frozen


class ExpiryReason(Enum):
    """Why a run is kept no longer."""

    AGE = "AGE"
    SIZE = "SIZE"


@frozen(kw_only=True)
class RetentionRule:
    """How long sealed runs are kept, counted from their sealing, and how much space they may take. None: no limit.

    With `only_published` a run is kept until a snapshot was published after its sealing.
    """

    age_seconds: float | None = None
    size_bytes: int | None = None
    only_published: bool = False

    @property
    def is_on(self) -> bool:
        """Whether anything is ever removed."""
        return self.age_seconds is not None or self.size_bytes is not None


@frozen(kw_only=True)
class SealedRun:
    """A sealed run as far as its age and its size go."""

    run_id: str
    seal_time: datetime
    size_bytes: int


@frozen
class Expiry:
    """A run to remove."""

    run: SealedRun
    reason: ExpiryReason


def expired_runs(
    runs: Sequence[SealedRun], rule: RetentionRule, now: datetime, snapshot_time: datetime | None
) -> tuple[Expiry, ...]:
    """The runs to remove, those that were sealed first first. `snapshot_time` is that of the last snapshot, if any."""
    expired: list[Expiry] = []
    size_bytes = sum(run.size_bytes for run in runs)
    for run in sorted(runs, key=lambda run: (run.seal_time, run.run_id)):
        if rule.only_published and (snapshot_time is None or snapshot_time <= run.seal_time):
            continue
        reason = _reason(run, rule, now, size_bytes)
        if reason is not None:
            expired.append(Expiry(run, reason))
            size_bytes -= run.size_bytes
    return tuple(expired)


def _reason(run: SealedRun, rule: RetentionRule, now: datetime, size_bytes: int) -> ExpiryReason | None:
    """Why `run` is to be removed while all that are left take `size_bytes`; None: it is kept."""
    if rule.age_seconds is not None and now - run.seal_time > timedelta(seconds=rule.age_seconds):
        return ExpiryReason.AGE
    if rule.size_bytes is not None and size_bytes > rule.size_bytes:
        return ExpiryReason.SIZE
    return None
