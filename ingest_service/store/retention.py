"""Removes sealed runs that are kept no longer, now and then, on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import structlog
from attrs import evolve, frozen

from ingest_service.core.retention import RetentionRule, SealedRun, expired_runs
from ingest_service.store.queries import select
from ingest_service.store.timestamps import from_utc_column
from linkbound.domain.errors import Error
from linkbound.domain.run import RunState

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_log = structlog.get_logger(__name__)


@frozen(kw_only=True)
class RetentionSources:
    """Where retention looks: the store, the clock, and the last snapshot, whose age is that of its content."""

    root: duckdb.DuckDBPyConnection
    clock: Callable[[], datetime]
    snapshot: Path
    delete_run: Callable[[str], object]


class Retention:
    """Applies a rule every `interval_seconds` until it is closed; nothing happens where the rule is off."""

    def __init__(self, rule: RetentionRule, interval_seconds: float, sources: RetentionSources) -> None:
        self._rule = rule
        self._interval_seconds = interval_seconds
        self._sources = sources
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="linkbound-retention", daemon=True)
        if rule.is_on:
            self._thread.start()

    def remove_expired(self) -> tuple[str, ...]:
        """Removes what the rule does not keep, with one log line each, and returns the ids."""
        sources = self._sources
        runs = sealed_runs(sources.root)
        removed: list[str] = []
        for expiry in expired_runs(runs, self._rule, sources.clock(), file_time(sources.snapshot)):
            run = expiry.run
            facts = {"run": run.run_id, "seal_time": run.seal_time.isoformat(), "size_bytes": run.size_bytes}
            try:
                sources.delete_run(run.run_id)
            except Error as error:
                _log.warning("expired_run_not_removed", **facts, reason=expiry.reason.name, error=error.message)
                continue
            _log.info("expired_run_removed", **facts, reason=expiry.reason.name)
            removed.append(run.run_id)
        return tuple(removed)

    def keep_unpublished(self) -> None:
        """From here on removes only what was sealed before the last snapshot."""
        self._rule = evolve(self._rule, only_published=True)

    def close(self) -> None:
        """Ends the thread, after what it is removing. Repeating it is fine."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(self._interval_seconds):
            try:
                self.remove_expired()
            except (Error, duckdb.Error, OSError) as error:
                _log.warning("retention_failed", exc_info=error)


def file_time(path: Path) -> datetime | None:
    """When a file was changed; None where there is none."""
    try:
        modified_ns = path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
    return EPOCH + timedelta(microseconds=modified_ns // 1000)


def sealed_runs(root: duckdb.DuckDBPyConnection) -> tuple[SealedRun, ...]:
    """Every sealed run with the size of its files."""
    with root.cursor() as cursor:
        rows = select(
            cursor,
            "SELECT run_id, seal_time_utc, coalesce(sum(size_bytes), 0)::BIGINT"
            " FROM hot.runs LEFT JOIN hot.sealed_files USING (run_id) WHERE state = ? GROUP BY run_id, seal_time_utc",
            [RunState.SEALED.name],
        )
    return tuple(
        SealedRun(run_id=run_id, seal_time=from_utc_column(seal_time), size_bytes=size_bytes)
        for run_id, seal_time, size_bytes in rows
    )
