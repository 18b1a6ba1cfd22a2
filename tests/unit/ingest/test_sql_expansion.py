"""What a query becomes when it is planned: what people write is light, and what multiplies is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from ingest_service.core import sql_expansion, sql_text
from ingest_service.core.sql_expansion import LARGEST_EXPANSION
from ingest_service.core.sql_text import prepared_sql
from linkbound.domain.errors import InvalidArgumentError

DOCS = Path(__file__).parents[3] / "docs"


Weigh = Callable[[str], float]


@pytest.fixture
def weight_of(monkeypatch: pytest.MonkeyPatch) -> Weigh:
    """What a query weighs, as the refusal of it says."""
    monkeypatch.setattr(sql_text, "LARGEST_EXPANSION", 0)

    def weigh(sql: str) -> float:
        with pytest.raises(InvalidArgumentError) as caught:
            prepared_sql(sql)
        found = re.search(r"weighs (\S+) when it is planned", caught.value.message)
        assert found is not None, caught.value.message
        return float(found[1])

    return weigh


def chain(step: str, count: int, end: str = "SELECT count(*) FROM c{last}") -> str:
    """Common table expressions, each of which is `step` of the one before."""
    steps = "".join(f", c{i} AS ({step.format(before=f'c{i - 1}')})" for i in range(1, count + 1))
    return f"WITH c0 AS (SELECT 1 AS a){steps} {end.format(last=count)}"


DOUBLING = [
    "SELECT *, * FROM {before}",
    "SELECT COLUMNS(*), COLUMNS(*) FROM {before}",
    "FROM {before} AS x, {before} AS y",
    "FROM {before} x, {before} y",
    "FROM {before} POSITIONAL JOIN {before}",
    'SELECT * FROM "{before}" NATURAL JOIN {before}',
    "SELECT t AS a, t AS b FROM {before} AS t",
    "SELECT t AS a, t AS b FROM {before} t",
    "SELECT t AS a, t AS b FROM (SELECT {before} AS q FROM {before}) AS t",
    "SELECT {{'a': t, 'b': t}} AS a FROM {before} t",
    "SELECT unnest(t), unnest(t) FROM {before} AS t",
    "(SELECT 1 FROM {before} JOIN {before} USING (a))",
    "((SELECT 1 FROM {before} JOIN {before} USING (a)))",
    "SELECT 1 FROM {before} UNION ALL SELECT 1 FROM {before}",
    "SELECT (SELECT t), (SELECT t) FROM {before} AS t",
]


@pytest.mark.parametrize("step", DOUBLING)
def test_what_doubles_with_each_step_is_refused_before_it_takes_long(step: str, weight_of: Weigh) -> None:
    weights = [weight_of(chain(step, count)) for count in range(1, 12)]
    assert all(later >= 1.9 * earlier for earlier, later in pairwise(weights[2:]))
    assert weights[-1] > LARGEST_EXPANSION


@pytest.mark.parametrize(
    "head", ["AS", "AS MATERIALIZED", "AS NOT MATERIALIZED", "(a) AS", "(a, b) AS NOT MATERIALIZED"]
)
def test_a_name_is_found_however_it_is_given(head: str, weight_of: Weigh) -> None:
    text = "WITH "
    text += ", ".join(f"c{i} {head} (SELECT 1 FROM c{i - 1}, c{i - 1})" for i in range(1, 12))
    assert weight_of(f"{text} SELECT 1 FROM C11") > LARGEST_EXPANSION


@pytest.mark.parametrize("depth", range(2, 9))
def test_queries_within_each_other_multiply_too(depth: int, weight_of: Weigh) -> None:
    assert weight_of("SELECT *, *, * FROM (" * depth + "SELECT 1" + ")" * depth) > 3**depth
    names = "SELECT t AS a, t AS b, t AS c FROM ("
    assert weight_of(names * depth + "SELECT 1" + ") AS t" * depth) > 3**depth


def test_the_error_says_what_to_do() -> None:
    with pytest.raises(InvalidArgumentError, match="and may weigh 600: use fewer stars, joins") as caught:
        prepared_sql(chain("FROM {before} AS x, {before} AS y", 12))
    assert caught.value.reason == "SQL_ERROR"


@pytest.mark.parametrize(
    "sql",
    [
        chain("SELECT * FROM {before}", 20),
        chain("SELECT x.a, x.b, x.c, y.a FROM {before} AS x JOIN runs AS y ON x.a = y.a", 20),
        "SELECT " + ", ".join(f"t.a{i}" for i in range(500)) + " FROM v_requests AS t",
        "SELECT count(*), sum(a) FROM " + " JOIN ".join(f"requests r{i} USING (run_id)" for i in range(40)),
        " UNION ALL ".join(["SELECT * FROM requests"] * 20),
        "SELECT a IS DISTINCT FROM b FROM runs",
        "SUMMARIZE v_phase_traffic",
        "SELECT * FROM (SUMMARIZE (SELECT *, unnest([1, 2]) FROM v_phase_traffic))",
        "SELECT extract(year FROM create_time_utc), trim(BOTH FROM source) FROM runs",
        "SELECT * FROM " + " JOIN ".join(f"v_traffic t{i} USING (run_id)" for i in range(8)),
        "WITH p AS (FROM v_phase_traffic), q AS (FROM p WHERE node = 'a') SELECT * FROM q JOIN p USING (run_id)",
    ],
)
def test_what_people_write_is_light(sql: str, weight_of: Weigh) -> None:
    assert weight_of(sql) < LARGEST_EXPANSION


def test_worked_queries_are_far_from_the_limit(weight_of: Weigh) -> None:
    queries = re.findall(r"```sql\n(.*?)```", (DOCS / "sql.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(queries) >= 10
    assert max(map(weight_of, queries)) < 110


def test_views_of_the_store_have_the_names_that_they_are_weighed_by() -> None:
    documented = re.findall(r"^## (\w+)", (DOCS / "schema.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(sql_expansion.VIEW_READS) <= {name.upper() for name in documented}
