"""The questions of docs/sql.md are answered as printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ingest_service.store.public_views import PUBLIC_TABLES
from tests.integration.sql_page import PAGE, SqlExample, answer_of, sql_examples
from tests.integration.sql_store import build

EXAMPLES = sql_examples(PAGE.read_text(encoding="utf-8"))
QUESTIONS = (
    "peaks",
    "prompt token",
    "first token, by test and round",
    "idle before",
    "arrive at the other",
    "two runs compare",
    "bandwidth would explain",
    "behind its writers",
    "pace of decode",
    "slowest",
)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    path = build(tmp_path_factory.mktemp("sql"))
    with duckdb.connect(str(path), read_only=True) as opened:
        yield opened


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: str(EXAMPLES.index(example) + 1))
def test_a_query_answers_what_is_shown(example: SqlExample, connection: duckdb.DuckDBPyConnection) -> None:
    answer = answer_of(connection, example.query)
    assert answer == example.answer
    assert answer.count("\n") > 2, "an example has rows"


def test_every_query_of_the_page_is_run_and_answers_a_heading() -> None:
    page = PAGE.read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    assert len(EXAMPLES) == page.count("```sql") == len(headings) >= 10
    assert [word for word in QUESTIONS if not any(word in heading for heading in headings)] == []


def test_the_store_of_the_page_has_the_same_content_whenever_it_is_built(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    with duckdb.connect(str(build(tmp_path)), read_only=True) as again:
        for table in PUBLIC_TABLES:
            query = f"SELECT count(*), bit_xor(hash(COLUMNS(*))) FROM {table}"
            assert again.execute(query).fetchall() == connection.execute(query).fetchall(), table
