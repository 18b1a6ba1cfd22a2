"""Checks the files of sealed runs against their manifests, whether the store is in use or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb

from ingest_service.store.manifest import Manifest, SealedFile, read_manifest
from ingest_service.store.public_views import NO_RUN
from ingest_service.store.queries import select
from ingest_service.store.seal_errors import first_line
from ingest_service.store.sealed_folder import MANIFEST_NAME, SealedFolder, sha256_of, table_file
from ingest_service.store.sealed_presence import NOT_WHAT_WAS_SEALED, size_fault, unreadable_fault
from linkbound.domain.run import RunState
from linkbound.domain.store_check import FileFault, RunCheck, StoreCheck


def verify_store(store_path: Path) -> StoreCheck:
    """Reads every file of every sealed run of the store at `store_path`. Raises OSError where it may not list them."""
    folder = SealedFolder.beside(store_path)
    found = {run_id for run_id in folder.run_ids() if run_id != NO_RUN}
    known, not_looked_at = _known_runs(store_path)
    return StoreCheck(
        path=str(folder.path),
        runs=tuple(_check(folder, run_id) for run_id in sorted(found | known)),
        not_looked_at=not_looked_at,
    )


def _known_runs(store_path: Path) -> tuple[set[str], str]:
    """The runs that the store holds for sealed, and why it could not be asked; no reason where there is no store."""
    if not store_path.exists():
        return set(), ""
    try:
        with duckdb.connect(str(store_path), read_only=True) as connection:
            rows = select(connection, "SELECT run_id FROM hot.runs WHERE state = ?", [RunState.SEALED.name])
    except duckdb.Error as error:
        return set(), f"whether the folder of a run is missing: the store cannot be opened: {first_line(error)}"
    return {run_id for (run_id,) in rows}, ""


def _check(folder: SealedFolder, run_id: str) -> RunCheck:
    path = folder.run_path(run_id)
    try:
        manifest = read_manifest(path)
    except (OSError, ValueError) as error:
        fault = _manifest_fault(path / MANIFEST_NAME, error)
        return RunCheck(run=run_id, file_count=0, size_bytes=0, faults=(fault,))
    faults = {file: fault for file, fault in _faults(path, manifest) if fault is not None}
    return RunCheck(
        run=run_id,
        file_count=len(manifest.files),
        size_bytes=sum(file.size_bytes for file in manifest.files if file not in faults),
        faults=tuple(faults.values()),
    )


def _faults(folder: Path, manifest: Manifest) -> Iterator[tuple[SealedFile, FileFault | None]]:
    for file in manifest.files:
        path = table_file(folder, file.table)
        yield file, size_fault(path, file.size_bytes) or _content_fault(path, file)


def _content_fault(path: Path, file: SealedFile) -> FileFault | None:
    try:
        is_whole = sha256_of(path) == file.sha256
    except OSError as error:
        return unreadable_fault(path, error)
    return None if is_whole else FileFault(path=str(path), description=NOT_WHAT_WAS_SEALED)


def _manifest_fault(path: Path, error: OSError | ValueError) -> FileFault:
    if isinstance(error, OSError):
        return unreadable_fault(path, error)
    return FileFault(path=str(path), description=f"cannot be read: {error}")
