"""The read-only copy of the store that other processes open: `snapshot.duckdb` beside it.

DuckDB changes its file in checkpoints only; commits go to the log. So the thread that writes checkpoints, lets no other
checkpoint happen, and goes on committing while the file is copied. The copy gets its name once it is on the disk:
whoever opens the name finds a whole file, and whoever has an older one open keeps that.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import duckdb
import structlog
from attrs import define, field, frozen

from ingest_service.settings import StoreSettings
from ingest_service.store.append_committer import AppendCommitter
from ingest_service.store.file_copy import copy_content
from ingest_service.store.log_watch import log_path
from ingest_service.store.run_changes import kept_revisions
from ingest_service.store.sealed_folder import sync_folder
from ingest_service.store.writer import Writer
from linkbound.domain.errors import ResourceExhaustedError, UnavailableError
from linkbound.domain.sql import Snapshot

SNAPSHOT_NAME = "snapshot.duckdb"

LARGEST_LOG_BYTES = 512 * 2**20
"""How long the log may become while the file is copied: a restart reads all of it again."""

CHECKPOINT_ATTEMPT_COUNT = 100
CHECKPOINT_PAUSE_SECONDS = 0.02

_PARTIAL_PREFIX = "_snapshot-"
_NS_PER_SECOND = 1_000_000_000

_log = structlog.get_logger(__name__)


def snapshot_path(store_path: Path) -> Path:
    """Where the copy of the store at `store_path` is."""
    return store_path.absolute().with_name(SNAPSHOT_NAME)


@frozen
class _Held:
    """The file after a checkpoint, while no other may happen."""

    time: datetime
    revision: int
    size_bytes: int


@frozen
class _FileState:
    """What shows that a file, or the log beside it, has changed."""

    modified_ns: int
    size_bytes: int
    log_bytes: int


@define(eq=False)
class SnapshotPublisher:
    """Publishes copies of one store, one at a time. Safe from any thread.

    The file of the store is opened once and stays open until `close`: to close it would take away the lock by which
    DuckDB keeps other processes from writing to it.
    """

    _settings: StoreSettings
    _writer: Writer
    _lock: threading.Lock = field(init=False, factory=threading.Lock)
    _descriptor: int | None = field(init=False, default=None)
    _is_ending: bool = field(init=False, default=False)
    _published: _FileState | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        """What a process that was killed was writing is of no use to anybody."""
        for path in self._path.parent.glob(f"{_PARTIAL_PREFIX}*"):
            path.unlink(missing_ok=True)

    def publish(self) -> Snapshot:
        """Publishes what is committed now.

        Raises ResourceExhaustedError (DISK_FULL), the copy before staying as it is, and UnavailableError
        (SNAPSHOT_FAILED, STORE_CLOSED, STORE_BROKEN).
        """
        with self._lock:
            held = self._hold()
            partial = self._path.with_name(f"{_PARTIAL_PREFIX}{uuid.uuid4().hex[:8]}")
            try:
                state = self._state()
                self._copy(held, partial)
            except OSError as error:
                raise self._error(error) from error
            finally:
                partial.unlink(missing_ok=True)
                # A store that is closing needs no more checkpoints but its last one, which nobody can hold.
                with suppress(UnavailableError):
                    self._writer.change(lambda _connection, appends: appends.release_file())
            self._published = state
            return Snapshot(
                path=str(self._path),
                snapshot_time=held.time,
                size_bytes=held.size_bytes,
                revision=held.revision,
            )

    def publish_if_changed(self) -> Snapshot | None:
        """The same, where anything was committed since the last time; else None."""
        if self._published is not None and self._published == self._state():
            return None
        return self.publish()

    def end(self) -> None:
        """Gives up the copy that is being made, and makes no more."""
        self._is_ending = True

    def close(self) -> None:
        """Lets go of the file, after the store was closed."""
        self.end()
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    @property
    def _path(self) -> Path:
        return snapshot_path(self._settings.path)

    def _hold(self) -> _Held:
        for _ in range(CHECKPOINT_ATTEMPT_COUNT):
            self._check()
            held = self._writer.change(self._checkpoint_and_hold)
            if held is not None:
                return held
            time.sleep(CHECKPOINT_PAUSE_SECONDS)
        raise UnavailableError(
            "the log cannot be moved into the file now, so it cannot be copied; try again", reason="SNAPSHOT_FAILED"
        )

    def _checkpoint_and_hold(self, connection: duckdb.DuckDBPyConnection, appends: AppendCommitter) -> _Held | None:
        revision = kept_revisions(connection).latest
        if not appends.checkpoint():
            return None
        appends.hold_file()
        return _Held(time=appends.now(), revision=revision, size_bytes=self._settings.path.stat().st_size)

    def _copy(self, held: _Held, partial: Path) -> None:
        self._check_room(held.size_bytes)
        target = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            copy_content(self._source(), target, held.size_bytes, self._check)
            os.fsync(target)
        finally:
            os.close(target)
        # Readers tell from it how old the content is.
        time_ns = int(held.time.timestamp() * _NS_PER_SECOND)
        os.utime(partial, ns=(time_ns, time_ns))
        # Closing the store changes its file, and says so before.
        self._check()
        # Somebody may have written to the copy before this one; its log is not of this one.
        log_path(self._path).unlink(missing_ok=True)
        partial.replace(self._path)
        sync_folder(self._path.parent)

    def _source(self) -> int:
        if self._descriptor is None:
            self._descriptor = os.open(self._settings.path, os.O_RDONLY)
        return self._descriptor

    def _check(self) -> None:
        """Raises UnavailableError where the copy is to be given up."""
        if self._is_ending:
            raise UnavailableError("the store is closing", reason="STORE_CLOSED")
        with suppress(FileNotFoundError):
            log_bytes = log_path(self._settings.path).stat().st_size
            if log_bytes > LARGEST_LOG_BYTES:
                raise UnavailableError(
                    f"the copy takes too long: {log_bytes} bytes were committed meanwhile",
                    reason="SNAPSHOT_FAILED",
                    metadata={"logBytes": str(log_bytes)},
                )

    def _check_room(self, size_bytes: int) -> None:
        floor_bytes = self._settings.free_space_floor_bytes
        free_bytes = shutil.disk_usage(self._path.parent).free
        if free_bytes < size_bytes + floor_bytes:
            raise ResourceExhaustedError(
                f"a copy of {size_bytes} bytes would leave less than {floor_bytes} of {free_bytes} bytes free",
                reason="DISK_FULL",
                metadata={"freeBytes": str(free_bytes), "neededBytes": str(size_bytes)},
            )

    def _state(self) -> _FileState:
        file, log_bytes = self._settings.path.stat(), 0
        with suppress(FileNotFoundError):
            log_bytes = log_path(self._settings.path).stat().st_size
        return _FileState(file.st_mtime_ns, file.st_size, log_bytes)

    @staticmethod
    def _error(error: OSError) -> ResourceExhaustedError | UnavailableError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return ResourceExhaustedError(f"the disk is full: {error.strerror}", reason="DISK_FULL")
        return UnavailableError(f"the copy cannot be written: {error}", reason="SNAPSHOT_FAILED")


class SnapshotSchedule:
    """Publishes at an interval what was changed, on a thread of its own.

    A copy that takes long is made less often, so that copying takes a small part of the time.
    """

    def __init__(self, publish: Callable[[], Snapshot | None], interval_seconds: float) -> None:
        self._publish = publish
        self._interval_seconds = interval_seconds
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="linkbound-snapshot", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Publishes no more; returns once nothing is being published."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        wait_seconds = self._interval_seconds
        last_failure = ""
        while not self._ending.wait(wait_seconds):
            started = time.monotonic()
            try:
                self._publish()
                last_failure = ""
            except (ResourceExhaustedError, UnavailableError) as error:
                if error.reason != last_failure and not self._ending.is_set():
                    _log.warning("snapshot_failed", reason=error.reason, message=error.message)
                last_failure = error.reason
            except Exception as error:  # one that failed must not be the last
                _log.error("snapshot_failed", exc_info=error)
            wait_seconds = max(self._interval_seconds, WAIT_FACTOR * (time.monotonic() - started))


WAIT_FACTOR = 20
"""Least time between two copies, as a multiple of what one takes."""
