"""When something goes wrong: one message, an exit code, no server left behind, nothing overwritten."""

import os
import re
import signal
import subprocess
from pathlib import Path

import duckdb
import pytest

from linkbound.demo.runner import run_demo
from linkbound.domain.errors import InternalError
from tests.integration.command_line import LIMIT_SECONDS, children_of, linkbound, start, wait_until_ended

pytestmark = pytest.mark.storage


def server_of(service: str) -> int:
    """The process of the demo's `service`, a child of this process."""
    (pid,) = [
        pid
        for pid in children_of(os.getpid())
        if f"serve\0--only\0{service}\0" in Path(f"/proc/{pid}/cmdline").read_text()
    ]
    return pid


@pytest.mark.parametrize(
    ("service", "moment"), [("ingest", "study-200g: "), ("estimator", "study-109g: "), ("ingest", "stopping ")]
)
def test_a_server_that_dies_in_the_middle_is_named(service: str, moment: str, tmp_path: Path) -> None:
    servers: list[int] = []

    def kill_it(line: str) -> None:
        if line.startswith(moment):
            servers.extend(children_of(os.getpid()))
            os.kill(server_of(service), signal.SIGKILL)

    with pytest.raises(InternalError, match=f"^the {service} service ended with signal 9"):
        run_demo(tmp_path, kill_it)
    assert servers
    wait_until_ended(servers)
    assert list(tmp_path.iterdir()) == []


def started_demo(folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A demo that has both servers running, and their process ids."""
    process = start("demo", "--out", str(folder))
    assert process.stderr is not None
    while not process.stderr.readline().startswith("estimator serves"):
        assert process.poll() is None
    return process, children_of(process.pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_servers_too(number: signal.Signals, tmp_path: Path) -> None:
    process, servers = started_demo(tmp_path)
    process.send_signal(number)
    _, err = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "linkbound: interrupted"
    assert len(servers) == 2
    wait_until_ended(servers)
    assert list(tmp_path.iterdir()) == []


def test_servers_do_not_outlive_a_demo_that_is_killed(tmp_path: Path) -> None:
    process, servers = started_demo(tmp_path)
    process.kill()
    process.communicate()
    assert len(servers) == 2
    wait_until_ended(servers)


def refused(folder: Path) -> str:
    """The message of a demo that must not run."""
    outcome = linkbound("demo", "--out", str(folder))
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "Traceback" not in outcome.err
    return outcome.err


def test_a_file_that_is_not_a_database_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "study.duckdb"
    path.write_text("my notes")
    assert "was not written by this demo; choose another folder with --out" in refused(tmp_path)
    assert path.read_text() == "my notes"


def test_a_database_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "study.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE runs AS SELECT 'mine' AS run_id")
    assert "holds other runs than those of the demo" in refused(tmp_path)
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT run_id FROM runs").fetchall() == [("mine",)]


def test_a_link_to_somewhere_else_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    tmp_path.joinpath("study.duckdb").symlink_to(target)
    assert "is not a file" in refused(tmp_path)
    assert not target.exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    assert re.search(r"cannot be written|is a file", refused(blocker / "below"))


def test_a_database_that_is_open_elsewhere_is_3(tmp_path: Path) -> None:
    assert linkbound("demo", "--out", str(tmp_path)).exit_code == 0
    with duckdb.connect(str(tmp_path / "study.duckdb")):
        outcome = linkbound("demo", "--out", str(tmp_path))
    assert (outcome.exit_code, outcome.out) == (3, "")
    assert "is in use by another process" in outcome.err
