"""The folder of sealed runs: `run_id=<id>` for each, found as it is by everything that reads partitioned Parquet.

Names that begin with `_` are no run: `_sealing-...` is being written, `_removed-...` is being deleted. Such tools pass
them over, as the views of the store do.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from attrs import frozen

FOLDER_NAME = "sealed"
VIEWS_NAME = "views.sql"
MANIFEST_NAME = "manifest.json"

_RUN_PREFIX = "run_id="
_STAGED_PREFIX = "_sealing-"
_REMOVED_PREFIX = "_removed-"
_KEPT_PREFIX = "_aside-"
_HASHED_BYTES = 2**20

_NAMES = {"null": "%6eull"}
"""Ids that stand for something else in the name of a folder: DuckDB 1.5 takes this one for no value."""


@frozen
class SealedFolder:
    """Where sealed runs are; nothing here looks into the files."""

    path: Path

    @classmethod
    def beside(cls, store_path: Path) -> SealedFolder:
        """That of the store at `store_path`."""
        return cls(store_path.absolute().parent / FOLDER_NAME)

    @property
    def views_path(self) -> Path:
        """The script that makes views of all runs."""
        return self.path / VIEWS_NAME

    def run_path(self, run_id: str) -> Path:
        """The folder of a run."""
        return self.path / f"{_RUN_PREFIX}{_NAMES.get(run_id, run_id)}"

    def file_path(self, run_id: str, table_name: str) -> Path:
        """The file with the rows that a run has in a table."""
        return table_file(self.run_path(run_id), table_name)

    def run_ids(self) -> list[str]:
        """Runs that have a folder, sorted."""
        names = (entry.name for entry in self._entries() if entry.is_dir())
        return sorted(unquote(name.removeprefix(_RUN_PREFIX)) for name in names if name.startswith(_RUN_PREFIX))

    def stage(self, run_id: str) -> Path:
        """A new folder beside that of the run, to write its files into."""
        path = self._aside(_STAGED_PREFIX, run_id)
        path.mkdir(parents=True)
        return path

    def publish(self, staged: Path, run_id: str) -> None:
        """Makes a staged folder that of its run, durably. Raises OSError, FileExistsError where the run has one."""
        target = self.run_path(run_id)
        if target.exists():
            raise FileExistsError(f"{target} is there already, of a run that this store does not know")
        staged.rename(target)
        sync_folder(self.path)

    def remove(self, run_id: str) -> None:
        """Deletes the folder of a run, first out of sight. Nothing happens where there is none."""
        if self.run_path(run_id).exists():
            path = self._aside(_REMOVED_PREFIX, run_id)
            self.run_path(run_id).rename(path)
            sync_folder(self.path)
            shutil.rmtree(path, ignore_errors=True)

    def set_aside(self, run_id: str) -> Path:
        """Gives the folder of a run a name under which nothing reads or deletes it, and returns that."""
        path = self._aside(_KEPT_PREFIX, run_id)
        self.run_path(run_id).rename(path)
        sync_folder(self.path)
        return path

    def remove_leftovers(self) -> list[str]:
        """Deletes what a process that was killed was writing or deleting, and returns the names."""
        names = [entry.name for entry in self._entries() if entry.name.startswith((_STAGED_PREFIX, _REMOVED_PREFIX))]
        for name in names:
            shutil.rmtree(self.path / name, ignore_errors=True)
        return names

    def _aside(self, prefix: str, run_id: str) -> Path:
        return self.path / f"{prefix}{run_id}-{uuid.uuid4().hex[:8]}"

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        if self.path.is_dir():
            with os.scandir(self.path) as entries:
                yield from entries


def table_file(run_path: Path, table_name: str) -> Path:
    """The file of a table in the folder of a run."""
    return run_path / f"{table_name}.parquet"


def sync_file(path: Path) -> None:
    """Returns once the content of a file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        if sys.platform == "linux":
            # What is read back afterwards comes from the disk too, where the system follows the advice.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Returns once the names in a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, text: str) -> None:
    """Writes a file of which a reader sees the old content or the new one, and nothing else."""
    aside = path.with_name(f"_{path.name}-{uuid.uuid4().hex[:8]}")
    try:
        aside.write_text(text, encoding="utf-8")
        sync_file(aside)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_HASHED_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
