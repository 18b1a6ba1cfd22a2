"""Switches, cables and adapters of the catalogue: one TOML file each, its keys the fields of the domain type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs

from estimator_service.catalog.files import CatalogError, read_table
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.network_parts import Cable, Nic, NicPortGroup, Pitfall, PortGroup, PortMode, Switch
from linkbound.domain.rules import checked

Part = TypeVar("Part", bound=attrs.AttrsInstance)


def read_switch(path: Path) -> Switch:
    """The switch that a file describes. Raises CatalogError."""
    return _part(path, "switch_id", Switch, {"port_groups": _port_group})


def read_cable(path: Path) -> Cable:
    """The cable that a file describes. Raises CatalogError."""
    return _part(path, "cable_id", Cable, {})


def read_nic(path: Path) -> Nic:
    """The network adapter that a file describes. Raises CatalogError."""
    return _part(path, "nic_id", Nic, {"port_groups": lambda table: NicPortGroup(**_with_tuples(table))})


def _part(
    path: Path, id_field: str, kind: type[Part], nested: Mapping[str, Callable[[dict[str, Any]], object]]
) -> Part:
    table = read_table(path)
    try:
        for key, build in {**nested, "pitfalls": lambda pitfall: Pitfall(**pitfall)}.items():
            table[key] = tuple(map(build, table.get(key, ())))
        return checked(kind(**{id_field: path.stem}, **table))
    except (TypeError, KeyError, InvalidArgumentError) as error:
        raise CatalogError(f"{path}: {error}") from error


def _port_group(table: dict[str, Any]) -> PortGroup:
    modes = tuple(PortMode(**mode) for mode in table["modes"])
    return PortGroup(**{**table, "modes": modes})


def _with_tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
