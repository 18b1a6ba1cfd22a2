"""Seals and deletes runs: what the thread that writes does of it is short, the rest happens on the caller's thread.

A sealing goes through these states. Whatever is killed in between, the run is open with everything in `hot`, or sealed
with everything in files:

    closed       appends are refused, by the running process alone; everything before is committed
    staged       files are written beside the others, synced, read back
    published    their folder has its name; no view reads it, since the run is open
    sealed       one transaction: SEALED, what the files are, how far the writers came, the rows in `hot` count no more
    dropped      the rows in `hot` are deleted, a slice at a time

A deletion marks the run as gone in one transaction, then deletes its folder and drops its rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import structlog

from ingest_service.store.busy_runs import BusyRuns
from ingest_service.store.condition import StoreCondition
from ingest_service.store.file_views import FileViews
from ingest_service.store.life_steps import LifeStep, OnStep
from ingest_service.store.manifest import Manifest
from ingest_service.store.row_dropping import RowDropper
from ingest_service.store.run_commands import begin_deletion, begin_sealing, commit_sealing
from ingest_service.store.seal_recovery import DroppingRun
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.sealing import Sealing
from ingest_service.store.writer import Writer
from linkbound.domain.errors import Error
from linkbound.domain.run import Run, RunRowCounts, RunState, SealRunRequest

_log = structlog.get_logger(__name__)


class RunLife:
    """Seals and deletes the runs of one store. Safe from any thread."""

    def __init__(
        self,
        writer: Writer,
        sealing: Sealing,
        folder: SealedFolder,
        views: FileViews,
        clock: Callable[[], datetime],
        condition: StoreCondition,
        on_step: OnStep,
    ) -> None:
        self._writer = writer
        self._sealing = sealing
        self._folder = folder
        self._views = views
        self._clock = clock
        self._condition = condition
        self._on_step = on_step
        self._busy = BusyRuns()

    def seal(self, request: SealRunRequest) -> Run:
        """Seals a run, or returns it where it is sealed; every append queued before is in it.

        Raises NotFoundError; FailedPreconditionError: ROW_COUNT_MISMATCH, SEAL_FAILED; ResourceExhaustedError
        (DISK_FULL). The run is open then as before.
        """
        with self._busy.alone(request.run):
            seal_time = self._clock()
            run = self._writer.change(lambda connection, appends: begin_sealing(connection, appends, request))
            if run.state is RunState.SEALED:
                return run
            try:
                self._on_step(LifeStep.CLOSED)
                manifest = self._sealing.publish(request.run, seal_time)
            except BaseException:
                self._reopen(request.run)
                raise
            sealed = self._commit(manifest)
            self._on_step(LifeStep.SEALED)
            # The run is sealed whatever happens now; what is left over is dropped when the store is opened again.
            with suppress(Error):
                self._drop(request.run)
            return sealed

    def delete(self, run_id: str) -> RunRowCounts:
        """Deletes a run with everything in it, and returns what it held. Raises NotFoundError."""
        with self._busy.alone(run_id):
            self._busy.vanishes(run_id)
            counts = self._writer.change(lambda connection, appends: begin_deletion(connection, appends, run_id))
            self._on_step(LifeStep.DELETED)
            # The run is gone whatever happens now, as above.
            with suppress(Error):
                self._remove(run_id)
            return counts

    def resume(self, runs: tuple[DroppingRun, ...]) -> None:
        """Finishes what a process that was killed left of these runs, each on a thread of its own."""
        for run in runs:
            begun = threading.Event()
            threading.Thread(target=self._finish, args=(run, begun), name="linkbound-drop", daemon=True).start()
            begun.wait()

    def wait_until_deleted(self, run_id: str) -> None:
        """Returns once nothing is left of a deleted run, so that its id can be used again."""
        self._busy.wait_for_vanishing(run_id)

    def end(self) -> None:
        """Lets nothing begin, and ends what is being written."""
        self._busy.end()
        self._sealing.end()

    def wait_until_ended(self) -> None:
        """Returns once no run is worked on; the writer is closed before, so that nothing new comes of it."""
        self._busy.wait_until_idle()

    def _finish(self, run: DroppingRun, begun: threading.Event) -> None:
        try:
            with self._busy.alone(run.run_id), suppress(Error):
                if run.is_deleted:
                    self._busy.vanishes(run.run_id)
                begun.set()
                if run.is_deleted:
                    self._remove(run.run_id)
                else:
                    self._drop(run.run_id)
        finally:
            begun.set()

    def _commit(self, manifest: Manifest) -> Run:
        try:
            self._views.show_files(self._writer, manifest.run_id)
            return self._writer.change(lambda connection, appends: commit_sealing(connection, appends, manifest))
        except BaseException:
            if self._condition.broken_by is None:
                # Nothing was committed. Otherwise nobody knows, and the next opening finds out.
                self._folder.remove(manifest.run_id)
                self._reopen(manifest.run_id)
            raise

    def _remove(self, run_id: str) -> None:
        """Deletes the folder of a deleted run, and its rows. What cannot be is tried again at the next opening."""
        try:
            self._folder.remove(run_id)
        except OSError as error:
            _log.warning("sealed_folder_not_removed", run=run_id, exc_info=error)
            return
        self._on_step(LifeStep.FOLDER_REMOVED)
        self._drop(run_id)

    def _drop(self, run_id: str) -> None:
        dropper = RowDropper(run_id)
        while self._writer.change(lambda connection, _appends: dropper.drop_slice(connection)):
            self._on_step(LifeStep.SLICE_DROPPED)
        self._on_step(LifeStep.DROPPED)

    def _reopen(self, run_id: str) -> None:
        with suppress(Error):
            self._writer.change(lambda _connection, appends: appends.reopen_run(run_id))
