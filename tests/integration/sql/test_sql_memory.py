"""Queries that want all memory are ended, and the thread that writes never notices."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ingest_service.service import Ingest
from linkbound.domain.errors import DeadlineExceededError, Error, ResourceExhaustedError
from linkbound.domain.records import AppendRequest, TrainingStep
from tests.integration.sql.asking import RUN, filled_store, rows_of

pytestmark = pytest.mark.storage

MEMORY_BYTES = 512 * 2**20
NUMBERS = "(SELECT range AS i FROM range(100000))"
GREEDY = {
    "sort": f"SELECT * FROM {NUMBERS} a, {NUMBERS} b ORDER BY hash(a.i, b.i)",
    "group": f"SELECT a.i, b.i, count(*) FROM {NUMBERS} a, {NUMBERS} b GROUP BY ALL",
    "distinct": f"SELECT count(DISTINCT (a.i, b.i)) FROM {NUMBERS} a, {NUMBERS} b",
    "list": f"SELECT len(list(a.i)) FROM {NUMBERS} a, {NUMBERS} b",
    "text": f"SELECT length(string_agg(a.i::VARCHAR, 'xxxxxxxxxxxxxxxxxxxxxxxx')) FROM {NUMBERS} a, {NUMBERS} b",
    "doubling": (
        "WITH RECURSIVE r(s) AS (SELECT 'xxxxxxxxxxxxxxxx' UNION ALL SELECT s || s FROM r WHERE length(s) < 3000000000)"
        " SELECT max(length(s)) FROM r"
    ),
    "window": f"SELECT sum(a.i) OVER (ORDER BY a.i + b.i) FROM {NUMBERS} a, {NUMBERS} b",
    "quantile": f"SELECT quantile_cont(a.i + b.i, 0.5) FROM {NUMBERS} a, {NUMBERS} b",
}


def append(ingest: Ingest, number: int) -> None:
    records = tuple(
        TrainingStep(subject="load", node_count=2, step_index=index, step_seconds=1.0, source="load.csv")
        for index in range(1_000)
    )
    ingest.append(AppendRequest(run=RUN, writer_id="load", sequence_number=number, records=records)).result()


@pytest.mark.parametrize("kind", GREEDY)
def test_a_query_that_wants_all_memory_is_too_large(tmp_path: Path, kind: str) -> None:
    with filled_store(tmp_path, memory_limit_bytes=MEMORY_BYTES) as ingest:
        with pytest.raises(ResourceExhaustedError) as caught:
            rows_of(ingest, GREEDY[kind], limit_seconds=120.0)
        assert caught.value.reason == "QUERY_TOO_LARGE"
        assert caught.value.retry_delay_seconds is None
        append(ingest, 1)
        assert rows_of(ingest, "SELECT count(*) AS n FROM training_steps WHERE subject = 'load'") == [{"n": 1_000}]
        assert ingest.healthy


def test_writers_go_on_while_greedy_queries_come_and_go(tmp_path: Path) -> None:
    with filled_store(tmp_path, memory_limit_bytes=MEMORY_BYTES) as ingest:
        done = threading.Event()

        def write() -> int:
            number = 0
            while not done.is_set():
                number += 1
                append(ingest, number)
            return number

        def ask(sql: str) -> str:
            try:
                rows_of(ingest, sql, limit_seconds=3.0)
            except (ResourceExhaustedError, DeadlineExceededError) as error:
                return error.reason
            except Error as error:
                return f"{error.reason}: {error.message}"
            return "answered"

        with ThreadPoolExecutor(5) as pool:
            writing = pool.submit(write)
            reasons = set(pool.map(ask, [*GREEDY.values(), *GREEDY.values()]))
            done.set()
            appends = writing.result()
        assert reasons <= {"QUERY_TOO_LARGE", "DEADLINE_EXCEEDED"}
        assert appends > 0
        assert ingest.healthy
        expected = [{"n": 1_000 * appends}]
        assert rows_of(ingest, "SELECT count(*) AS n FROM training_steps WHERE subject = 'load'") == expected


def test_an_ordinary_query_beside_a_greedy_one_is_answered(tmp_path: Path) -> None:
    with filled_store(tmp_path, memory_limit_bytes=MEMORY_BYTES) as ingest, ThreadPoolExecutor(1) as pool:
        ordinary = pool.submit(rows_of, ingest, "SELECT sum(range)::BIGINT AS n FROM range(300000000)")
        with pytest.raises(ResourceExhaustedError):
            rows_of(ingest, GREEDY["list"], limit_seconds=120.0)
        assert ordinary.result() == [{"n": 300_000_000 * 299_999_999 // 2}]
