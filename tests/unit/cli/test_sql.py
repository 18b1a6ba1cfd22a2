"""`linkbound sql`, `snapshot` and `runs watch` over a store in this process."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from linkbound import IngestClient, TrainingStep
from linkbound.cli.main import run
from linkbound.client.local.blocking import STORE_FILE_NAME
from tests.new_store import laid
from tests.unit.cli.command import Command

pytestmark = pytest.mark.storage

STEPS = [
    TrainingStep(subject="6 nodes", node_count=6, step_index=index, step_seconds=1 + index / 10, source="train.csv")
    for index in range(3)
]
QUERY = "SELECT step_index, step_seconds, subject FROM training_steps ORDER BY step_index"
MANY = "SELECT range AS i FROM range(1000)"


@pytest.fixture
def data(tmp_path: Path) -> str:
    folder = tmp_path / "data"
    laid(folder / STORE_FILE_NAME)
    with IngestClient(data_directory=folder) as client:
        client.create_run("a")
        client.append("a", writer_id="bench", sequence_number=1, records=STEPS)
    return str(folder)


def test_a_table_is_what_a_person_sees(linkbound: Command, data: str) -> None:
    outcome = linkbound("sql", QUERY, "--data", data)
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "step_index  step_seconds  subject",
        "----------  ------------  -------",
        "         0           1.0  6 nodes",
        "         1           1.1  6 nodes",
        "         2           1.2  6 nodes",
        "",
        "3 rows",
    ]


def test_a_table_shows_the_first_rows_and_says_so(linkbound: Command, data: str) -> None:
    outcome = linkbound("sql", MANY, "--data", data)
    assert outcome.out.splitlines()[-1] == "40 rows"
    assert "there are more rows than these 40" in outcome.err
    assert outcome.exit_code == 0


def test_json_is_one_object_with_columns_rows_and_the_summary(linkbound: Command, data: str) -> None:
    for arguments in (("--json",), ("--format", "json")):
        answer = linkbound("sql", QUERY, "--data", data, *arguments).answer
        assert answer == {
            "columns": [
                {"name": "step_index", "type": "int64"},
                {"name": "step_seconds", "type": "double"},
                {"name": "subject", "type": "string"},
            ],
            "rows": [{"step_index": i, "step_seconds": 1 + i / 10, "subject": "6 nodes"} for i in range(3)],
            "row_count": 3,
            "truncated": False,
        }


def test_json_has_no_value_that_json_has_not(linkbound: Command, data: str) -> None:
    sql = (
        "SELECT 'nan'::DOUBLE AS nan, 'inf'::DOUBLE AS infinite, 1.5::DECIMAL(4, 1) AS half, 2::HUGEINT AS two,"
        " DATE '2026-01-02' AS day, 'x'::BLOB AS bytes, [1, NULL] AS list, {'k': 1} AS struct, MAP {'k': 1} AS map,"
        " NULL AS nothing, 1 AS same, 2 AS same, INTERVAL 1 MONTH AS month, true AS yes"
    )
    outcome = linkbound("sql", sql, "--data", data, "--json")
    [row] = json.loads(outcome.out, parse_constant=pytest.fail)["rows"]
    month = row.pop("month")
    assert isinstance(month, str | list)
    assert row == {
        "nan": None,
        "infinite": None,
        "half": 1.5,
        "two": 2,
        "day": "2026-01-02",
        "bytes": "78",
        "list": [1, None],
        "struct": {"k": 1},
        "map": [["k", 1]],
        "nothing": None,
        "same": 1,
        "same_2": 2,
        "yes": True,
    }


def test_csv_has_every_row(linkbound: Command, data: str) -> None:
    outcome = linkbound("sql", MANY, "--data", data, "--format", "csv")
    assert outcome.err == ""
    assert list(csv.reader(io.StringIO(outcome.out))) == [["i"], *([str(index)] for index in range(1000))]
    odd = linkbound("sql", """SELECT 'a,"b"' AS t, NULL AS n, true AS b, [1] AS l""", "--data", data, "--format", "csv")
    assert odd.out == 't,n,b,l\n"a,""b""",,true,[1]\n'


def test_a_limit_is_told_where_it_cuts(linkbound: Command, data: str) -> None:
    outcome = linkbound("sql", MANY, "--data", data, "--format", "csv", "--limit", "2")
    assert outcome.out == "i\n0\n1\n"
    assert "there are more rows than these 2; --limit N asks for more" in outcome.err
    assert linkbound("sql", MANY, "--data", data, "--json", "--limit", "2").answer["truncated"] is True
    assert linkbound("sql", MANY, "--data", data, "--format", "csv", "--limit", "1000").err == ""


@pytest.mark.parametrize("suffix", ["arrow", "parquet", "csv", "json"])
def test_a_file_is_of_the_format_that_its_name_says(linkbound: Command, data: str, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"rows.{suffix}"
    outcome = linkbound("sql", QUERY, "--data", data, "--out", str(out))
    assert (outcome.exit_code, outcome.out, outcome.err) == (0, "", "")
    assert steps_in(out) == [0, 1, 2]
    assert list(tmp_path.glob(".rows*")) == []


def steps_in(path: Path) -> Sequence[int]:
    if path.suffix == ".arrow":
        return list(pa.ipc.open_stream(path.read_bytes()).read_all()["step_index"].to_pylist())
    if path.suffix == ".parquet":
        return list(pq.read_table(path)["step_index"].to_pylist())
    if path.suffix == ".json":
        return [row["step_index"] for row in json.loads(path.read_text())["rows"]]
    return [int(row["step_index"]) for row in csv.DictReader(io.StringIO(path.read_text()))]


def test_arrow_goes_to_stdout_too(data: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["sql", QUERY, "--data", data, "--format", "arrow"]) == 0
    assert pa.ipc.open_stream(capfdbinary.readouterr().out).read_all().num_rows == 3


def test_a_query_that_fails_midway_leaves_no_file(linkbound: Command, data: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    out.write_text("before")
    sql = "SELECT CASE WHEN i = 900000 THEN error('said') ELSE i::VARCHAR END AS v FROM range(1000000) AS r(i)"
    outcome = linkbound("sql", sql, "--data", data, "--out", str(out))
    assert outcome.exit_code == 2
    assert "SQL: " in outcome.err
    assert "said" in outcome.err
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "rows.csv"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("SELECT * FROM read_text('/etc/passwd')",), "SQL: uses read_text in FROM, which a query may not"),
        (("DROP TABLE hot.runs",), "SQL: is of the kind DROP; it takes one SELECT"),
        (("SELECT 1", "--format", "parquet"), "--format parquet: takes --out FILE"),
        (("SELECT 1", "--json", "--format", "csv"), "--json: and --format csv exclude each other"),
        (("SELECT 1", "--out", "rows.txt"), "--out: 'rows.txt' does not say the format; --format does"),
        (("SELECT 1", "--limit", "10000000000"), "--limit: 10000000000 is not"),
        (("SELECT 1", "--format", "xlsx"), "--format:"),
        ((), "SQL: is missing"),
        (("SELECT 1 FROM range(200000)", "--json"), "more than 100000 rows in one object"),
    ],
)
def test_what_is_wrong_is_told_by_what_was_typed(
    linkbound: Command, data: str, arguments: Sequence[str], told: str
) -> None:
    outcome = linkbound("sql", *arguments, "--data", data)
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert told in outcome.err


def test_a_query_may_come_from_stdin(linkbound: Command, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS one"))
    assert linkbound("sql", "-", "--data", data, "--format", "csv").out == "one\n1\n"


def test_a_snapshot_says_where_it_is(linkbound: Command, data: str) -> None:
    outcome = linkbound("snapshot", "--data", data)
    path = Path(data) / "snapshot.duckdb"
    assert outcome.out.splitlines()[0] == str(path)
    answer = linkbound("snapshot", "--data", data, "--json").answer
    assert answer["path"] == str(path)
    assert answer["size_bytes"] == path.stat().st_size
    assert set(answer) == {"path", "snapshot_time", "size_bytes", "revision"}


def test_runs_are_told_as_lines(linkbound: Command, data: str) -> None:
    outcome = linkbound("runs", "watch", "--count", "1", "--data", data)
    assert outcome.out == "          a: is there, open, 3 rows\n"
    assert linkbound("runs", "watch", "--count", "1", "--start-revision", "2", "--data", data).out == (
        "       2  a: appended to, open, 3 rows\n"
    )
    assert linkbound("runs", "delete", "a", "--data", data).exit_code == 0
    assert linkbound("runs", "watch", "--count", "1", "--start-revision", "3", "--data", data).out == (
        "       3  a: deleted\n"
    )


def test_runs_are_told_as_json_a_line_each(linkbound: Command, data: str) -> None:
    lines = linkbound("runs", "watch", "a", "--count", "2", "--json", "--data", data).out.splitlines()
    first, second = map(json.loads, lines)
    assert first["run"]["name"] == "runs/a"
    assert first["row_counts"]["training_step_count"] == 3
    assert first["change"] == "RUN_CHANGE_CREATED"
    assert (second["revision"], "run" in second) == (2, False)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--count", "0"), "--count: 0 lines say nothing"),
        (("--start-revision", "99"), "revision 99 is not there"),
        (("../a",), "RUN: "),
    ],
)
def test_a_watch_that_cannot_be_is_told(linkbound: Command, data: str, arguments: Sequence[str], told: str) -> None:
    outcome = linkbound("runs", "watch", *arguments, "--data", data)
    assert outcome.exit_code == 2
    assert told in outcome.err
