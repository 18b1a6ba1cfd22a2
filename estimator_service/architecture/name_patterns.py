"""Names with wildcards, and expressions for names, matched in bounded time whatever the pattern.

A pattern becomes an automaton that is followed on all of its ways at once, so that nothing is tried twice. What an
expression uses beyond literals, dots, stars, digits and groups of words is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import field, frozen

_TOKEN = re.compile(r"\((?:\?:)?([\w|.\\-]*)\)|\\d\+|\[0-9\]\+|\.\*|\\(.)|([\w/-])|(\.)|([\^$])")
_ANY = ""
"""On an edge: any character."""
_DIGIT = "0-9"


@frozen
class Pattern:
    """An automaton over the characters of a name. States are bits of a number; the last one ends a match.

    `edges` of each state: what they take, and where they lead. `skips` are the states that are entered with each.
    """

    edges: tuple[tuple[tuple[str, int], ...], ...]
    skips: tuple[int, ...]
    _steps: dict[tuple[int, str], int] = field(factory=dict, eq=False, repr=False)
    _ends: dict[tuple[int, str], bool] = field(factory=dict, eq=False, repr=False)

    @property
    def start(self) -> int:
        """The states before the first character."""
        return self.skips[0]

    def matches(self, name: str) -> bool:
        """Whether the pattern matches all of `name`."""
        return self.matches_from(self.start, name)

    def matches_from(self, states: int, name: str) -> bool:
        """Whether the rest of the pattern, from `states`, matches all of `name`."""
        key = (states, name)
        known = self._ends.get(key)
        if known is None:
            known = self._ends[key] = bool(self.after(states, name) >> len(self.edges) - 1)
        return known

    def after(self, states: int, text: str) -> int:
        """The states that `text` leads to."""
        for character in text:
            if not states:
                break
            key = (states, character)
            known = self._steps.get(key)
            states = self._step(key) if known is None else known
        return states

    def _step(self, key: tuple[int, str]) -> int:
        states, character = key
        reached = 0
        for state, edges in enumerate(self.edges):
            if states >> state & 1:
                for taken, target in edges:
                    if taken in (_ANY, character) or (taken == _DIGIT and character.isdecimal()):
                        reached |= self.skips[target]
        self._steps[key] = reached
        return reached


class _Builder:
    """Puts a pattern together from the left; `_end` is the state that the next part starts from."""

    def __init__(self) -> None:
        self._edges: list[list[tuple[str, int]]] = [[]]
        self._skips: list[int] = [1]
        self._end = 0

    def _new_state(self) -> int:
        self._edges.append([])
        self._skips.append(1 << len(self._skips))
        return len(self._edges) - 1

    def add_any_text(self) -> None:
        if (_ANY, self._end) not in self._edges[self._end]:
            self._edges[self._end].append((_ANY, self._end))

    def add_one(self, taken: str) -> None:
        target = self._new_state()
        self._edges[self._end].append((taken, target))
        self._end = target

    def add_digits(self) -> None:
        self.add_one(_DIGIT)
        self._edges[self._end].append((_DIGIT, self._end))

    def add_words(self, words: list[str]) -> None:
        first, lasts = self._end, []
        for word in words:
            self._end = first
            for character in word:
                self.add_one(character)
            lasts.append(self._end)
        self._end = self._new_state()
        for last in lasts:
            self._skips[last] |= 1 << self._end

    def build(self) -> Pattern:
        # A skip may lead to a state that skips on; those come later, so that one pass from the back closes all.
        for state in reversed(range(len(self._skips))):
            for other in _bits(self._skips[state]):
                self._skips[state] |= self._skips[other]
        return Pattern(edges=tuple(map(tuple, self._edges)), skips=tuple(self._skips))


def _bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def compile_glob(text: str) -> Pattern:
    """A name in which `*` is any text."""
    builder = _Builder()
    for character in text:
        if character == "*":
            builder.add_any_text()
        else:
            builder.add_one(character)
    # A match ends in a state of its own, which text after the last star does not leave.
    builder.add_words([""])
    return builder.build()


def compile_expression(text: str) -> Pattern | None:
    """An expression that matches from the start of a name; None where it uses more than is understood."""
    builder = _Builder()
    position = 0
    ends_open = True
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            return None
        piece, position = found.group(), found.end()
        if found.group(1) is not None:
            builder.add_words([word.replace("\\", "") for word in found.group(1).split("|")])
        elif piece == ".*":
            builder.add_any_text()
        elif piece in ("\\d+", "[0-9]+"):
            builder.add_digits()
        elif found.group(2) is not None:
            builder.add_one(found.group(2))
        elif found.group(3) is not None:
            builder.add_one(piece)
        elif found.group(4) is not None:
            builder.add_one(_ANY)
        else:
            ends_open = ends_open and piece != "$"
    if ends_open:
        builder.add_any_text()
    builder.add_words([""])
    return builder.build()
