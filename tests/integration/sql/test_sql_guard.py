"""SQL of others can change nothing, and read nothing but the store: every way around it is refused in words."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ingest_service.core.sql_text import LARGEST_BRACKET_DEPTH
from ingest_service.service import Ingest
from ingest_service.store.sql_guard import REFUSED_FUNCTIONS, TABLE_FUNCTIONS
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.sql import LARGEST_SQL_BYTES, SqlRequest
from tests.integration.sql.asking import RUN, STEP_COUNT, filled_store, messages_of, rows_of

pytestmark = pytest.mark.storage

NOT_READ_ONLY = "SQL_NOT_READ_ONLY"
SQL_ERROR = "SQL_ERROR"
WORKED_EXAMPLES = Path(__file__).parents[3] / "docs" / "sql.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def ingest(folder: Path) -> Iterator[Ingest]:
    with filled_store(folder) as ingest:
        (folder / "outside.csv").write_text("secret\n1\n", encoding="utf-8")
        (folder / "sealed").mkdir(exist_ok=True)
        yield ingest


def refusal(ingest: Ingest, sql: str) -> InvalidArgumentError:
    with pytest.raises(InvalidArgumentError) as caught:
        messages_of(ingest, sql)
    assert {violation.field for violation in caught.value.field_violations} == {"sql"}
    return caught.value


def is_as_before(ingest: Ingest, folder: Path) -> bool:
    """Whether the store still has what it had, takes more, and nothing appeared beside it."""
    [counted] = rows_of(ingest, f"SELECT count(*) AS steps FROM training_steps WHERE run_id = '{RUN}'")
    names = {path.name for path in folder.iterdir()} - {"linkbound.duckdb", "linkbound.duckdb.wal"}
    return ingest.healthy and counted == {"steps": STEP_COUNT} and names == {"outside.csv", "sealed"}


WRITES = [
    "INSERT INTO hot.runs SELECT * FROM hot.runs",
    "UPDATE hot.runs SET state = 'SEALED'",
    "DELETE FROM hot.training_steps",
    "TRUNCATE hot.training_steps",
    "MERGE INTO hot.runs USING hot.runs AS other ON false WHEN MATCHED THEN DELETE",
    "CREATE TABLE taken (a INTEGER)",
    "CREATE TEMP TABLE taken AS SELECT 1",
    "CREATE OR REPLACE TEMP VIEW runs AS SELECT 1",
    "CREATE MACRO taken() AS 1",
    "CREATE TEMP MACRO taken() AS 1",
    "CREATE SEQUENCE taken",
    "CREATE SECRET (TYPE s3)",
    "DROP TABLE hot.runs",
    "ALTER TABLE hot.runs ADD COLUMN taken INTEGER",
    "COMMENT ON TABLE hot.runs IS 'taken'",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "CHECKPOINT",
    "FORCE CHECKPOINT",
    "VACUUM",
    "ANALYZE",
    "USE system",
    "DETACH linkbound",
    "SET threads = 1",
    "RESET threads",
    "SET VARIABLE taken = 1",
    "SET lock_configuration = false",
    "CALL checkpoint()",
    "CALL pragma_version()",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "EXPLAIN ANALYZE DELETE FROM hot.training_steps",
    "PREPARE taken AS SELECT 1",
    "EXECUTE taken",
    "DEALLOCATE taken",
    "ATTACH ':memory:' AS taken",
    "INSTALL httpfs",
    "FORCE INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '/tmp/taken.duckdb_extension'",
    "UPDATE EXTENSIONS",
    "PRAGMA database_list",
    "PRAGMA table_info('hot.runs')",
    "pragma version",
    "  -- said\n pRaGmA enable_profiling",
    "PRAGMA json_execute_serialized_sql('x')",
    "SELECT 1; PRAGMA version",
    "; PRAGMA version",
    "COMMIT; INSERT INTO hot.runs SELECT * FROM hot.runs",
    "COMMIT; SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT 1; DELETE FROM hot.training_steps",
    "SELECT 1 /* ; */; /* */ DELETE FROM hot.training_steps",
    "WITH gone AS (SELECT 1) DELETE FROM hot.training_steps",
]


@pytest.mark.parametrize("sql", WRITES)
def test_only_a_single_select_runs(ingest: Ingest, folder: Path, sql: str) -> None:
    assert refusal(ingest, sql).reason == NOT_READ_ONLY
    assert is_as_before(ingest, folder)


def test_a_cte_cannot_write(ingest: Ingest, folder: Path) -> None:
    # DuckDB 1.5 does not parse it, 2.0 does.
    sql = "WITH taken AS (INSERT INTO hot.runs SELECT * FROM hot.runs RETURNING run_id) SELECT * FROM taken"
    assert refusal(ingest, sql).reason in (NOT_READ_ONLY, SQL_ERROR)
    assert is_as_before(ingest, folder)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{folder}/outside.csv')",
        "SELECT * FROM read_csv_auto('{folder}/outside.csv')",
        "SELECT * FROM '{folder}/outside.csv'",
        'SELECT * FROM "{folder}/outside.csv"',
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/etc/passwd')",
        "SELECT * FROM read_json('/etc/passwd')",
        "SELECT * FROM read_csv('/dev/stdin')",
        "SELECT * FROM read_text('https://example.invalid/')",
        "SELECT * FROM read_duckdb('{folder}/linkbound.duckdb')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM glob('{folder}/sealed/../*')",
        "SELECT * FROM parquet_metadata('/etc/passwd')",
        "SELECT * FROM read_parquet('{folder}/outside.csv')",
        "SELECT * FROM read_parquet('{folder}/sealed/../outside.csv')",
        "SELECT * FROM read_csv('{folder}/sealed/../outside.csv')",
        "SELECT * FROM query('SELECT * FROM read_csv(''{folder}/outside.csv'')')",
        "SELECT * FROM query_table('{folder}/outside.csv')",
        "SELECT (SELECT content FROM read_text('/etc/passwd'))",
        "WITH taken AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM taken",
        "SELECT * FROM runs WHERE EXISTS (FROM read_text('/etc/passwd'))",
        "DESCRIBE SELECT * FROM read_csv('{folder}/outside.csv')",
        "SUMMARIZE SELECT * FROM read_csv('{folder}/outside.csv')",
        "COPY hot.runs TO '{folder}/taken.csv'",
        "COPY hot.runs TO '{folder}/sealed/taken.parquet'",
        "COPY hot.runs TO '{folder}/sealed/../taken.csv'",
        "COPY (SELECT 1) TO '/dev/stdout'",
        "COPY hot.runs FROM '{folder}/outside.csv'",
        "ATTACH '{folder}/taken.duckdb'",
        "ATTACH '{folder}/sealed/taken.duckdb'",
        "EXPORT DATABASE '{folder}/taken'",
        "IMPORT DATABASE '{folder}/taken'",
    ],
)
def test_no_file_outside_is_read_and_none_is_written(ingest: Ingest, folder: Path, sql: str) -> None:
    assert refusal(ingest, sql.format(folder=folder)).reason == NOT_READ_ONLY
    assert is_as_before(ingest, folder)
    assert list((folder / "sealed").iterdir()) == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nextval('hot.series_ids')",
        "SELECT NextVal('hot.series_ids')",
        "SELECT \"nextval\"('hot.series_ids')",
        "SELECT main.nextval('hot.series_ids')",
        "SELECT system.main.nextval('hot.series_ids')",
        "SELECT 'hot.series_ids'.nextval()",
        "SELECT run_id FROM runs ORDER BY nextval('hot.series_ids')",
        "SELECT run_id FROM runs LIMIT nextval('hot.series_ids')",
        "SELECT list_transform([1], lambda x: nextval('hot.series_ids'))",
        "SELECT sum(1) OVER (ORDER BY nextval('hot.series_ids')) FROM runs",
        "SELECT setseed(0.5)",
        "SELECT write_log('said')",
        "SELECT sleep_ms(60000)",
        "SELECT * FROM checkpoint()",
        "SELECT * FROM force_checkpoint()",
        "SELECT * FROM enable_logging()",
        "SELECT * FROM disable_logging()",
        "SELECT * FROM truncate_duckdb_logs()",
        "SELECT * FROM enable_profiling()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM which_secret('s3://a', 's3')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_databases()",
        "SELECT * FROM duckdb_extensions()",
        "SELECT * FROM arrow_scan(NULL, NULL, NULL)",
        "SELECT * FROM arrow_scan_dumb(NULL, NULL, NULL)",
        "SELECT * FROM pandas_scan(NULL)",
        "SELECT * FROM python_map_function((SELECT 1))",
        "SELECT * FROM seq_scan('hot.runs')",
        "SELECT * FROM json_execute_serialized_sql('x')",
        "SELECT * FROM histogram_values(training_steps, node_count, bin_count := 1000000000)",
        "SELECT * FROM histogram(training_steps, node_count, bin_count := 1000000000) TABLESAMPLE 10%",
        "SELECT * FROM checkpoint() TABLESAMPLE 10%",
        "SELECT * FROM query('SELECT * FROM checkpoint()')",
        "SELECT length(repeat('x', 4000000000))",
        "SELECT * FROM repeat('x', 4000000000)",
        "SELECT length(lpad('x', 2000000000, 'y'))",
        "SELECT length(rpad('x', 2000000000, 'y'))",
        "SELECT len(range(1000000000))",
        "SELECT unnest(generate_series(1, 1000000000))",
        "SELECT len(list_resize([1], 1000000000))",
        "SELECT len(array_resize([1], 1000000000))",
        "SELECT length(printf('%1500000000d', 1))",
        "SELECT length(format('{:1500000000d}', 1))",
        "SELECT length(bitstring('1', 1500000000))",
        "SELECT list_reduce(['a', 'a'], lambda a, b: a || a)",
    ],
)
def test_no_function_changes_the_instance_or_makes_much_of_little(ingest: Ingest, folder: Path, sql: str) -> None:
    assert refusal(ingest, sql).reason in (NOT_READ_ONLY, SQL_ERROR)
    assert is_as_before(ingest, folder)


def test_a_sequence_stays_where_it_was(ingest: Ingest) -> None:
    sql = "SELECT last_value FROM duckdb_sequences() WHERE sequence_name = 'series_ids'"
    before = rows_of(ingest, sql)
    refusal(ingest, "SELECT nextval('hot.series_ids')")
    assert rows_of(ingest, sql) == before


def test_the_environment_cannot_be_read(ingest: Ingest) -> None:
    assert refusal(ingest, "SELECT getenv('HOME')").reason == SQL_ERROR


def test_what_python_has_under_a_name_is_not_found(ingest: Ingest) -> None:
    import pyarrow as pa

    python_table = pa.table({"a": [1]})
    assert "does not exist" in refusal(ingest, "SELECT * FROM python_table").message
    assert python_table.num_rows == 1


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("", "is empty"),
        (" \n\t", "is empty"),
        ("-- nothing", "is empty"),
        ("/* nothing */ ;", "is empty"),
        ("SELECT 1\0; DROP TABLE hot.runs", "character 0"),
        ("SELECT '", "not closed"),
        ('SELECT "a', "not closed"),
        ("SELECT 1 /* a /* b */", "comment that is not closed"),
        ("SELECT $$a", "not closed"),
        ("SELEC 1", "syntax error"),
        ("SELECT FROM WHERE", "syntax error"),
        ("SELECT * FROM no_such_table", "does not exist"),
        ("SELECT no_such_column FROM runs", "not found"),
        ("SELECT CAST('a' AS INTEGER)", "Could not convert"),
        ("SELECT $1", "parameter"),
        ("SELECT ?", "parameter"),
        ("SELECT error('said')", "said"),
    ],
)
def test_a_wrong_query_is_told_what_is_wrong(ingest: Ingest, folder: Path, sql: str, told: str) -> None:
    error = refusal(ingest, sql)
    assert error.reason == SQL_ERROR
    assert told in error.message
    assert is_as_before(ingest, folder)


def of_length(part: str, length: int = LARGEST_SQL_BYTES) -> str:
    return part * (length // len(part))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + of_length("(", 50_000) + "1" + of_length(")", 40_000),
        "SELECT " + of_length("[", 90_000),
        "SELECT " + of_length("{'a': ", 90_000),
        "SELECT * FROM " + of_length("(", 90_000),
        "SELECT * FROM " + of_length("(SELECT * FROM ", 60_000) + "runs" + ")" * 4_000,
        "SELECT " + of_length("+", 90_000) + "1",
        "SELECT " + of_length("+-", 90_000) + "1",
        "SELECT " + of_length("- ", 90_000) + "1",
        "SELECT " + of_length("NOT ", 90_000) + "true",
        "SELECT 1" + of_length("+1", 90_000),
        "SELECT " + of_length("abs(", 40_000) + "1" + ")" * 10_000,
        "SELECT " + of_length("CASE WHEN true THEN 1 ELSE ", 60_000) + "1" + " END" * 2_222,
        "SELECT a" + of_length(".a", 90_000),
        "SELECT " + of_length("EXISTS(SELECT ", 60_000) + "1" + ")" * 4_285,
        "SELECT CAST(NULL AS " + of_length("STRUCT(a ", 60_000) + "INT" + ")" * 6_666 + ")",
        "SELECT CAST(NULL AS INT" + of_length("[]", 90_000) + ")",
        "SELECT " + of_length("list_transform([1], lambda x: ", 80_000) + "1" + ")" * 2_666,
        "/*" * 50_000,
        "SELECT '" + "x" * 90_000,
        of_length("SELECT 1;", 90_000),
        of_length("WITH a AS (", 90_000),
        of_length("SELECT ", 90_000),
        "SELECT " + of_length("1,", 90_000) + "1",
    ],
    ids=lambda sql: sql[:30],
)
def test_no_text_overflows_the_parser(ingest: Ingest, folder: Path, sql: str) -> None:
    assert refusal(ingest, sql).reason in (SQL_ERROR, NOT_READ_ONLY)
    assert is_as_before(ingest, folder)


def test_a_text_above_its_limit_is_refused_before_anything_reads_it() -> None:
    with pytest.raises(InvalidArgumentError, match="above"):
        SqlRequest(sql="x" * (LARGEST_SQL_BYTES + 1))
    with pytest.raises(InvalidArgumentError, match="UTF-8"):
        SqlRequest(sql="SELECT '\ud800'")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS answer",
        "select 1 as answer;",
        "(SELECT 1 AS answer)",
        "-- said\nSELECT /* and /* more */ */ 1 AS answer -- said",
        "/**/" * 20_000 + "SELECT 1 AS answer",
        "FROM (VALUES (1)) AS given(answer)",
        "WITH one AS (SELECT 1 AS answer) FROM one",
        "WITH RECURSIVE one AS (SELECT 1 AS answer UNION SELECT answer FROM one) SELECT * FROM one",
        "SELECT count(*) AS answer FROM runs",
        "SELECT 1 AS answer FROM range(1)",
        "SELECT generate_series AS answer FROM generate_series(1, 1)",
        "SELECT " + "(" * (LARGEST_BRACKET_DEPTH - 1) + "1" + ")" * (LARGEST_BRACKET_DEPTH - 1) + " AS answer",
        "SELECT '; PRAGMA version; COMMIT --'='' OR 1 = 1 AS answer",
        "SELECT length($$ /* -- ' \" $$) // 10 AS answer",
    ],
    ids=lambda sql: sql[:40],
)
def test_an_ordinary_query_is_answered(ingest: Ingest, sql: str) -> None:
    assert rows_of(ingest, sql) == [{"answer": 1}]


@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE runs",
        "SHOW TABLES",
        "SUMMARIZE training_steps",
        "TABLE runs",
        "SELECT * FROM duckdb_columns() WHERE schema_name = 'main'",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM pragma_table_info('training_steps')",
        "PIVOT training_steps ON node_count IN (6) USING count(*) GROUP BY subject",
        "SELECT step_index, lag(step_seconds) OVER w FROM training_steps WINDOW w AS (ORDER BY step_index)",
        "SELECT subject, approx_quantile(step_seconds, 0.9), histogram(node_count) FROM training_steps GROUP BY ALL",
    ],
)
def test_what_analysts_write_is_answered(ingest: Ingest, sql: str) -> None:
    assert rows_of(ingest, sql)


@pytest.mark.parametrize("sql", re.findall(r"```sql\n(.*?)```", WORKED_EXAMPLES.read_text(encoding="utf-8"), re.DOTALL))
def test_the_worked_examples_may_be_asked(ingest: Ingest, sql: str) -> None:
    schema, _, _ = messages_of(ingest, sql)
    assert schema


def test_a_pivot_without_its_values_says_how_to_write_it(ingest: Ingest) -> None:
    error = refusal(ingest, "PIVOT training_steps ON node_count USING count(*)")
    assert error.reason == NOT_READ_ONLY
    assert "named with IN" in error.message


def test_every_function_that_the_guard_names_is_one_of_some_duckdb() -> None:
    with duckdb.connect() as connection:
        rows = connection.execute("SELECT function_name, function_type FROM duckdb_functions()").fetchall()
    tables = {name for name, kind in rows if kind == "table"}
    scalars = {name for name, kind in rows if kind in ("scalar", "macro", "aggregate")}
    assert tables >= TABLE_FUNCTIONS
    # Only 2.0 has these, as functions rather than otherwise.
    assert REFUSED_FUNCTIONS - scalars <= {"setval", "pg_sleep"}


def test_no_macro_of_duckdb_hides_a_refused_function() -> None:
    with duckdb.connect() as connection:
        macros = connection.execute(
            "SELECT function_name, macro_definition FROM duckdb_functions() WHERE function_type = 'macro'"
        ).fetchall()
    refused = REFUSED_FUNCTIONS | {"checkpoint", "enable_logging", "query", "read_text", "read_csv"}
    word = re.compile(rf"(?<![a-z_])(?:{'|'.join(refused)})[\"(]")
    hiding = {name for name, definition in macros if word.search(str(definition))}
    # The series is as long as a list that is there already.
    assert hiding <= {"generate_subscripts", "pg_sleep"}
