"""The demo from end to end: two servers, four runs, tables, and a database that opens afterwards."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from linkbound.data.study import load_study
from tests.integration.command_line import Outcome, linkbound

RUN_IDS = ["study-200g", "study-109g", "study-nccl", "study-training"]

pytestmark = pytest.mark.storage


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(folder: Path) -> Outcome:
    outcome = linkbound("demo", "--out", "out", cwd=folder)
    assert outcome.exit_code == 0, outcome.err
    return outcome


def query(database: Path, sql: str) -> list[list[Any]]:
    """Rows of a query, asked by a fresh interpreter that knows nothing of the project."""
    code = (
        "import duckdb, json, sys\n"
        "connection = duckdb.connect(sys.argv[1], read_only=True)\n"
        "print(json.dumps(connection.execute(sys.argv[2]).fetchall()))\n"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-c", code, str(database), sql], capture_output=True, text=True, check=True
    )
    rows = json.loads(result.stdout)
    assert isinstance(rows, list)
    return rows


def cells(demo: Outcome, first: str) -> list[str]:
    """The line of the first table that has a row named `first`, split where columns are apart."""
    line = next(line for line in demo.out.splitlines() if line.startswith(f"{first}  "))
    return re.split(r" {2,}", line)


def test_progress_goes_to_stderr_and_names_two_real_servers(demo: Outcome) -> None:
    addresses = re.findall(r"^(estimator|ingest) serves on 127\.0\.0\.1:(\d+)$", demo.err, re.MULTILINE)
    assert [service for service, _ in addresses] == ["estimator", "ingest"]
    assert len({port for _, port in addresses}) == 2
    for run_id in RUN_IDS:
        assert f"\n{run_id}: " in demo.err
    assert demo.err.splitlines()[-1] == f"wrote {Path('out', 'study.duckdb')}"


def test_the_first_table_holds_predicted_beside_measured(demo: Outcome) -> None:
    assert cells(demo, "P2: 8K") == [
        *("P2: 8K", "6.36 (6.21 to 6.56)", "7.24 (7.14 to 7.45)", "+0.88", "+13.8 %", "<= +0.92", "yes"),
        *("111 Gb/s", ">= 1.11"),
    ]
    assert cells(demo, "P6: 4 x 16K")[3:7] == ["+8.44", "+18.4 %", "<= +7.39", "NO"]


def test_the_training_table_holds_the_implied_bandwidth(demo: Outcome) -> None:
    assert cells(demo, "full, 2 nodes, RJ45")[-3:] == ["1.22 GB/s", "1.18 GB/s", "103.0 %"]
    assert cells(demo, "full, 2 nodes, QSFP")[-3:] == ["1.73 GB/s", "22.14 GB/s", "7.8 %"]
    assert cells(demo, "full, 4 nodes, QSFP")[-3:] == ["1.87 GB/s", "22.07 GB/s", "8.5 %"]


def test_what_is_not_predicted_names_its_missing_inputs(demo: Outcome) -> None:
    for setup in ("nanochat, 2 nodes, RJ45", "nanochat, 4 nodes, RJ45"):
        assert cells(demo, setup)[2].startswith("gradient bytes (trainable parameters), tokens of one step")


def test_the_findings_point_at_the_slow_training(demo: Outcome) -> None:
    assert "BANDWIDTH_BELOW_ASSUMED  study-training: full, 2 nodes, QSFP" in demo.out
    assert "BANDWIDTH_BELOW_ASSUMED  study-training: full, 4 nodes, QSFP" in demo.out
    assert "BANDWIDTH_BELOW_ASSUMED  study-training: LoRA" not in demo.out


def test_the_database_is_the_only_thing_left(demo: Outcome, folder: Path) -> None:
    assert [path.name for path in folder.iterdir()] == ["out"]
    assert [path.name for path in folder.joinpath("out").iterdir()] == ["study.duckdb"]


def test_the_database_holds_every_record_of_the_studies(demo: Outcome, folder: Path) -> None:
    database = folder / "out" / "study.duckdb"
    states = query(database, "SELECT run_id, state FROM runs ORDER BY create_time_utc")
    assert states == [[run_id, "OPEN"] for run_id in RUN_IDS]
    study = load_study()
    stored = query(
        database,
        "SELECT run_id, subject, metric, mean, minimum, maximum, round_count FROM metric_aggregates"
        " ORDER BY run_id DESC, subject, metric",
    )
    run_of = {link.key: link.run_id for link in study.inference.links}
    printed = [
        [run_of[m.link_key], m.test_id, m.metric.name, m.value.mean, m.value.minimum, m.value.maximum, 3]
        for m in study.inference.measurements
    ]
    assert sorted(map(str, stored)) == sorted(map(str, printed))
    assert query(database, "SELECT count(*) FROM collectives") == [[4]]
    assert query(database, "SELECT count(*) FROM training_steps") == [[13]]
    assert query(database, "SELECT count(*) FROM requests") == [[0]]


def test_every_prediction_was_stored_before_any_record(demo: Outcome, folder: Path) -> None:
    rows = query(
        folder / "out" / "study.duckdb",
        "SELECT run_id, max(p.store_time_utc) < min(l.commit_time_utc)"
        " FROM predictions p JOIN ledger l USING (run_id) GROUP BY run_id",
    )
    assert sorted(rows) == sorted([run_id, True] for run_id in RUN_IDS)


def test_the_last_line_says_how_to_open_it(demo: Outcome, folder: Path) -> None:
    line = demo.out.splitlines()[-1]
    assert line.startswith("open it: duckdb out/study.duckdb ")
    command = line.partition("or: python -c ")[2]
    result = subprocess.run(
        f"{sys.executable} -c {command}", shell=True, cwd=folder, capture_output=True, text=True, check=True
    )
    assert "study-200g" in result.stdout


def test_another_demo_replaces_the_database_and_gives_the_same_answer(demo: Outcome, folder: Path) -> None:
    again = linkbound("demo", "--out", "out", "--json", cwd=folder)
    assert again.exit_code == 0, again.err
    comparisons = again.answer["comparisons"]
    assert [comparison["run"] for comparison in comparisons] == [f"runs/{run_id}" for run_id in RUN_IDS]
    assert again.answer["database"] == str(Path("out", "study.duckdb"))
    assert [path.name for path in folder.joinpath("out").iterdir()] == ["study.duckdb"]
