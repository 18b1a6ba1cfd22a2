"""Lists of module names as quantisers write them: exact names, prefixes, names with wildcards, expressions.

A name is matched in time linear in its length and that of the pattern, whatever the pattern: expressions are not run by
an engine that can back up. What an expression uses beyond literals, dots, stars, digits and groups of words is not
understood, and the list says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from attrs import field, frozen

_EXPRESSION_MARK = "re:"
_LONGEST_PATTERN = 256
LARGEST_PATTERN_COUNT = 64
"""Patterns with wildcards in one list, those of single layers apart; published lists have under ten."""

_LAYER = re.compile(r"(?:^|\.)layers\.(\d{1,6})(?=$|[.*])(?:\.)?")
_TOKEN = re.compile(r"\((?:\?:)?([\w|.\\-]*)\)|\\d\+|\[0-9\]\+|\.\*|\\(.)|([\w/-])|(\.)|([\^$])")


@frozen
class _Any:
    """Any text."""


@frozen
class _AnyCharacter:
    """One character."""


@frozen
class _Digits:
    """At least one digit."""


@frozen
class _Words:
    """One of several words."""

    words: tuple[str, ...]


_Token = _Any | _AnyCharacter | _Digits | _Words


@frozen
class Pattern:
    """One pattern: tokens that a whole name matches."""

    tokens: tuple[_Token, ...]

    def matches(self, name: str) -> bool:
        """Whether the pattern matches all of `name`."""
        positions = {0}
        for token in self.tokens:
            positions = _advance(token, positions, name)
            if not positions:
                return False
        return len(name) in positions


def _advance(token: _Token, positions: set[int], name: str) -> set[int]:
    match token:
        case _Any():
            return set(range(min(positions), len(name) + 1))
        case _AnyCharacter():
            return {p + 1 for p in positions if p < len(name)}
        case _Words(words):
            return {p + len(word) for p in positions for word in words if name.startswith(word, p)}
        case _Digits():
            ends: set[int] = set()
            for p in positions:
                end = p
                while end < len(name) and name[end].isdigit():
                    end += 1
                    ends.add(end)
            return ends


def compile_glob(text: str) -> Pattern:
    """A name in which `*` is any text."""
    tokens: list[_Token] = []
    for index, part in enumerate(text.split("*")):
        if index and not (tokens and isinstance(tokens[-1], _Any)):
            tokens.append(_Any())
        if part:
            tokens.append(_Words((part,)))
    return Pattern(tuple(tokens))


def compile_expression(text: str) -> Pattern | None:
    """An expression that matches from the start of a name; None where it uses more than is understood."""
    tokens: list[_Token] = []
    position = 0
    ends_open = True
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            return None
        piece, position = found.group(), found.end()
        if found.group(1) is not None:
            tokens.append(_Words(tuple(word.replace("\\", "") for word in found.group(1).split("|"))))
        elif piece == ".*":
            tokens.append(_Any())
        elif piece in ("\\d+", "[0-9]+"):
            tokens.append(_Digits())
        elif found.group(2) is not None:
            tokens.append(_Words((found.group(2),)))
        elif found.group(3) is not None:
            tokens.append(_Words((piece,)))
        elif found.group(4) is not None:
            tokens.append(_AnyCharacter())
        else:
            ends_open = ends_open and piece != "$"
    return Pattern((*tokens, _Any()) if ends_open else tuple(tokens))


@frozen(kw_only=True)
class ModuleList:
    """Names of modules. Those of one layer are kept by its number, the rest as patterns for every layer.

    A name stands for everything below it, and for a name that ends in it. `not_understood` patterns match nothing.
    """

    by_layer: dict[int, tuple[str, ...]] = field(factory=dict)
    names: frozenset[str] = field(factory=frozenset)
    patterns: tuple[Pattern, ...] = field(factory=tuple)
    layer_patterns: tuple[Pattern, ...] = field(factory=tuple)
    not_understood: tuple[str, ...] = field(factory=tuple)
    _matched: dict[tuple[int | None, tuple[str, ...]], bool] = field(factory=dict, eq=False, repr=False)

    def holds(self, layer: int | None, names: Sequence[str]) -> bool:
        """Whether one of `names`, of the module in `layer`, is in the list; `layer` None: it belongs to none."""
        if layer is not None and any(_below(entry, name) for entry in self.by_layer.get(layer, ()) for name in names):
            return True
        # What no layer's number decides is the same in every layer, and decided once.
        key = (None if layer is None else layer if self.layer_patterns else 0, tuple(names))
        if key not in self._matched:
            self._matched[key] = self._holds_anywhere(layer, names)
        return self._matched[key]

    def _holds_anywhere(self, layer: int | None, names: Sequence[str]) -> bool:
        if any(_parts_in(self.names, name) for name in names):
            return True
        before = "model." if layer is None else f"model.layers.{layer}."
        full = [before + name for name in names] + (list(names) if layer is None else [])
        return any(pattern.matches(name) for pattern in (*self.patterns, *self.layer_patterns) for name in full)


def module_list(entries: Iterable[object]) -> ModuleList:
    """The list in `entries`; what is no text is left out."""
    by_layer: dict[int, dict[str, None]] = {}
    names: set[str] = set()
    globs: dict[str, bool] = {}
    expressions: dict[str, None] = {}
    for entry in entries:
        if not isinstance(entry, str) or not entry:
            continue
        if entry.startswith(_EXPRESSION_MARK):
            expressions[entry.removeprefix(_EXPRESSION_MARK)] = None
            continue
        layer = _LAYER.search(entry)
        if layer is not None and "*" not in entry[: layer.start()]:
            by_layer.setdefault(int(layer.group(1)), {})[entry[layer.end() :]] = None
        elif "*" in entry:
            globs[entry] = "layers" in entry
        else:
            names.add(entry)
    patterns, layer_patterns, open_entries = _compiled(globs, expressions)
    return ModuleList(
        by_layer={number: tuple(rest) for number, rest in by_layer.items()},
        names=frozenset(names),
        patterns=patterns,
        layer_patterns=layer_patterns,
        not_understood=open_entries,
    )


def _compiled(
    globs: dict[str, bool], expressions: dict[str, None]
) -> tuple[tuple[Pattern, ...], tuple[Pattern, ...], tuple[str, ...]]:
    patterns: list[Pattern] = []
    layer_patterns: list[Pattern] = []
    left_open: list[str] = []
    for text, names_layers in globs.items():
        if len(text) > _LONGEST_PATTERN or len(patterns) + len(layer_patterns) >= LARGEST_PATTERN_COUNT:
            left_open.append(text)
            continue
        wanted = layer_patterns if names_layers else patterns
        wanted.append(compile_glob(text))
        if not text.endswith("*"):
            wanted.append(compile_glob(f"{text}.*"))
    for text in expressions:
        short = len(text) <= _LONGEST_PATTERN and len(patterns) + len(layer_patterns) < LARGEST_PATTERN_COUNT
        compiled = compile_expression(text) if short else None
        if compiled is None:
            left_open.append(f"{_EXPRESSION_MARK}{text}")
        else:
            (layer_patterns if "layers" in text else patterns).append(compiled)
    return tuple(patterns), tuple(layer_patterns), tuple(left_open)


def _below(entry: str, name: str) -> bool:
    """Whether `entry`, what a list says after the layer's number, stands for `name`: itself, or what it is part of."""
    if entry in ("", "*"):
        return True
    if entry.endswith("*"):
        return "*" not in entry[:-1] and name.startswith(entry[:-1].removesuffix("."))
    return name == entry or name.startswith(f"{entry}.")


def _parts_in(names: frozenset[str], name: str) -> bool:
    """Whether `name`, a part of it up to a dot, or a last part of it is in `names`."""
    if not names:
        return False
    parts = name.split(".")
    return any(
        ".".join(parts[start:end]) in names for start in range(len(parts)) for end in range(start + 1, len(parts) + 1)
    )
