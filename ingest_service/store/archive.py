"""The sealed runs of a store: how runs get there, where they are, and when they leave."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import duckdb
from attrs import evolve

from ingest_service.core.retention import RetentionRule
from ingest_service.settings import StoreSettings
from ingest_service.store.condition import StoreCondition
from ingest_service.store.file_views import FileViews
from ingest_service.store.free_space import FreeSpace
from ingest_service.store.life_steps import OnStep
from ingest_service.store.public_views import public_tables
from ingest_service.store.retention import Retention, RetentionSources
from ingest_service.store.run_life import RunLife
from ingest_service.store.schema import applied_versions
from ingest_service.store.seal_recovery import recover
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.sealed_tables import has_sealed_runs
from ingest_service.store.sealing import Sealing
from ingest_service.store.snapshot import snapshot_path
from ingest_service.store.writer import Writer
from linkbound.domain.run import Run, RunRowCounts, RunState, SealRunRequest


class Archive:
    """Seals, deletes and expires runs of one store. Safe from any thread."""

    def __init__(
        self,
        root: duckdb.DuckDBPyConnection,
        writer: Writer,
        settings: StoreSettings,
        clock: Callable[[], datetime],
        condition: StoreCondition,
        on_step: OnStep,
    ) -> None:
        self._folder = SealedFolder.beside(settings.path)
        tables = public_tables(root)
        views = FileViews(self._folder, tables, show_files=has_sealed_runs(root))
        sealing = Sealing(
            root=root,
            folder=self._folder,
            tables=tables,
            schema_version=applied_versions(root)[-1],
            space=FreeSpace(settings.path.parent, settings.free_space_floor_bytes),
            condition=condition,
            on_step=on_step,
        )
        self._life = RunLife(writer, sealing, self._folder, views, clock, condition, on_step)
        self._life.resume(recover(root, self._folder))
        self._retention = Retention(
            RetentionRule(age_seconds=settings.retention_age_seconds, size_bytes=settings.retention_size_bytes),
            settings.retention_interval_seconds,
            RetentionSources(
                root=root, clock=clock, snapshot=snapshot_path(settings.path), delete_run=self._life.delete
            ),
        )

    def seal(self, request: SealRunRequest) -> Run:
        """Seals a run (`RunLife.seal`)."""
        return self.located(self._life.seal(request))

    def delete(self, run_id: str) -> RunRowCounts:
        """Deletes a run, sealed or not (`RunLife.delete`)."""
        return self._life.delete(run_id)

    def remove_expired(self) -> tuple[str, ...]:
        """Deletes the sealed runs that the settings keep no longer, and returns their ids; it happens by itself too."""
        return self._retention.remove_expired()

    def keep_unpublished(self) -> None:
        """From here on a run expires only once a snapshot was published after its sealing."""
        self._retention.keep_unpublished()

    def wait_until_deleted(self, run_id: str) -> None:
        """Returns once nothing is left of a deleted run, so that its id can be used again."""
        self._life.wait_until_deleted(run_id)

    def located(self, run: Run) -> Run:
        """The run with the folder of its files, where it is sealed."""
        if run.state is not RunState.SEALED:
            return run
        return evolve(run, sealed_path=str(self._folder.run_path(run.run_id)))

    def end(self) -> None:
        """Lets nothing begin, and ends what is being written."""
        self._life.end()
        self._retention.close()

    def wait_until_ended(self) -> None:
        """Returns once no run is worked on; the writer is closed before, so that nothing new comes of it."""
        self._life.wait_until_ended()
