"""A file of the catalogue as a model, and a model that was read from a config as a file.

The file holds the reduced facts of an architecture, from which the model is derived each time it is read, and what no
config says: the name, the sources, and figures that a source states otherwise than they are derived.
"""

from __future__ import annotations

from pathlib import Path

from attrs import evolve, field, frozen

from estimator_service.architecture.facts import Architecture, Reading
from estimator_service.architecture.model import model_of
from estimator_service.catalog.files import CatalogError, read_table
from estimator_service.catalog.toml_text import toml_text
from linkbound.domain.catalog import Model, WeightFormatSource
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.rules import checked
from linkbound.importers.tables import TableError, from_table, to_table


@frozen(kw_only=True)
class ModelFile:
    """What a file says. `active_parameters` and `weight_bits_per_parameter` are those that a source states itself."""

    display_name: str
    active_parameters: int | None = None
    weight_bits_per_parameter: float | None = None
    unused_keys: tuple[str, ...] = field(default=())
    assumptions: tuple[str, ...] = field(default=())
    undetermined: tuple[str, ...] = field(default=())
    sources: tuple[str, ...] = field(default=())
    architecture: Architecture


def read_model(path: Path) -> Model:
    """The model that a file describes. Raises CatalogError."""
    table = read_table(path)
    try:
        return model_in(from_table(ModelFile, table), path.stem)
    except (TableError, InvalidArgumentError) as error:
        raise CatalogError(f"{path}: {error}") from error


def model_in(content: ModelFile, model_id: str) -> Model:
    """The model that a file describes. Raises InvalidArgumentError where it breaks a rule."""
    reading = Reading(
        architecture=checked(content.architecture),
        unused_keys=content.unused_keys,
        assumptions=content.assumptions,
        undetermined=content.undetermined,
    )
    model = model_of(reading, model_id=model_id, display_name=content.display_name, sources=content.sources)
    stated = {
        name: value
        for name in ("active_parameters", "weight_bits_per_parameter")
        if (value := getattr(content, name)) is not None
    }
    if "weight_bits_per_parameter" in stated:
        stated["weight_format_source"] = WeightFormatSource.STATED
    return checked(evolve(model, **stated)) if stated else model


def model_file_of(
    reading: Reading,
    *,
    display_name: str,
    sources: tuple[str, ...],
    weight_bits_per_parameter: float | None = None,
) -> ModelFile:
    """What a file says of an architecture that was read from a config, and of bits that somebody stated."""
    return ModelFile(
        display_name=display_name,
        weight_bits_per_parameter=weight_bits_per_parameter,
        unused_keys=reading.unused_keys,
        assumptions=reading.assumptions,
        undetermined=reading.undetermined,
        sources=sources,
        architecture=reading.architecture,
    )


def model_text(content: ModelFile) -> str:
    """The text of a file."""
    return toml_text(to_table(content))
