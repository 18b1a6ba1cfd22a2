"""The rows of a query: whole, in messages of a bounded size, cut at the limit, and ended in time."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pytest

from ingest_service.service import Ingest
from ingest_service.store.arrow_messages import LARGEST_MESSAGE_BYTES, USUAL_MESSAGE_BYTES, ArrowMessages
from ingest_service.store.sql_query import SqlAnswer
from linkbound.domain.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
)
from linkbound.domain.sql import USUAL_ROW_LIMIT, SqlRequest, SqlSummary
from tests.integration.sql.asking import STEPS, filled_store, messages_of, rows_of, table_of

pytestmark = pytest.mark.storage


@pytest.fixture(scope="module")
def ingest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ingest]:
    with filled_store(tmp_path_factory.mktemp("store")) as ingest:
        yield ingest


def read_slowly(answer: SqlAnswer) -> None:
    while answer.next_batch() is not None:
        threading.Event().wait(0.02)


def begin_and_read(answer: SqlAnswer) -> None:
    answer.begin()
    answer.next_batch()


def test_every_row_comes_once(ingest: Ingest) -> None:
    rows = rows_of(ingest, "SELECT step_index, step_seconds FROM training_steps ORDER BY step_index DESC")
    assert rows == [{"step_index": s.step_index, "step_seconds": s.step_seconds} for s in reversed(STEPS)]


def test_many_rows_come_in_messages_of_the_usual_size(ingest: Ingest) -> None:
    schema, batches, summary = messages_of(ingest, "SELECT range AS i, range * 2 AS j FROM range(500000)")
    table = table_of(schema, batches)
    assert summary == SqlSummary(row_count=500_000, truncated=False)
    assert table["i"].to_pylist() == list(range(500_000))
    assert table["j"].to_pylist() == list(range(0, 1_000_000, 2))
    assert max(map(len, batches)) <= 2 * USUAL_MESSAGE_BYTES
    # Not one for each of the pieces that DuckDB works in.
    assert len(batches) <= 10


def test_no_rows_have_a_schema_too(ingest: Ingest) -> None:
    schema, batches, summary = messages_of(ingest, "SELECT run_id, create_time_utc FROM runs WHERE false")
    assert summary == SqlSummary(row_count=0, truncated=False)
    assert batches == []
    assert pa.ipc.read_schema(pa.py_buffer(schema)).names == ["run_id", "create_time_utc"]


@pytest.mark.parametrize(
    ("limit", "count", "truncated"),
    [(1, 1, True), (99, 99, True), (100, 100, False), (101, 100, False), (0, 100, False)],
)
def test_rows_are_cut_at_the_limit(ingest: Ingest, limit: int, count: int, truncated: bool) -> None:  # noqa: FBT001
    schema, batches, summary = messages_of(ingest, "SELECT * FROM training_steps", row_limit=limit)
    assert summary == SqlSummary(row_count=count, truncated=truncated)
    assert table_of(schema, batches).num_rows == count


def test_the_usual_limit_holds_where_none_is_asked_for(ingest: Ingest) -> None:
    with ingest.query_sql(SqlRequest(sql="SELECT 1 FROM range(100000000000)"), 60.0) as answer:
        answer.begin()
        while answer.next_batch() is not None:
            pass
        assert answer.summary == SqlSummary(row_count=USUAL_ROW_LIMIT, truncated=True)


def test_wide_rows_come_in_messages_that_every_client_takes(ingest: Ingest) -> None:
    text = "x" * 50_000
    schema, batches, summary = messages_of(ingest, f"SELECT '{text}' || range AS t FROM range(1000)")
    table = table_of(schema, batches)
    assert summary.row_count == 1000
    assert table["t"].to_pylist() == [f"{text}{index}" for index in range(1000)]
    assert max(map(len, batches)) <= LARGEST_MESSAGE_BYTES


def test_rows_of_uneven_width_are_split_where_it_is_needed(ingest: Ingest) -> None:
    text = "y" * 90_000
    wide = f"string_agg('{text}', '')"
    sql = f"SELECT i, CASE WHEN i % 500 = 0 THEN (SELECT {wide} FROM range(30)) END AS t FROM range(2000) AS r(i)"
    schema, batches, _ = messages_of(ingest, sql)
    table = table_of(schema, batches)
    assert table["i"].to_pylist() == list(range(2000))
    assert [value is not None for value in table["t"].to_pylist()] == [index % 500 == 0 for index in range(2000)]
    assert max(map(len, batches)) <= LARGEST_MESSAGE_BYTES


def test_a_row_that_fits_into_no_message_is_told(ingest: Ingest) -> None:
    text = "z" * 90_000
    with pytest.raises(ResourceExhaustedError, match="a row takes") as caught:
        messages_of(ingest, f"SELECT string_agg('{text}', '') FROM range(50)")
    assert caught.value.reason == "QUERY_TOO_LARGE"
    assert caught.value.retry_delay_seconds is None


def test_columns_that_fit_into_no_message_are_told() -> None:
    schema = pa.schema([(f"column_{index}", pa.int32()) for index in range(100_000)])
    with pytest.raises(ResourceExhaustedError, match="columns take") as caught:
        ArrowMessages(schema)
    assert caught.value.reason == "QUERY_TOO_LARGE"


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT 'b'::ENUM ('a', 'b') AS v", "b"),
        ("SELECT ['b'::ENUM ('a', 'b'), NULL] AS v", ["b", None]),
        ("SELECT {'k': ['b'::ENUM ('a', 'b')]} AS v", {"k": ["b"]}),
        ("SELECT MAP {'b'::ENUM ('a', 'b'): 'a'::ENUM ('a', 'b')} AS v", [("b", "a")]),
        ("SELECT [1, 2]::INTEGER[2] AS v", [1, 2]),
        ("SELECT 170141183460469231731687303715884105727::HUGEINT AS v", None),
        ("SELECT 'a'::BLOB AS v", b"a"),
        ("SELECT NULL AS v", None),
        ("SELECT INTERVAL 1 DAY AS v", None),
        ("SELECT uuid() AS v", None),
        ("SELECT TIMESTAMPTZ '2026-01-01 00:00:00+00' AS v", None),
        ("SELECT '101'::BIT AS v", None),
        ("SELECT 'nan'::DOUBLE AS v", None),
        ("SELECT union_value(a := 1) AS v", None),
    ],
)
def test_types_of_every_kind_stand_alone_in_their_message(ingest: Ingest, sql: str, value: object) -> None:
    schema, batches, _ = messages_of(ingest, sql)
    table = table_of(schema, batches)
    assert table.num_rows == 1
    if value is not None:
        assert table["v"].to_pylist() == [value]


def test_messages_of_slices_hold_the_slice_alone() -> None:
    batch = pa.record_batch({"t": ["a" * 100] * 100_000})
    messages = ArrowMessages(batch.schema)
    [small] = messages.of(iter([batch.slice(10, 3)]))
    assert len(small) < 2_000
    sizes = [len(message) for message in messages.of(iter([batch]))]
    assert max(sizes) <= LARGEST_MESSAGE_BYTES
    assert sum(sizes) < 1.2 * batch.nbytes


def test_a_query_that_runs_for_ever_ends_at_its_limit(ingest: Ingest) -> None:
    with pytest.raises(DeadlineExceededError):
        rows_of(ingest, "SELECT count(*) FROM range(10000000000000)", limit_seconds=0.2)
    with pytest.raises(DeadlineExceededError):
        rows_of(ingest, "SELECT count(*) FROM training_steps a, training_steps b, range(1000000000)", limit_seconds=0.2)
    endless = "WITH RECURSIVE more AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM more) SELECT max(i) FROM more"
    with pytest.raises(DeadlineExceededError):
        rows_of(ingest, endless, limit_seconds=0.2)
    assert rows_of(ingest, "SELECT 1 AS one") == [{"one": 1}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT regexp_matches(string_agg('a', ''), '(a|aa)+$b') AS v FROM range(2000000)",
        "SELECT regexp_matches(string_agg('a', ''), '(a*)*(a*)*(a*)*b') AS v FROM range(200000)",
        "SELECT count(*) > 0 AS v FROM range(1000000) WHERE regexp_matches('aaaaaaaaaaaaaaaaaaaaaaaa', '(x+x+)+y')",
    ],
)
def test_no_pattern_takes_long(ingest: Ingest, sql: str) -> None:
    # RE2 has no backtracking; the limit would end a query that took minutes.
    assert rows_of(ingest, sql, limit_seconds=30.0) == [{"v": False}]


def test_a_pattern_that_would_grow_is_refused(ingest: Ingest) -> None:
    with pytest.raises(InvalidArgumentError):
        rows_of(ingest, "SELECT regexp_matches('a', '((a{1000}){1000}){1000}')")


def test_a_deadline_holds_between_two_rows_too(ingest: Ingest) -> None:
    with ingest.query_sql(SqlRequest(sql="SELECT * FROM range(1000000000)", row_limit=10**9), 0.3) as answer:
        answer.begin()
        with pytest.raises(DeadlineExceededError):
            read_slowly(answer)


def test_a_cancelled_query_ends(ingest: Ingest) -> None:
    with ingest.query_sql(SqlRequest(sql="SELECT count(*) FROM range(10000000000000)"), None) as answer:
        threading.Timer(0.2, answer.cancel).start()
        with pytest.raises(CancelledError):
            answer.begin()


def test_one_that_is_cancelled_before_it_begins_does_too(ingest: Ingest) -> None:
    with ingest.query_sql(SqlRequest(sql="SELECT count(*) FROM range(10000000000000)"), None) as answer:
        answer.cancel()
        with pytest.raises(CancelledError):
            begin_and_read(answer)


def test_closing_waits_for_nothing_but_the_query(ingest: Ingest) -> None:
    answer = ingest.query_sql(SqlRequest(sql="SELECT * FROM range(1000000000)", row_limit=10**9), None)
    answer.begin()
    answer.next_batch()
    answer.close()
    answer.close()
    with pytest.raises(CancelledError):
        answer.next_batch()
    answer.cancel()


def test_reads_that_stand_still_do_not_keep_others_waiting(ingest: Ingest) -> None:
    request = SqlRequest(sql="SELECT * FROM range(1000000000)", row_limit=10**9)
    with ingest.query_sql(request, None) as one, ingest.query_sql(request, None) as other:
        one.begin()
        other.begin()
        assert one.next_batch() is not None
        assert rows_of(ingest, "SELECT count(*) AS steps FROM training_steps") == [{"steps": 100}]
        assert other.next_batch() is not None


def test_a_query_sees_what_was_committed_when_it_began(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest:
        sql = "SELECT run_id FROM runs, range(100000) ORDER BY 1"
        with ingest.query_sql(SqlRequest(sql=sql), None) as answer:
            schema, batches = answer.begin(), []
            ingest.delete_run("study-109g")
            while (batch := answer.next_batch()) is not None:
                batches.append(batch)
        assert table_of(schema, batches).num_rows == 100_000
        assert rows_of(ingest, "SELECT * FROM runs") == []


def test_closing_the_store_ends_what_runs(tmp_path: Path) -> None:
    with filled_store(tmp_path) as ingest:
        answer = ingest.query_sql(SqlRequest(sql="SELECT count(*) FROM range(10000000000000)"), None)
        failures: list[BaseException] = []

        def ask() -> None:
            with answer:
                try:
                    answer.begin()
                except BaseException as error:
                    failures.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
    thread.join()
    assert [type(failure) for failure in failures] == [CancelledError]
    with pytest.raises(UnavailableError):
        ingest.query_sql(SqlRequest(sql="SELECT 1"), None)
