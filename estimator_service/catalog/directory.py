"""The catalogue as a directory: which entries there are, and each of them when it is asked for."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from linkbound.domain.calibration import Calibration
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.errors import AlreadyExistsError, NotFoundError, Resource
from linkbound.domain.network_parts import Cable, Nic, Switch

if TYPE_CHECKING:
    from linkbound.domain.engine import EngineCalibration

SHIPPED_DIRECTORY = Path(__file__).parent
"""The catalogue that comes with the package."""

LARGEST_NEAR_NAME_COUNT = 3
LARGEST_FILE_BYTES = 16 * 2**20
"""Of a file that was added: several times what is written of the largest config that can be imported."""

_FILE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_Revision = tuple[int, int, int]
"""Inode, time of the last change and size of a file."""

Entry = TypeVar("Entry")
FindDirectory = Callable[[], Path]
"""Names a directory when it is first needed."""


class Collection(Generic[Entry]):
    """The entries of one kind, by id: those that come with the package, and those in a writable directory.

    Shipped files are listed at once and read when first asked for, each once. The other directory is looked at when a
    name is unknown there and when ids are listed, and a file in it is read again when it has changed; a shipped entry
    hides one of the same id. `resource_type` is the kind in words, as errors name it. Safe to share between threads:
    two that ask for the same entry at the same time read equal values.
    """

    def __init__(
        self,
        resource_type: str,
        directory: Path,
        read: Callable[[Path], Entry],
        find_writable: FindDirectory | None = None,
    ) -> None:
        self._resource_type = resource_type
        self._paths = {path.stem: path for path in sorted(directory.glob("*.toml"))}
        self._read = read
        self._entries: dict[str, Entry] = {}
        self._find_writable = find_writable
        self._added: dict[str, tuple[_Revision, Entry]] = {}

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id, sorted. No file is read."""
        directory = self._writable_directory()
        added = () if directory is None else (path.stem for path in directory.glob("[!.]*.toml"))
        return tuple(sorted({*self._paths, *filter(_FILE_ID.fullmatch, added)}))

    def get(self, entry_id: str) -> Entry:
        """The entry `entry_id`. Raises NotFoundError with near names, CatalogError where its file is broken."""
        if entry_id in self._paths:
            if entry_id not in self._entries:
                self._entries[entry_id] = self._read(self._paths[entry_id])
            return self._entries[entry_id]
        added = self._added_entry(entry_id)
        if added is None:
            raise NotFoundError.of(Resource(self._resource_type, entry_id), self._near_names(entry_id))
        return added

    def store(self, entry_id: str, text: str, entry: Entry) -> Entry:
        """Keep `entry`, whose file holds `text`, as `entry_id`; an equal entry that is there already is the answer.

        Raises AlreadyExistsError where the id is taken by another one, FailedPreconditionError (CATALOG_READ_ONLY)
        without a directory that can be written to, ResourceExhaustedError (DISK_FULL).
        """
        # Only an import writes.
        from estimator_service.catalog.files import read_only_error, write_new

        if entry_id not in self._paths:
            directory = self._writable_directory()
            if directory is None:
                raise read_only_error("no directory is set for it")
            if write_new(directory, entry_id, text):
                return entry
        existing = self.get(entry_id)
        if existing != entry:
            raise AlreadyExistsError(
                f"{self._resource_type.replace('_', ' ')} {entry_id!r} exists with other content",
                resource=Resource(self._resource_type, entry_id),
                reason=f"{self._resource_type.upper()}_EXISTS",
                metadata={self._resource_type: entry_id},
            )
        return existing

    def _added_entry(self, entry_id: str) -> Entry | None:
        # An id is a file's name: what is none must not leave the directory.
        directory = self._writable_directory() if _FILE_ID.fullmatch(entry_id) else None
        if directory is None:
            return None
        path = directory / f"{entry_id}.toml"
        try:
            status = path.stat()
        except OSError:
            self._added.pop(entry_id, None)
            return None
        revision = (status.st_ino, status.st_mtime_ns, status.st_size)
        known = self._added.get(entry_id)
        if known is not None and known[0] == revision:
            return known[1]
        _check_file(path, status)
        entry = self._read(path)
        self._added[entry_id] = (revision, entry)
        return entry

    def _writable_directory(self) -> Path | None:
        return None if self._find_writable is None else self._find_writable()

    def _near_names(self, entry_id: str) -> list[str]:
        # Only a request that fails needs it.
        from difflib import get_close_matches

        return get_close_matches(entry_id.casefold(), self.ids, n=LARGEST_NEAR_NAME_COUNT, cutoff=0.5)


def _check_file(path: Path, status: os.stat_result) -> None:
    """Raise CatalogError for what must not be read: nobody may write to the other end of a pipe."""
    from estimator_service.catalog.files import CatalogError

    if not stat.S_ISREG(status.st_mode):
        raise CatalogError(f"{path}: is not a file")
    if status.st_size > LARGEST_FILE_BYTES:
        raise CatalogError(f"{path}: {status.st_size} bytes are above {LARGEST_FILE_BYTES}")


def _read_model(path: Path) -> Model:
    # The parser is loaded when the first file is read, not when the command starts.
    from estimator_service.catalog.model_files import read_model

    return read_model(path)


def _read_hardware(path: Path) -> Hardware:
    from estimator_service.catalog.entries import read_hardware

    return read_hardware(path)


def _read_calibration(path: Path) -> Calibration:
    from estimator_service.catalog.calibration_files import read_calibration

    return read_calibration(path)


def _read_engine_calibration(path: Path, models: Collection[Model]) -> EngineCalibration:
    from estimator_service.catalog.engine_files import read_engine_calibration

    return read_engine_calibration(path, models.get)


def _read_switch(path: Path) -> Switch:
    from estimator_service.catalog.network_parts import read_switch

    return read_switch(path)


def _read_cable(path: Path) -> Cable:
    from estimator_service.catalog.network_parts import read_cable

    return read_cable(path)


def _read_nic(path: Path) -> Nic:
    from estimator_service.catalog.network_parts import read_nic

    return read_nic(path)


class Catalog:
    """The entries of a directory: `models/<id>.toml`, `hardware/<id>.toml`, and so on for each kind.

    `find_writable` names a directory of the same form whose models and calibrations of both kinds count too, and to
    which imports are written; it is asked when it is first needed. None: nothing can be imported.
    """

    def __init__(self, directory: Path, find_writable: FindDirectory | None = None) -> None:
        def writable(kind: str) -> FindDirectory | None:
            return None if find_writable is None else lambda: find_writable() / kind

        self.models = Collection("model", directory / "models", _read_model, writable("models"))
        self.hardware = Collection("hardware", directory / "hardware", _read_hardware)
        self.calibrations = Collection(
            "calibration", directory / "calibrations", _read_calibration, writable("calibrations")
        )
        self.engine_calibrations = Collection(
            "engine_calibration",
            directory / "engine_calibrations",
            lambda path: _read_engine_calibration(path, self.models),
            writable("engine_calibrations"),
        )
        self.switches = Collection("switch", directory / "switches", _read_switch)
        self.cables = Collection("cable", directory / "cables", _read_cable)
        self.nics = Collection("nic", directory / "nics", _read_nic)
