"""The command and clients in this process, while a service holds the store: reads fall back, writes name the pid."""

import asyncio
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from linkbound import AsyncIngestClient, IngestClient, SnapshotWarning
from linkbound.domain.errors import UnavailableError
from tests.integration.command_line import linkbound

pytestmark = pytest.mark.storage

HOLDER = """
import sys
from pathlib import Path
from tests.integration.sql.asking import filled_store
with filled_store(Path(sys.argv[1])) as ingest:
    if "publish" in sys.argv:
        ingest.publish_snapshot()
    print("ready", flush=True)
    for line in sys.stdin:
        ingest.publish_snapshot()
        print("published", flush=True)
"""


class Holder:
    """Another process that holds a store with one run."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        root = Path(__file__).parents[3]
        path = os.pathsep.join([str(root), str(root / "clients")])
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(folder), *arguments],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._expect("ready")

    def publish(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("publish\n")
        self.process.stdin.flush()
        self._expect("published")

    def _expect(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == word

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Holder]:
    holder = Holder(tmp_path, "publish")
    yield holder
    holder.end()


RUN = "study-109g"


def test_commands_that_read_answer_from_the_snapshot_and_say_its_age(holder: Holder, tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    for arguments in (
        ("runs", "list", *data),
        ("runs", "show", RUN, *data),
        ("compare", RUN, *data),
        ("traffic", RUN, *data),
        ("sql", "SELECT count(*) AS n FROM training_steps", *data),
    ):
        outcome = linkbound(*arguments)
        assert outcome.exit_code == 0, outcome.err
        [line] = outcome.err.splitlines()
        assert line.startswith(f"linkbound: process {holder.process.pid} holds the store; this is its snapshot of ")
        assert line.endswith(" s ago")
    answer = linkbound("sql", "SELECT count(*) AS n FROM training_steps", "--json", *data).answer
    assert answer["rows"] == [{"n": 100}]


def test_commands_that_write_name_the_process(holder: Holder, tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    for arguments in (
        ("runs", "seal", RUN, *data),
        ("runs", "delete", RUN, *data),
        ("snapshot", *data),
    ):
        outcome = linkbound(*arguments)
        assert (outcome.exit_code, outcome.out) == (3, "")
        assert f"process {holder.process.pid}" in outcome.err


def test_without_a_snapshot_reads_name_the_process_too(tmp_path: Path) -> None:
    holder = Holder(tmp_path)
    outcome = linkbound("runs", "list", "--data", str(tmp_path))
    assert outcome.exit_code == 3
    assert f"process {holder.process.pid}" in outcome.err
    holder.end()


def test_a_client_warns_once_and_reads_later_snapshots(holder: Holder, tmp_path: Path) -> None:
    with IngestClient(data_directory=tmp_path) as client:
        with pytest.warns(SnapshotWarning) as told:
            counts = [client.get_run(run.run_id).row_counts.training_step_count for run in client.list_runs()]
        assert counts == [100]
        assert len(told) == 1
        warning = told[0].message
        assert isinstance(warning, SnapshotWarning)
        assert warning.pid == str(holder.process.pid)
        assert 0 <= warning.age_seconds < 600
        for write in (
            lambda: client.create_run("b"),
            lambda: client.delete_run(RUN),
            lambda: next(client.watch_runs()),
        ):
            with pytest.raises(UnavailableError) as caught:
                write()
            assert caught.value.reason == "STORE_LOCKED"
            assert caught.value.metadata["pid"] == str(holder.process.pid)
        holder.publish()
        with pytest.warns(SnapshotWarning):
            assert client.query_sql("SELECT count(*) AS n FROM runs").read_all().to_pylist() == [{"n": 1}]


def test_the_store_itself_is_read_once_it_is_free(holder: Holder, tmp_path: Path) -> None:
    with IngestClient(data_directory=tmp_path) as client:
        with pytest.warns(SnapshotWarning):
            client.get_run(RUN)
        holder.process.send_signal(signal.SIGKILL)
        holder.process.wait()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            client.create_run("b")
            assert {run.run_id for run in client.list_runs()} == {RUN, "b"}


def test_a_client_on_an_event_loop_does_the_same(holder: Holder, tmp_path: Path) -> None:
    async def read() -> int:
        async with (
            AsyncIngestClient(data_directory=tmp_path) as client,
            AsyncIngestClient(data_directory=tmp_path) as more,
        ):
            assert (await more.get_run(RUN)).run.run_id == RUN
            reader = await client.query_sql("SELECT * FROM training_steps")
            return int((await reader.read_all()).num_rows)

    with pytest.warns(SnapshotWarning):
        assert asyncio.run(read()) == 100
