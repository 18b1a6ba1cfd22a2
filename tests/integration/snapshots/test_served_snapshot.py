"""`linkbound serve` as a person runs it: the snapshot appears by itself, other processes open it, SQL can be off."""

import json
import signal
import threading
from pathlib import Path

import duckdb
import pytest

from linkbound import IngestClient, PermissionDeniedError
from tests.integration.command_line import linkbound, serving, start

pytestmark = pytest.mark.storage


def test_the_snapshot_follows_what_is_stored(tmp_path: Path) -> None:
    settings = {"LINKBOUND_INGEST_SNAPSHOT_INTERVAL_SECONDS": "0.05"}
    path = tmp_path / "snapshot.duckdb"
    with serving("--only", "ingest", "--data", str(tmp_path), settings=settings) as targets:
        with IngestClient(targets["ingest"]) as client:
            for name in ("a", "b"):
                client.create_run(name)
                while not (path.exists() and name in runs_in(path)):
                    threading.Event().wait(0.02)
            answer = linkbound("snapshot", "--target", targets["ingest"], "--json").answer
            assert answer["path"] == str(path)
        outcome = linkbound("runs", "list", "--data", str(tmp_path))
        assert outcome.exit_code == 0
        assert "holds the store; this is its snapshot of" in outcome.err
    assert list(tmp_path.glob("_snapshot-*")) == []


def runs_in(path: Path) -> set[str]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return {name for (name,) in connection.execute("SELECT run_id FROM runs").fetchall()}


def test_sql_can_be_switched_off(tmp_path: Path) -> None:
    settings = {"LINKBOUND_INGEST_SQL": "off"}
    with serving("--only", "ingest", "--data", str(tmp_path), settings=settings) as targets:
        with IngestClient(targets["ingest"]) as client, pytest.raises(PermissionDeniedError):
            client.query_sql("SELECT 1")
        outcome = linkbound("sql", "SELECT 1", "--target", targets["ingest"])
    assert outcome.exit_code == 1
    assert "switched off" in outcome.err


def test_a_watch_ends_when_it_is_interrupted(tmp_path: Path) -> None:
    with serving("--only", "ingest", "--data", str(tmp_path)) as targets:
        with IngestClient(targets["ingest"]) as client:
            client.create_run("a")
        process = start("runs", "watch", "--json", "--target", targets["ingest"])
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        assert first["run"]["name"] == "runs/a"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err.strip()) == (130, "linkbound: interrupted")


def test_help_names_what_can_be_set() -> None:
    out = linkbound("serve", "--help").out
    for name in (
        "LINKBOUND_INGEST_SQL",
        "LINKBOUND_INGEST_SQL_TIME_LIMIT_SECONDS",
        "LINKBOUND_INGEST_SQL_TOKEN_FILE",
        "LINKBOUND_INGEST_MAX_SQL_QUERIES",
        "LINKBOUND_INGEST_MAX_WATCHES",
        "LINKBOUND_INGEST_SNAPSHOT_INTERVAL_SECONDS",
    ):
        assert name in out
