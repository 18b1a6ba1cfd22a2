"""How much a query becomes when it is planned, as far as its text tells before anything parses it.

The name of a common table expression stands for all of its text, a star for all columns of what it is taken from, and
the name of a table among columns for a structure of all of them. A few of each within each other make millions of
tables or columns of a short text, and DuckDB plans them for hours, in gigabytes, without hearing an interrupt. So each
query in brackets has a weight, in tables that are read and in fifties of columns: what it names counts with its own
weight, and stars multiply columns. It is no measure but a bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from attrs import define, field, frozen

LARGEST_EXPANSION = 600.0
"""Of either. Queries of `docs/sql.md` stay below 110; DuckDB plans what weighs twice as much in seconds."""

COLUMNS_PER_WEIGHT = 50

VIEW_READS: Mapping[str, float] = {
    "V_PHASE_TRAFFIC": 100.0,
    "V_ACK_LAG": 20.0,
    "V_COMPARISON": 20.0,
    "V_INTERVALS": 20.0,
    "V_TRAFFIC": 20.0,
    "V_WINDOWS_1MS": 20.0,
    "V_WINDOWS_5MS": 20.0,
    "V_WINDOWS_100MS": 20.0,
    "V_WINDOWS_1S": 20.0,
    "WINDOWS": 20.0,
}
"""Views and macros of the store that are long queries themselves; others weigh as tables do. Measured: DuckDB plans the
first in about 0.2 s."""

_STAR_COUNTS: Mapping[str, int] = {"SUMMARIZE": 40, "TABLE": 1, "PIVOT": 1, "UNPIVOT": 1, "UNNEST": 1, "COLUMNS": 1}
"""Words that make columns of columns. SUMMARIZE makes twelve of each, and each takes as long as three others."""

_SET_OPERATIONS = frozenset({"UNION", "EXCEPT", "INTERSECT"})
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")

_NO_ALIASES = frozenset(
    {
        "AND",
        "ANTI",
        "AS",
        "ASC",
        "ASOF",
        "BETWEEN",
        "BY",
        "COLLATE",
        "CROSS",
        "DESC",
        "ELSE",
        "END",
        "EXCEPT",
        "FETCH",
        "FILTER",
        "FROM",
        "FULL",
        "GROUP",
        "HAVING",
        "ILIKE",
        "IN",
        "INNER",
        "INTERSECT",
        "IS",
        "JOIN",
        "LEFT",
        "LIKE",
        "LIMIT",
        "NATURAL",
        "NOT",
        "NULLS",
        "OFFSET",
        "ON",
        "OR",
        "ORDER",
        "OUTER",
        "OVER",
        "PIVOT",
        "POSITIONAL",
        "QUALIFY",
        "RIGHT",
        "SAMPLE",
        "SELECT",
        "SEMI",
        "TABLESAMPLE",
        "THEN",
        "UNION",
        "UNPIVOT",
        "USING",
        "WHEN",
        "WHERE",
        "WINDOW",
        "WITH",
    }
)
"""Words that may follow a table, and name nothing."""


@frozen
class Weight:
    """What a query becomes: tables that it reads, and columns of its widest part in fifties."""

    reads: float
    columns: float

    def __add__(self, other: Weight) -> Weight:
        return Weight(self.reads + other.reads, self.columns + other.columns)

    def times(self, count: int) -> Weight:
        """So many of them."""
        return Weight(self.reads * count, self.columns * count)

    def or_more(self, other: Weight) -> Weight:
        """The larger ones of both."""
        return Weight(max(self.reads, other.reads), max(self.columns, other.columns))

    @property
    def largest(self) -> float:
        """The one that matters."""
        return max(self.reads, self.columns)


_NOTHING = Weight(0.0, 0.0)


@define
class _Query:
    """The text of one query in brackets, or of all of them; a part of it is what UNION sets apart."""

    name: str = ""
    """Of the common table expression that it is; empty where it is none."""
    before: str = ""
    """What stands before its bracket."""
    is_query: bool = False
    has_select: bool = False
    comma_count: int = 0
    star_count: int = 0
    words: Counter[str] = field(factory=Counter)
    """How often each name stands there by itself; behind a dot, or before one, it is a column, which is one alone."""
    inner_words: Counter[str] = field(factory=Counter)
    """The same of the queries within, which may name what is outside of them."""
    aliases: dict[str, Weight] = field(factory=dict)
    """Further names of tables and queries, with what those weigh."""
    inner_weight: Weight = _NOTHING
    weight_before: Weight = _NOTHING
    """Of the parts before this one."""

    def weight(self, weights: Mapping[str, Weight]) -> Weight:
        """What it weighs, where tables of these names weigh so much."""
        named = Weight(1.0, 1.0 + self.comma_count / COLUMNS_PER_WEIGHT) + self.inner_weight
        for word, count in self.words.items():
            if word in weights:
                named += weights[word].times(count)
        for alias, weight in self.aliases.items():
            named += weight.times(max(0, self.words[alias] + self.inner_words[alias] - 1))
        return self.weight_before + Weight(named.reads, named.columns * max(1, self.star_count))

    def next_part(self, weights: Mapping[str, Weight]) -> _Query:
        """What stands behind UNION."""
        return _Query(
            name=self.name, before=self.before, is_query=True, weight_before=self.weight(weights), aliases=self.aliases
        )

    def take_in(self, other: _Query) -> None:
        """Counts what stands in brackets that hold no query for its own."""
        self.words += other.words
        self.inner_words += other.inner_words
        self.inner_weight += other.inner_weight
        self.comma_count += other.comma_count
        self.star_count += other.star_count


@define
class Expansion:
    """Takes the tokens of a query one after the other, without spaces and comments."""

    _weights: dict[str, Weight] = field(
        init=False, factory=lambda: {name: Weight(reads, 1.0) for name, reads in VIEW_READS.items()}
    )
    _levels: list[_Query] = field(init=False, factory=lambda: [_Query(is_query=True)])
    _last: str = field(init=False, default="")
    _last_weight: Weight = field(init=False, default=_NOTHING)
    """Of what was just named or closed, and may be given another name."""
    _closed_before: str = field(init=False, default="")
    """What stood before the bracket that was closed last."""
    _given_name: str = field(init=False, default="")
    """The name before AS, as long as nothing but MATERIALIZED follows."""
    _heaviest: Weight = field(init=False, default=_NOTHING)

    @property
    def weight(self) -> float:
        """What the query weighs, as far as it was taken; that of its heaviest part where it is not read to its end."""
        return max([self._heaviest.largest, *(level.weight(self._weights).largest for level in self._levels)])

    def take(self, token: str, *, is_query_word: bool, is_star: bool) -> None:
        """Notes the next token; `is_star` of one that stands for all columns."""
        word = _name(token)
        level = self._levels[-1]
        level.is_query = level.is_query or (is_query_word and self._last == "(")
        if word in _SET_OPERATIONS and level.is_query:
            level = self._levels[-1] = level.next_part(self._weights)
        level.has_select = level.has_select or word == "SELECT"
        level.comma_count += token == ","
        level.star_count += _STAR_COUNTS.get(word, 0) + is_star
        # A query that begins with FROM takes all columns.
        level.star_count += word == "FROM" and not level.has_select and self._last != "DISTINCT"
        if self._last == "." or word == ".":
            self._forget_column(word, level)
        elif token in _OPENING:
            self._open(token, level)
        elif token in _CLOSING and len(self._levels) > 1:
            self._close(level)
        else:
            self._take_name(word, level)
        self._note_given_name(word)
        self._last = word

    def _forget_column(self, word: str, level: _Query) -> None:
        if word == "." and level.words[self._last]:
            level.words[self._last] -= 1
        self._last_weight = self._weights.get(word, _NOTHING)

    def _take_name(self, word: str, level: _Query) -> None:
        level.words[word] += 1
        if word == "AS":
            return
        may_be_alias = word not in _NO_ALIASES and (word[:1].isalpha() or word[:1] == "_")
        if self._last_weight is not _NOTHING and may_be_alias:
            level.aliases[word] = self._last_weight.or_more(level.aliases.get(word, _NOTHING))
        self._last_weight = self._weights.get(word, _NOTHING)

    def _note_given_name(self, word: str) -> None:
        if word == "AS":
            self._given_name = self._closed_before if self._last == ")" else self._last
        elif word not in ("NOT", "MATERIALIZED"):
            self._given_name = ""

    def _open(self, token: str, level: _Query) -> None:
        # Brackets around the brackets of an expression change nothing.
        name = level.name if self._last == "(" and not level.is_query else self._given_name
        self._levels.append(_Query(before=self._last, name=name if token == "(" else ""))
        self._last_weight = _NOTHING

    def _close(self, level: _Query) -> None:
        self._levels.pop()
        self._closed_before = level.before
        self._last_weight = _NOTHING
        outer = self._levels[-1]
        if not level.is_query:
            outer.take_in(level)
            return
        weight = level.weight(self._weights)
        self._heaviest = self._heaviest.or_more(weight)
        outer.inner_words += level.words + level.inner_words
        if level.name:
            # There it got its name, and was not asked for.
            outer.words[level.name] -= 1
            self._weights[level.name] = weight.or_more(self._weights.get(level.name, _NOTHING))
        else:
            outer.inner_weight += weight
            self._last_weight = weight


def _name(token: str) -> str:
    """A name as names are compared; one may stand in quotes of either kind."""
    return token.strip("\"'").upper()
