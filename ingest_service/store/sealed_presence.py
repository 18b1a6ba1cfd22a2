"""Whether the files of sealed runs are there, by name and size: told of thousands of them without reading any."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
from attrs import evolve

from ingest_service.store.queries import select
from ingest_service.store.sealed_folder import MANIFEST_NAME, SealedFolder, table_file
from linkbound.domain.run import Run, RunState
from linkbound.domain.store_check import FileFault
from linkbound.domain.words import counted

NOT_WHAT_WAS_SEALED = "is damaged: it is not what was sealed"

_FILES = "SELECT run_id, table_name, size_bytes FROM hot.sealed_files"


def size_fault(path: Path, size_bytes: int) -> FileFault | None:
    """What is wrong with a file that should have this size; None where nothing is."""
    try:
        found_bytes = path.stat().st_size
    except OSError as error:
        return unreadable_fault(path, error)
    if found_bytes != size_bytes:
        return FileFault(path=str(path), description=f"has {found_bytes} bytes, not {size_bytes}")
    return None


def unreadable_fault(path: Path, error: OSError) -> FileFault:
    """A file that is missing, or that this process may not read."""
    is_missing = isinstance(error, FileNotFoundError)
    return FileFault(path=str(path), description="is missing" if is_missing else f"cannot be read: {error.strerror}")


def faults_of_all(connection: duckdb.DuckDBPyConnection, folder: SealedFolder) -> dict[str, list[FileFault]]:
    """What is wrong with files of sealed runs, by run; nothing of runs that have all of theirs."""
    runs = select(connection, "SELECT run_id FROM hot.runs WHERE state = ?", [RunState.SEALED.name])
    return _faults(folder, [run_id for (run_id,) in runs], select(connection, _FILES))


def with_faults(connection: duckdb.DuckDBPyConnection, folder: SealedFolder, runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs, the sealed ones with what is wrong with their files."""
    run_ids = [run.run_id for run in runs if run.state is RunState.SEALED]
    if not run_ids:
        return tuple(runs)
    files = select(connection, f"{_FILES} WHERE run_id IN (SELECT unnest(?))", [run_ids])
    faults = _faults(folder, run_ids, files)
    return tuple(evolve(run, sealed_fault=_in_words(faults.get(run.run_id, []))) for run in runs)


def _faults(
    folder: SealedFolder, run_ids: Sequence[str], files: Sequence[tuple[str, str, int]]
) -> dict[str, list[FileFault]]:
    faults: dict[str, list[FileFault]] = {}
    for run_id, table, size_bytes in files:
        fault = size_fault(table_file(folder.run_path(run_id), table), size_bytes)
        if fault is not None:
            faults.setdefault(run_id, []).append(fault)
    for run_id in run_ids:
        path = folder.run_path(run_id) / MANIFEST_NAME
        try:
            path.stat()
        except OSError as error:
            faults.setdefault(run_id, []).append(unreadable_fault(path, error))
    return faults


def _in_words(faults: Sequence[FileFault]) -> str:
    if not faults:
        return ""
    more = f", and {counted(len(faults) - 1, 'more fault')}" if len(faults) > 1 else ""
    return f"{faults[0].path} {faults[0].description}{more}"
