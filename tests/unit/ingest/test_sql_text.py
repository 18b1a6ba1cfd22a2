"""The text of a query before it is parsed: without comments, and no deeper than people write."""

import pytest

from ingest_service.core.sql_text import (
    LARGEST_ARROW_COUNT,
    LARGEST_BRACKET_DEPTH,
    LARGEST_DISTINCT_COUNT,
    LARGEST_NAME_PART_COUNT,
    LARGEST_OPERATOR_LENGTH,
    LARGEST_QUERY_DEPTH,
    LARGEST_REPETITION_COUNT,
    LARGEST_STAR_COUNT,
    prepared_sql,
)
from linkbound.domain.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("sql", "prepared"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT/**/1", "SELECT 1"),
        ("SELECT 1 -- said", "SELECT 1  "),
        ("SELECT 1 --a\r\n+ 2", "SELECT 1  \r\n+ 2"),
        ("SELECT /* a /* b */ c */ 1", "SELECT   1"),
        ("SELECT '/* -- ''' AS a -- '", "SELECT '/* -- ''' AS a  "),
        ('SELECT "/*""" -- "', 'SELECT "/*"""  '),
        ("SELECT E'\\'/*' /* */", "SELECT E'\\'/*'  "),
        ("SELECT e'''/*'--", "SELECT e'''/*' "),
        ("SELECT '\\' /* */", "SELECT '\\'  "),
        ("SELECT 1E'\\'/*'", "SELECT 1E'\\'/*'"),
        ("SELECT nameE'/*\\'", "SELECT nameE'/*\\'"),
        ("SELECT $$ /* $$ /* */", "SELECT $$ /* $$  "),
        ("SELECT $a$ $b$ -- $a$ -- $a$", "SELECT $a$ $b$ -- $a$  "),
        ("SELECT a$b$/*$b$*/", "SELECT a$b$ "),
        ("SELECT $1--", "SELECT $1 "),
        ("SELECT 1+--\n2", "SELECT 1+ \n2"),
        ("SELECT 1*/**/2", "SELECT 1* 2"),
        ("SELECT 'é' -- \U0001f600", "SELECT 'é'  "),
    ],
)
def test_comments_go_and_everything_else_stays(sql: str, prepared: str) -> None:
    assert prepared_sql(sql) == prepared


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("", "is empty"),
        (";;", "is empty"),
        ("a\0b", "character 0"),
        ("SELECT 'a", "not closed"),
        ("SELECT E'a\\'", "not closed"),
        ('SELECT "a', "not closed"),
        ("SELECT $a$ $b$", "not closed"),
        ("/* /* */", "not closed"),
        ("SELECT " + "(" * (LARGEST_BRACKET_DEPTH + 1), "brackets"),
        ("SELECT " + "[{(" * LARGEST_BRACKET_DEPTH, "brackets"),
        ("SELECT " + "(SELECT (1 + " * (LARGEST_QUERY_DEPTH + 1), "queries within each other"),
        ("SELECT * FROM " + "( FROM " * (LARGEST_QUERY_DEPTH + 1), "queries within each other"),
        ("SELECT " + "x -> " * (LARGEST_ARROW_COUNT + 1) + "1", "arrows and lambdas"),
        ("SELECT f(" + "LAMBDA x: " * (LARGEST_ARROW_COUNT + 1) + "1)", "arrows and lambdas"),
        ("SELECT " + ", ".join(["*"] * (LARGEST_STAR_COUNT + 1)), "stars for all columns"),
        ("SELECT " + ", ".join(["a.*"] * (LARGEST_STAR_COUNT + 1)), "stars for all columns"),
        ("SELECT " + ", ".join(["COLUMNS(*)"] * (LARGEST_STAR_COUNT + 1)), "stars for all columns"),
        ("SUMMARIZE SUMMARIZE SUMMARIZE runs", "uses of SUMMARIZE"),
        ("SELECT " + ", ".join(["count(DISTINCT a)"] * (LARGEST_DISTINCT_COUNT + 1)), "uses of DISTINCT"),
        ("SELECT " + "1, " * 10_000 + "1", "words, numbers and signs"),
        ("SELECT 1 " + "+" * (LARGEST_OPERATOR_LENGTH + 1) + " 1", "operator"),
        ("SELECT a" + ".a" * LARGEST_NAME_PART_COUNT, "name"),
        ('SELECT a . "a"' + ' . "a"' * LARGEST_NAME_PART_COUNT, "name"),
        ("SELECT " + "NOT " * (LARGEST_REPETITION_COUNT + 1) + "true", "operators without an operand"),
        ("SELECT " + "- /**/ " * (LARGEST_REPETITION_COUNT + 1) + "1", "operators without an operand"),
    ],
)
def test_what_nobody_writes_is_refused(sql: str, told: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        prepared_sql(sql)
    assert caught.value.reason == "SQL_ERROR"
    assert told in caught.value.message


@pytest.mark.parametrize(
    "sql", ["PRAGMA version", " pragma version", "/**/PRAGMA version", "SELECT 1;\nPragma version"]
)
def test_a_pragma_is_refused_by_its_name(sql: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        prepared_sql(sql)
    assert caught.value.reason == "SQL_NOT_READ_ONLY"


@pytest.mark.parametrize("sql", ["SELECT 'PRAGMA'", "SELECT pragma", "SELECT '; PRAGMA x'", "SELECT 1 -- ; PRAGMA"])
def test_the_word_alone_is_not(sql: str) -> None:
    assert prepared_sql(sql).startswith("SELECT")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(1) + " * 1_000 + "1",
        "SELECT " + "(" * LARGEST_BRACKET_DEPTH + "1" + ")" * LARGEST_BRACKET_DEPTH,
        "SELECT a" + ".a" * (LARGEST_NAME_PART_COUNT - 1),
        "SELECT " + ", ".join(["-1"] * 5_000),
        "SELECT " + ", ".join(["a.b.c"] * 3_000),
        "SELECT " + ", ".join(["count(*)"] * 1_000),
        "SELECT " + " * ".join(["a"] * 1_000),
        "SELECT (SELECT 1) + " * 1 + " + ".join(["(SELECT 1)"] * 500),
        "SELECT )",
    ],
    ids=lambda sql: sql[:20],
)
def test_what_is_long_but_not_deep_is_taken(sql: str) -> None:
    assert prepared_sql(sql) == sql
