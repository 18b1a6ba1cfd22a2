"""The text of a query before anything parses it.

Parsers of SQL take time and memory that no limit of theirs bounds, for texts that no person writes: comments cost some
the square of their number, long operators the cube of their length, deep brackets gigabytes. They are kept from such
texts here. What is executed is the text that this module returns, so where it reads SQL in another way than the parser,
nothing is let through that the parser would not see.
"""

from __future__ import annotations

import re

from attrs import define, field

from ingest_service.core.sql_expansion import LARGEST_EXPANSION, Expansion
from linkbound.domain.errors import InvalidArgumentError, Violation

LARGEST_BRACKET_DEPTH = 30
"""Brackets within brackets; the parser of DuckDB 2.0 needs gigabytes for thousands."""

LARGEST_QUERY_DEPTH = 10
"""Queries within queries. Where each refers to the one around it, the time of planning doubles with each."""

LARGEST_ARROW_COUNT = 12
"""Arrows and lambdas. Within each other they double time and memory of planning: 40 take gigabytes."""

LARGEST_STAR_COUNT = 24
"""Stars for all columns. Each may multiply the columns of a query within, and planning takes their square."""

LARGEST_DISTINCT_COUNT = 100
"""DISTINCT, each of which may be an aggregate with a table of its own: 1,500 of them take a minute for ten rows."""

LARGEST_SUMMARY_COUNT = 2
"""SUMMARIZE, each of which makes many columns of one."""

LARGEST_OPERATOR_LENGTH = 8
"""Characters of one operator; DuckDB has none of more than four."""

LARGEST_NAME_PART_COUNT = 16
"""Parts of a name with dots: a database, a schema, a table, a column and fields in it."""

LARGEST_REPETITION_COUNT = 200
"""Signs or NOT before one operand. None is ever needed; the parser goes deeper with each."""

LARGEST_TOKEN_COUNT = 20_000
"""Words, numbers, signs and texts. DuckDB plans in the square of the number of columns, and nothing interrupts that."""

SQL_ERROR = "SQL_ERROR"
SQL_NOT_READ_ONLY = "SQL_NOT_READ_ONLY"

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<line_comment>--[^\n\r]*)
    | (?P<comment>/\*)
    | (?P<text>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*")
    | (?P<open_text>[eE]?'|")
    | (?P<dollar>\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?\$)
    | (?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)
    | (?P<number>[0-9][0-9_]*)
    | (?P<operator>(?:(?!--|/\*)[-~!@#^&|`?+*/%<>=:])+)
    | (?P<opening>[(\[{])
    | (?P<closing>[)\]}])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUERY_WORDS = frozenset(
    {"SELECT", "FROM", "WITH", "VALUES", "TABLE", "DESCRIBE", "SHOW", "SUMMARIZE", "PIVOT", "UNPIVOT"}
)
_ARROWS = frozenset({"LAMBDA", "->", "->>"})
_BEFORE_STARS = frozenset({"SELECT", "DISTINCT", "ALL", ",", "."})
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def prepared_sql(sql: str) -> str:
    """`sql` without its comments.

    Raises InvalidArgumentError: SQL_ERROR for a text that is empty, that holds the character 0, in which something is
    not closed, or that is deeper than anybody writes; SQL_NOT_READ_ONLY for a PRAGMA, some of which DuckDB 1.5 runs
    while it parses them.
    """
    if "\0" in sql:
        raise sql_error("holds the character 0")
    shape = _Shape()
    kept: list[str] = []
    place = 0
    while place < len(sql):
        match = _TOKEN.match(sql, place)
        if match is None or match.lastgroup is None:
            raise sql_error(f"cannot be read from character {place} on")
        kind, end = match.lastgroup, match.end()
        if kind == "comment":
            end = _end_of_comment(sql, end)
        elif kind == "dollar":
            end = _end_of_dollar_text(sql, match)
        elif kind == "open_text":
            raise sql_error(f"has a quotation mark at character {place} that is not closed")
        if kind in ("comment", "line_comment"):
            # A space in its place: what stood on both sides of it stays apart.
            kept.append(" ")
        else:
            shape.take(kind, sql[place:end])
            kept.append(sql[place:end])
        place = end
    shape.check_expansion()
    if shape.is_empty:
        raise sql_error("is empty; it takes one SELECT")
    return "".join(kept)


def sql_error(description: str, reason: str = SQL_ERROR) -> InvalidArgumentError:
    """The error of a query that cannot be run as it is."""
    return InvalidArgumentError([Violation("sql", description, reason)], reason=reason)


def _end_of_comment(sql: str, place: int) -> int:
    """Where the comment ends whose opening ends at `place`; comments may stand in comments."""
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(sql, place)
        if edge is None:
            raise sql_error("has a comment that is not closed")
        depth += 1 if edge[0] == "/*" else -1
        place = edge.end()
    return place


def _end_of_dollar_text(sql: str, opening: re.Match[str]) -> int:
    end = sql.find(opening[0], opening.end())
    if end < 0:
        raise sql_error(f"has a text {opening[0]}... that is not closed")
    return end + len(opening[0])


@define
class _Shape:
    """How deep the text has become."""

    is_empty: bool = field(init=False, default=True)
    _begins_statement: bool = field(init=False, default=True)
    _token_count: int = field(init=False, default=0)
    _arrow_count: int = field(init=False, default=0)
    _star_count: int = field(init=False, default=0)
    _summary_count: int = field(init=False, default=0)
    _distinct_count: int = field(init=False, default=0)
    _query_brackets: list[bool] = field(init=False, factory=list)
    """Of each open bracket, whether it begins a query."""
    _expansion: Expansion = field(init=False, factory=Expansion)
    _last: str = field(init=False, default="")
    _dot_count: int = field(init=False, default=0)
    _prefix_count: int = field(init=False, default=0)

    def take(self, kind: str, text: str) -> None:
        """Notes the next token. Raises InvalidArgumentError (SQL_ERROR, SQL_NOT_READ_ONLY)."""
        if kind == "space":
            return
        if self._begins_statement and text.upper() == "PRAGMA":
            raise sql_error("is a PRAGMA; it takes one SELECT", SQL_NOT_READ_ONLY)
        self._token_count += 1
        if self._token_count > LARGEST_TOKEN_COUNT:
            raise sql_error(f"has more than {LARGEST_TOKEN_COUNT} words, numbers and signs")
        self._take_costly_words(text)
        self.is_empty = self.is_empty and text == ";"
        self._begins_statement = text == ";"
        self._take_brackets(kind)
        self._take_names(kind, text)
        self._take_prefixes(kind, text)
        self._last = text.upper()
        if kind == "operator" and len(text) > LARGEST_OPERATOR_LENGTH:
            raise sql_error(f"has an operator of {len(text)} characters; at most {LARGEST_OPERATOR_LENGTH} are allowed")

    def _take_brackets(self, kind: str) -> None:
        if kind == "opening":
            self._query_brackets.append(False)
        elif kind == "closing" and self._query_brackets:
            self._query_brackets.pop()
        if len(self._query_brackets) > LARGEST_BRACKET_DEPTH:
            raise sql_error(f"has more than {LARGEST_BRACKET_DEPTH} brackets within each other")

    def check_expansion(self) -> None:
        """Raises InvalidArgumentError (SQL_ERROR) where the whole text becomes too much."""
        weight = self._expansion.weight
        if weight > LARGEST_EXPANSION:
            raise sql_error(
                f"weighs {weight:.4g} when it is planned, and may weigh {LARGEST_EXPANSION:g}: use fewer stars, joins"
                " and names of WITH within each other"
            )

    def _take_costly_words(self, text: str) -> None:
        word = text.upper()
        is_query_word = word in _QUERY_WORDS
        is_star = word == "*" and self._last in _BEFORE_STARS
        self._expansion.take(text, is_query_word=is_query_word, is_star=is_star)
        if self._last == "(" and is_query_word:
            self._query_brackets[-1] = True
        self._arrow_count += word in _ARROWS
        self._star_count += word == "COLUMNS" or is_star
        self._summary_count += word == "SUMMARIZE"
        self._distinct_count += word == "DISTINCT"
        for count, limit, what in (
            (sum(self._query_brackets), LARGEST_QUERY_DEPTH, "queries within each other"),
            (self._arrow_count, LARGEST_ARROW_COUNT, "arrows and lambdas"),
            (self._star_count, LARGEST_STAR_COUNT, "stars for all columns"),
            (self._summary_count, LARGEST_SUMMARY_COUNT, "uses of SUMMARIZE"),
            (self._distinct_count, LARGEST_DISTINCT_COUNT, "uses of DISTINCT"),
        ):
            if count > limit:
                raise sql_error(f"has more than {limit} {what}")

    def _take_names(self, kind: str, text: str) -> None:
        if text == ".":
            self._dot_count += 1
        elif kind not in ("word", "text", "number"):
            self._dot_count = 0
        if self._dot_count >= LARGEST_NAME_PART_COUNT:
            raise sql_error(f"has a name of more than {LARGEST_NAME_PART_COUNT} parts")

    def _take_prefixes(self, kind: str, text: str) -> None:
        is_prefix = kind == "operator" or (kind == "word" and text.upper() == "NOT")
        self._prefix_count = self._prefix_count + 1 if is_prefix else 0
        if self._prefix_count > LARGEST_REPETITION_COUNT:
            raise sql_error(f"has more than {LARGEST_REPETITION_COUNT} operators without an operand between them")
