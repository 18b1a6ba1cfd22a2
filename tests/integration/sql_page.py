"""The examples of docs/sql.md and their answers: `python -m tests.integration.sql_page write` writes the answers anew.

An example is a block of `sql` with the table of its answer below it. The test of the page compares both.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb
from attrs import frozen

from tests.integration.sql_store import build

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"

_EXAMPLE = re.compile(r"^```sql\n(?P<query>.*?)^```\n\n(?P<answer>(?:^\|[^\n]*\n)*)", re.MULTILINE | re.DOTALL)


@frozen
class SqlExample:
    """A query of the page, and the table that is printed below it."""

    query: str
    answer: str


def sql_examples(page: str) -> list[SqlExample]:
    """The examples of a page, in order."""
    return [SqlExample(match["query"], match["answer"]) for match in _EXAMPLE.finditer(page)]


def answer_of(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """What a query yields, as a table of Markdown."""
    result = connection.execute(query)
    return table_of([column[0] for column in result.description or ()], result.fetchall())


def table_of(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as a table of Markdown."""
    lines = [names, ["---"] * len(names), *([_cell(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def refreshed(page: str, connection: duckdb.DuckDBPyConnection) -> str:
    """The page with the answer of each of its examples."""

    def with_answer(match: re.Match[str]) -> str:
        return f"```sql\n{match['query']}```\n\n{answer_of(connection, match['query'])}"

    return _EXAMPLE.sub(with_answer, page)


def main(arguments: Sequence[str]) -> int:
    """Writes the answers; returns the process exit code."""
    if list(arguments) != ["write"]:
        sys.stderr.write("usage: python -m tests.integration.sql_page write\n")
        return 2
    with (
        tempfile.TemporaryDirectory() as folder,
        duckdb.connect(str(build(Path(folder))), read_only=True) as connection,
    ):
        PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8"), connection), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")
    return 0


def _cell(value: object) -> str:
    return "" if value is None else str(value).removesuffix(".0")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
