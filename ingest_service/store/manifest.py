"""`manifest.json` of a sealed run: what its files hold, for people and for whoever checks them without the store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from attrs import frozen

from ingest_service.store.sealed_folder import MANIFEST_NAME, write_durably


@frozen(kw_only=True)
class TimeRange:
    """Least and greatest value of the column that tells when; text where the column holds instants in UTC."""

    column: str
    least: int | str
    greatest: int | str


@frozen(kw_only=True)
class SealedFile:
    """A table's rows of a run in a file."""

    table: str
    row_count: int
    size_bytes: int
    sha256: str
    time_range: TimeRange | None = None


@frozen(kw_only=True)
class Manifest:
    """The files of a sealed run. A table without rows has none, and stands in `empty_tables`."""

    run_id: str
    seal_time: datetime
    schema_version: int
    linkbound_version: str
    files: tuple[SealedFile, ...]
    empty_tables: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        """Size of the files."""
        return sum(file.size_bytes for file in self.files)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest into the folder of its run."""
    content = {**attrs.asdict(manifest), "seal_time": manifest.seal_time.isoformat()}
    write_durably(folder / MANIFEST_NAME, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """The manifest in the folder of a run. Raises OSError, and ValueError where it is none."""
    content = json.loads((folder / MANIFEST_NAME).read_text(encoding="utf-8"))
    try:
        return Manifest(
            **{
                **content,
                "seal_time": datetime.fromisoformat(content["seal_time"]),
                "files": tuple(map(_file, content["files"])),
                "empty_tables": _texts(content["empty_tables"]),
            }
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"is no manifest: {error}") from error


def _file(content: Mapping[str, Any]) -> SealedFile:
    time_range = content["time_range"]
    return SealedFile(**{**content, "time_range": None if time_range is None else TimeRange(**time_range)})


def _texts(content: Sequence[str]) -> tuple[str, ...]:
    return tuple(content)
