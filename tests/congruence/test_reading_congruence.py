"""SQL, snapshots and watches through every ingest client: equal answers and equal errors."""

from collections.abc import Callable

import pytest
from attrs import evolve

from linkbound import RunChange, TrainingStep
from tests.congruence.callers import Call, Caller, Failure, call
from tests.congruence.conftest import KINDS

STEPS = [
    TrainingStep(subject="6 nodes", node_count=6, step_index=index, step_seconds=1 + index / 10, source="train.csv")
    for index in range(30)
]
QUERIES = [
    call("query_sql", "SELECT step_index, step_seconds FROM training_steps ORDER BY step_index"),
    call("query_sql", "SELECT step_index FROM training_steps ORDER BY ALL", row_limit=30),
    call("query_sql", "SELECT subject::ENUM ('6 nodes') AS subject, count(*) AS n FROM training_steps GROUP BY ALL"),
    call("query_sql", "SELECT * FROM runs WHERE false"),
    call("query_sql", "SELECT range AS i FROM range(300000)"),
    call("query_sql", "DESCRIBE counter_samples"),
    call("query_sql", "SELECT * FROM read_csv('/etc/passwd')"),
    call("query_sql", "COMMIT; DELETE FROM hot.runs"),
    call("query_sql", "SELECT nextval('hot.series_ids')"),
    call("query_sql", "SELECT no_such_column FROM runs"),
    call("query_sql", "SELECT error('said')"),
    call("query_sql", ""),
    call("query_sql", "SELECT 1", row_limit=-1),
    call("query_sql", "x" * 100_001),
    call("query_sql", "SELECT 1", timeout_seconds=-1),
]
FAILING = 9


def append(run: str) -> Call:
    return call("append", run, writer_id="bench", sequence_number=1, records=STEPS)


def watching(count: int, **keywords: object) -> Call:
    return evolve(call("watch_runs", **keywords), taken_count=count)


LIFE = [
    watching(1),
    call("create_run", "a"),
    append("a"),
    watching(2),
    watching(1, start_revision=1),
    watching(1, start_revision=2),
    watching(2, run="runs/a"),
    watching(1, run="b"),
    call("publish_snapshot"),
    call("create_run", "b"),
    call("seal_run", "a"),
    call("delete_run", "b"),
    watching(2, start_revision=1),
    watching(1, start_revision=99),
    watching(1, start_revision=-1),
    watching(1, run="../b"),
    call("publish_snapshot", timeout_seconds=60),
]


@pytest.mark.parametrize("kind", KINDS)
def test_queries_are_answered_the_same(ingest_caller: Callable[[str], Caller], kind: str) -> None:
    here, there = ingest_caller("blocking-local"), ingest_caller(kind)
    for step in (call("create_run", "a"), append("a")):
        assert there.ask(step) == here.ask(step)
    answers = [here.ask(query) for query in QUERIES]
    for query, answer in zip(QUERIES, answers, strict=True):
        assert (query, there.ask(query)) == (query, answer)
    assert [isinstance(answer, Failure) for answer in answers].count(True) == FAILING


@pytest.mark.parametrize("kind", KINDS)
def test_changes_are_told_the_same(ingest_caller: Callable[[str], Caller], kind: str) -> None:
    here, there = ingest_caller("blocking-local"), ingest_caller(kind)
    answers = [here.ask(asked) for asked in LIFE]
    for asked, answer in zip(LIFE, answers, strict=True):
        assert (asked, there.ask(asked)) == (asked, answer)
    changes = {update.change for answer in answers if isinstance(answer, list) for update in answer}
    assert changes == set(RunChange) - {RunChange.UNKNOWN}
    assert sum(isinstance(answer, Failure) for answer in answers) == 3
