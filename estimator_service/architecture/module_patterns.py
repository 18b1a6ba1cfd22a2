"""Lists of module names as quantisers write them: exact names, prefixes, names with wildcards, expressions.

Whether a list holds a name is decided in time that does not grow with the list: names are looked up, and the few
patterns are followed once for each way in which the number of a layer enters them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from attrs import field, frozen

from estimator_service.architecture.name_patterns import Pattern, compile_expression, compile_glob

_EXPRESSION_MARK = "re:"
_LONGEST_PATTERN = 256
LARGEST_PATTERN_COUNT = 32
"""Patterns with wildcards in one list, those of single layers by what they say of the layer; published lists have under
ten."""

_LAYER = re.compile(r"(?:^|\.)layers\.(\d{1,6})(?=$|[.*])(?:\.)?")
_BEFORE_LAYERS = ("model.layers.", "model.language_model.layers.", "language_model.model.layers.", "backbone.layers.")
"""What stands before the number of a layer in the names of checkpoints."""


@frozen
class LayerNames:
    """What a list says of one layer: names within it, starts of names, and which of the `inner_patterns` hold there."""

    names: frozenset[str] = frozenset()
    starts: frozenset[str] = frozenset()
    pattern_bits: int = 0

    def holds(self, name: str) -> bool:
        """Whether `name`, within the layer, is meant by a name or a start, or what it is part of."""
        if not self.names.isdisjoint(_wholes_of(name)):
            return True
        return bool(self.starts) and any(name[:end] in self.starts for end in range(len(name) + 1))


def _wholes_of(name: str) -> list[str]:
    """Everything, then each thing that `name` is part of, then `name`."""
    parts = name.split(".")
    return ["", *(".".join(parts[:end]) for end in range(1, len(parts) + 1))]


@frozen(kw_only=True)
class ModuleList:
    """Names of modules. Those of one layer are kept by its number, the rest as patterns for every layer.

    A name stands for everything below it, and for a name that ends in it. `not_understood` patterns match nothing.
    """

    by_layer: dict[int, LayerNames] = field(factory=dict)
    names: frozenset[str] = field(factory=frozenset)
    patterns: tuple[Pattern, ...] = field(factory=tuple)
    inner_patterns: tuple[tuple[Pattern, ...], ...] = field(factory=tuple)
    not_understood: tuple[str, ...] = field(factory=tuple)
    _of_layers: dict[int | None, tuple[tuple[Pattern, int], ...]] = field(factory=dict, eq=False, repr=False)
    _inner_bits: dict[str, int] = field(factory=dict, eq=False, repr=False)
    _named: dict[tuple[str, ...], bool] = field(factory=dict, eq=False, repr=False)
    _matched: dict[tuple[tuple[tuple[int, int], ...], tuple[str, ...]], bool] = field(
        factory=dict, eq=False, repr=False
    )

    def holds(self, layer: int | None, names: Sequence[str]) -> bool:
        """Whether one of `names`, of the module in `layer`, is in the list; `layer` None: it belongs to none."""
        own = None if layer is None else self.by_layer.get(layer)
        if own is not None and any(own.holds(name) or own.pattern_bits & self._bits_of(name) for name in names):
            return True
        key = tuple(names)
        if self.names:
            if key not in self._named:
                self._named[key] = any(_parts_in(self.names, name) for name in names)
            if self._named[key]:
                return True
        return bool(self.patterns) and self._matches(layer, key)

    def _bits_of(self, name: str) -> int:
        """Which of the patterns within a layer match `name`."""
        if name not in self._inner_bits:
            matched = [any(pattern.matches(name) for pattern in both) for both in self.inner_patterns]
            self._inner_bits[name] = sum(1 << index for index, each in enumerate(matched) if each)
        return self._inner_bits[name]

    def _matches(self, layer: int | None, names: tuple[str, ...]) -> bool:
        if layer not in self._of_layers:
            self._of_layers[layer] = tuple(self._entries(layer))
        entries = self._of_layers[layer]
        # Layers whose numbers lead every pattern to the same states are alike.
        key = tuple((id(pattern), states) for pattern, states in entries), names
        if key not in self._matched:
            self._matched[key] = any(
                pattern.matches_from(states, name) for pattern, states in entries for name in names
            )
        return self._matched[key]

    def _entries(self, layer: int | None) -> Iterable[tuple[Pattern, int]]:
        """Each pattern with the states that what stands before a name within `layer` leads to."""
        befores = ("", "model.") if layer is None else tuple(f"{before}{layer}." for before in _BEFORE_LAYERS)
        for pattern in self.patterns:
            for states in dict.fromkeys(pattern.after(pattern.start, before) for before in befores):
                if states:
                    yield pattern, states


def module_list(entries: Iterable[object]) -> ModuleList:
    """The list in `entries`; what is no text is left out."""
    by_layer: dict[int, dict[str, None]] = {}
    names: set[str] = set()
    globs: dict[str, None] = {}
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
            globs[entry] = None
        else:
            names.add(entry)
    patterns: dict[str, tuple[Pattern, ...]] = {}
    left_open: dict[str, None] = {}
    for text in globs:
        _add(text, text, patterns, left_open)
    for text in expressions:
        _add(f"{_EXPRESSION_MARK}{text}", text, patterns, left_open)
    own_patterns: dict[str, tuple[Pattern, ...]] = {}
    of_layers = {number: _of_layer(rests, own_patterns, left_open) for number, rests in by_layer.items()}
    return ModuleList(
        by_layer=of_layers,
        names=frozenset(names),
        patterns=tuple(pattern for both in patterns.values() for pattern in both),
        inner_patterns=tuple(own_patterns.values()),
        not_understood=tuple(left_open),
    )


def _of_layer(rests: Iterable[str], patterns: dict[str, tuple[Pattern, ...]], left_open: dict[str, None]) -> LayerNames:
    """What the entries of a list say after the number of a layer."""
    names: set[str] = set()
    starts: set[str] = set()
    bits = 0
    for rest in rests:
        if "*" not in rest:
            names.add(rest)
        elif "*" not in rest[:-1]:
            starts.add(rest[:-1].removesuffix("."))
        else:
            _add(rest, rest, patterns, left_open)
            bits |= 1 << list(patterns).index(rest) if rest in patterns else 0
    return LayerNames(frozenset(names), frozenset(starts), bits)


def _add(entry: str, text: str, patterns: dict[str, tuple[Pattern, ...]], left_open: dict[str, None]) -> None:
    """Compile `entry` into `patterns`, once; what is too long, too much or not understood is left open."""
    if entry in patterns or entry in left_open:
        return
    compiled: tuple[Pattern, ...] | None = None
    if len(text) <= _LONGEST_PATTERN and len(patterns) < LARGEST_PATTERN_COUNT:
        compiled = _compiled(text, is_expression=entry.startswith(_EXPRESSION_MARK))
    if compiled is None:
        left_open[entry] = None
    else:
        patterns[entry] = compiled


def _compiled(text: str, *, is_expression: bool) -> tuple[Pattern, ...] | None:
    if is_expression:
        expression = compile_expression(text)
        return None if expression is None else (expression,)
    # A name stands for everything below it.
    return (compile_glob(text),) if text.endswith("*") else (compile_glob(text), compile_glob(f"{text}.*"))


def _parts_in(names: frozenset[str], name: str) -> bool:
    """Whether `name`, a part of it up to a dot, or a last part of it is in `names`."""
    parts = name.split(".")
    return any(
        ".".join(parts[start:end]) in names for start in range(len(parts)) for end in range(start + 1, len(parts) + 1)
    )
