"""One TOML file of the catalogue as hardware: its keys are the fields of the domain type, its name is the id."""

from __future__ import annotations

from pathlib import Path

from estimator_service.catalog.files import CatalogError, read_table
from linkbound.domain.catalog import Hardware
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.rules import checked


def read_hardware(path: Path) -> Hardware:
    """The hardware that a file describes. Raises CatalogError."""
    table = read_table(path)
    try:
        return checked(Hardware(hardware_id=path.stem, **table))
    except (TypeError, InvalidArgumentError) as error:
        raise CatalogError(f"{path}: {error}") from error
