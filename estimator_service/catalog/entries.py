"""One TOML file of the catalogue as a model or as hardware.

The keys are the fields of the domain type; the file's name is the id. A model has a `[structure]` table in place of its
collectives, which are derived from it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from attrs import evolve

from estimator_service.core.inventory import DecoderStructure, collectives_of
from linkbound.domain.catalog import Hardware, Model
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.rules import checked

DENSE_ACTIVE_PARAMETERS = "active_parameters are all but the input embedding, of which a token reads one row."


class CatalogError(Exception):
    """A file of the catalogue cannot be read or breaks a rule. The message names the file and what is wrong."""


def read_model(path: Path) -> Model:
    """The model that a file describes. Raises CatalogError."""
    table = _read(path)
    blocks = table.pop("structure", None)
    if not isinstance(blocks, dict):
        raise CatalogError(f"{path}: has no [structure] table")
    try:
        structure = DecoderStructure(
            hidden_size=table["hidden_size"], vocabulary_size=table["vocabulary_size"], **blocks
        )
        model = checked(Model(model_id=path.stem, collectives=collectives_of(structure), **table))
        return checked(_with_active_parameters(model))
    except KeyError as error:
        raise CatalogError(f"{path}: has no {error}") from error
    except (TypeError, InvalidArgumentError) as error:
        raise CatalogError(f"{path}: {error}") from error


def read_hardware(path: Path) -> Hardware:
    """The hardware that a file describes. Raises CatalogError."""
    table = _read(path)
    try:
        return checked(Hardware(hardware_id=path.stem, **table))
    except (TypeError, InvalidArgumentError) as error:
        raise CatalogError(f"{path}: {error}") from error


def _with_active_parameters(model: Model) -> Model:
    """A dense model uses all its parameters for a token, but one row of its input embedding; an MoE has to say."""
    if model.expert_count or model.total_parameters is None or model.active_parameters is not None:
        return model
    return evolve(
        model,
        active_parameters=model.total_parameters - model.vocabulary_size * model.hidden_size,
        assumptions=(*model.assumptions, DENSE_ACTIVE_PARAMETERS),
    )


def _read(path: Path) -> dict[str, Any]:
    """The table of a file, its lists as tuples; every entry names its sources."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CatalogError(f"{path}: {error}") from error
    if not table.get("sources"):
        raise CatalogError(f"{path}: names no sources")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
