"""Comments are what DuckDB takes for comments, and nothing else of a query is lost or gained."""

import re

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_service.core.sql_text import prepared_sql
from linkbound.domain.errors import InvalidArgumentError

pytestmark = pytest.mark.storage

PARTS = (
    "SELECT", "e", "E", "1", "1E", "a$", "$a", "$", "$$", "$a$", "'", "''", "\\", '"', '""', "--", "-", "/*", "*/", "/",
    "*", "\n", "\r", " ", "+", "(", ")", "é", ".", ";", ",", "::", "x'", "b",
)  # fmt: skip


def kinds_of_tokens(sql: str) -> list[str]:
    """The names, texts and numbers that DuckDB finds.

    Without comments, which 1.5 leaves out anyway, and without operators: right before a comment it cuts some of them in
    another way.
    """
    kinds = (str(kind) for _, kind in duckdb.tokenize(sql))
    return [kind for kind in kinds if not re.search("comment|operator|keyword", kind)]


@given(st.lists(st.sampled_from(PARTS), max_size=25).map("".join))
def test_what_is_left_is_what_duckdb_reads(text: str) -> None:
    try:
        prepared = prepared_sql(text)
    except InvalidArgumentError:
        return
    assert kinds_of_tokens(prepared) == kinds_of_tokens(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        assert prepared_sql(text).strip()
    except InvalidArgumentError as error:
        assert [violation.field for violation in error.field_violations] == ["sql"]
