"""Every pair of converters of `linkbound.convert`, found by name and by type."""

from __future__ import annotations

import importlib
import pkgutil
import typing
from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen
from google.protobuf.message import Message

import linkbound.convert


@frozen
class Pair:
    """Both directions of one type."""

    name: str
    domain: Any
    message: Any
    to_proto: Callable[..., Any]
    from_proto: Callable[[Any], Any]


def all_pairs() -> list[Pair]:
    """Pairs of the modules that hold them; what a module takes from another is not counted again."""
    return sorted(_pairs(), key=lambda pair: pair.name)


def all_converter_names() -> set[str]:
    return {name for _, name, _ in _converters()}


def message_pairs() -> list[Pair]:
    """Pairs that take one value and return one message type."""
    return [p for p in all_pairs() if isinstance(p.message, type) and issubclass(p.message, Message)]


def _pairs() -> Iterator[Pair]:
    found = {name: function for _, name, function in _converters()}
    for module, name, to_proto in _converters():
        stem = name.removesuffix("_to_proto")
        if stem == name:
            continue
        hints = typing.get_type_hints(to_proto, vars(module))
        returned = hints.pop("return")
        yield Pair(stem, next(iter(hints.values())), returned, to_proto, found[f"{stem}_from_proto"])


def _converters() -> Iterator[tuple[Any, str, Any]]:
    for info in pkgutil.iter_modules(linkbound.convert.__path__):
        module = importlib.import_module(f"linkbound.convert.{info.name}")
        for name, function in vars(module).items():
            is_converter = name.endswith(("_to_proto", "_from_proto")) and not name.startswith("_")
            if is_converter and getattr(function, "__module__", None) == module.__name__:
                yield module, name, function
