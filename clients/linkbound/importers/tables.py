"""Attrs values as plain tables and back, by the types of the fields: what files of the catalogue and of users hold.

A field that has its default is left out. Where a field takes one of several classes, the table names it under `type`.
"""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

import attrs

Value = TypeVar("Value", bound=attrs.AttrsInstance)

_TYPE_KEY = "type"
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class TableError(Exception):
    """A table does not fit the type that it should become. The message names the place and what is wrong."""


def to_table(value: attrs.AttrsInstance) -> dict[str, Any]:
    """`value` as a table."""
    table = {}
    for attribute in attrs.fields(type(value)):
        content = getattr(value, attribute.name)
        default = attribute.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # attrs types Factory as a function
            default = default.factory()
        if content is None or content == default:
            continue
        table[attribute.name] = _plain(content, _types_of(type(value))[attribute.name])
    return table


def from_table(kind: type[Value], table: Mapping[str, Any], place: str = "") -> Value:
    """A `kind` from its table. Raises TableError; the rules of the fields are not checked."""
    if not isinstance(table, Mapping):
        raise TableError(f"{place or kind.__name__}: is not a table")
    types_of_fields = _types_of(kind)
    values = {}
    for name, content in table.items():
        if name not in types_of_fields:
            raise TableError(f"{place}{name}: is not a key of it")
        values[name] = _typed(content, types_of_fields[name], f"{place}{name}")
    missing = [a.name for a in attrs.fields(kind) if a.default is attrs.NOTHING and a.name not in values]
    if missing:
        raise TableError(f"{place}{missing[0]}: is missing")
    return kind(**values)


def type_name(kind: type) -> str:
    """What a table calls a class: `latent_attention` for LatentAttention."""
    return _WORD_START.sub("_", kind.__name__).lower()


def _plain(content: Any, kind: Any) -> Any:
    if isinstance(content, Enum):
        return content.value
    if isinstance(content, tuple):
        (item,) = {a for a in typing.get_args(kind) if a is not Ellipsis}
        return [_plain(entry, item) for entry in content]
    if attrs.has(type(content)):
        table = to_table(content)
        named = len(_classes(kind)) > 1
        return {_TYPE_KEY: type_name(type(content)), **table} if named else table
    return content


def _typed(content: Any, kind: Any, place: str) -> Any:
    if typing.get_origin(kind) is tuple:
        item = typing.get_args(kind)[0]
        if not isinstance(content, list | tuple):
            raise TableError(f"{place}: is not an array")
        return tuple(_typed(entry, item, f"{place}[{index}]") for index, entry in enumerate(content))
    classes = _classes(kind)
    if len(classes) > 1:
        return _one_of(content, classes, place)
    if classes:
        return from_table(classes[0], content, f"{place}.")
    (plain,) = [a for a in _alternatives(kind) if a is not type(None)]
    if isinstance(plain, type) and issubclass(plain, Enum):
        try:
            return plain(content)
        except ValueError as error:
            raise TableError(f"{place}: {error}") from error
    if plain is float and isinstance(content, int) and not isinstance(content, bool):
        return float(content)
    if type(content) is not plain:
        raise TableError(f"{place}: is not of the type {plain.__name__}")
    return content


def _one_of(content: Any, classes: list[type[Any]], place: str) -> Any:
    by_name = {type_name(each): each for each in classes}
    name = content.get(_TYPE_KEY) if isinstance(content, Mapping) else None
    if not isinstance(name, str) or name not in by_name:
        raise TableError(f"{place}.{_TYPE_KEY}: is not one of {', '.join(by_name)}")
    rest = {key: value for key, value in content.items() if key != _TYPE_KEY}
    return from_table(by_name[name], rest, f"{place}.")


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)


def _classes(kind: Any) -> list[type[Any]]:
    return [a for a in _alternatives(kind) if isinstance(a, type) and attrs.has(a)]


@functools.cache
def _types_of(kind: type) -> Mapping[str, Any]:
    hints = typing.get_type_hints(kind)
    return {attribute.name: hints[attribute.name] for attribute in attrs.fields(kind)}
