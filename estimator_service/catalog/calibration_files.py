"""Calibrations of the catalogue: one TOML file each, with measured points, payload in bytes and time in seconds.

The fit is made when a file is read, so that a file of an older version gains what the fit has learned since.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from estimator_service.catalog.files import CatalogError
from estimator_service.catalog.toml_text import toml_text
from estimator_service.core.collective_time import fit
from linkbound.domain.calibration import (
    Calibration,
    CollectivePoint,
    CollectiveTable,
    CollectiveTiming,
    FitCalibrationRequest,
)
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import InvalidArgumentError


def read_calibration(path: Path) -> Calibration:
    """The fit of the times that a file holds. Raises CatalogError."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        sources = tuple(table.pop("sources", ()))
        request = FitCalibrationRequest(table=_table_of(table), sources=sources)
        return fit(request.table, path.stem, request.sources)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, InvalidArgumentError) as error:
        raise CatalogError(f"{path}: {error}") from error
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise CatalogError(f"{path}: {type(error).__name__}: {error}") from error


def calibration_text(calibration: Calibration) -> str:
    """The file of a calibration, as `read_calibration` reads it."""
    table = calibration.table
    return toml_text(
        {
            "kind": table.kind.name,
            "rank_count": table.rank_count,
            "ranks_per_node": table.ranks_per_node,
            "timing": table.timing.name,
            "points": [[point.message_bytes, float(point.seconds)] for point in table.points],
            "sources": list(calibration.sources),
        }
    )


def _table_of(table: dict[str, Any]) -> CollectiveTable:
    points = tuple(CollectivePoint(message_bytes=size, seconds=seconds) for size, seconds in table.pop("points"))
    kind, timing = CollectiveKind[table.pop("kind")], CollectiveTiming[table.pop("timing", "UNSPECIFIED")]
    return CollectiveTable(kind=kind, timing=timing, points=points, **table)
