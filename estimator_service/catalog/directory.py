"""The catalogue as a directory: which entries there are, and each of them when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.errors import NotFoundError, Resource

SHIPPED_DIRECTORY = Path(__file__).parent
"""The catalogue that comes with the package."""

LARGEST_NEAR_NAME_COUNT = 3

Entry = TypeVar("Entry")


class Collection(Generic[Entry]):
    """The entries of one kind, by id. Files are listed at once and read when first asked for, each once.

    `resource_type` is the kind in words, as errors name it. Safe to share between threads: two that ask for the same
    entry at the same time read equal values.
    """

    def __init__(self, resource_type: str, directory: Path, read: Callable[[Path], Entry]) -> None:
        self._resource_type = resource_type
        self._paths = {path.stem: path for path in sorted(directory.glob("*.toml"))}
        self._read = read
        self._entries: dict[str, Entry] = {}

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id, sorted. No file is read."""
        return tuple(sorted(self._paths))

    def get(self, entry_id: str) -> Entry:
        """The entry `entry_id`. Raises NotFoundError with near names, CatalogError where its file is broken."""
        if entry_id not in self._paths:
            raise NotFoundError.of(Resource(self._resource_type, entry_id), self._near_names(entry_id))
        if entry_id not in self._entries:
            self._entries[entry_id] = self._read(self._paths[entry_id])
        return self._entries[entry_id]

    def _near_names(self, entry_id: str) -> list[str]:
        # Only a request that fails needs it.
        from difflib import get_close_matches

        return get_close_matches(entry_id.casefold(), self.ids, n=LARGEST_NEAR_NAME_COUNT, cutoff=0.5)


def _read_model(path: Path) -> Model:
    # The parser is loaded when the first file is read, not when the command starts.
    from estimator_service.catalog.entries import read_model

    return read_model(path)


def _read_hardware(path: Path) -> Hardware:
    from estimator_service.catalog.entries import read_hardware

    return read_hardware(path)


class Catalog:
    """The models and the hardware of a directory: `models/<id>.toml` and `hardware/<id>.toml`."""

    def __init__(self, directory: Path) -> None:
        self.models = Collection("model", directory / "models", _read_model)
        self.hardware = Collection("hardware", directory / "hardware", _read_hardware)
