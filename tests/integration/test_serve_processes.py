"""Several processes of the estimator on one port: who answers, who is replaced, who stops."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from linkbound import EstimatorClient
from tests.bound import bounded
from tests.integration.command_line import (
    LIMIT_SECONDS,
    POLL_SECONDS,
    children_of,
    linkbound,
    runs,
    start,
    wait_until_ended,
)

ESTABLISHED, LISTENING = "01", "0A"
PREFILL: dict[str, Any] = {"model": "glm-5.3", "tensor_parallel_size": 8, "prompt_tokens": 8192, "link": "200g"}


@frozen
class Pool:
    """A server of several processes."""

    process: subprocess.Popen[str]
    target: str
    ingest_target: str

    @property
    def port(self) -> int:
        return int(self.target.rpartition(":")[2])

    @property
    def workers(self) -> list[int]:
        return [pid for pid in children_of(self.process.pid) if runs(pid)]


@contextmanager
def pool(*arguments: str, count: int = 2) -> Iterator[Pool]:
    process = start("serve", "--estimator-port", "0", "--processes", str(count), *arguments)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(1 if "--only" in arguments else 2)]
        targets = dict(line.strip().split(" serving on ") for line in lines)
        yield Pool(process, targets["estimator"], targets.get("ingest", ""))
    finally:
        process.kill()
        process.communicate()


def sockets_of(port: int, state: str) -> set[str]:
    """Inodes of the TCP sockets of this machine that have `port` at their end and are in `state`."""
    # gRPC listens for both versions of IP at once.
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    return {row[9] for row in rows if int(row[1].rpartition(":")[2], 16) == port and row[3] == state}


def sockets_held_by(pid: int) -> set[str]:
    found = set()
    # A process may end, and close files, while it is looked at.
    with suppress(FileNotFoundError, ProcessLookupError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            if match := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                found.add(match[1])
    return found


def wait_for_workers(server: Pool, count: int, *gone: int) -> list[int]:
    """The workers, once there are `count` that listen and none of those that are `gone`."""
    give_up = time.monotonic() + LIMIT_SECONDS
    while True:
        workers, listening = server.workers, sockets_of(server.port, LISTENING)
        if (
            len(workers) == count
            and not set(gone) & set(workers)
            and all(sockets_held_by(worker) & listening for worker in workers)
        ):
            return workers
        assert time.monotonic() < give_up, workers
        time.sleep(POLL_SECONDS)


def test_the_connections_of_one_port_are_spread_over_the_processes() -> None:
    with bounded(), pool("--only", "estimator") as server, ExitStack() as clients:
        workers = wait_for_workers(server, 2)
        for _ in range(64):
            client = clients.enter_context(EstimatorClient(server.target))
            assert client.estimate_prefill(**PREFILL).all_reduce_count == 157
        connections = sockets_of(server.port, ESTABLISHED)
        counts = [len(sockets_held_by(worker) & connections) for worker in workers]
    # That all of them fall to one has a probability of 2^-63.
    assert sum(counts) == 64
    assert all(counts)


def test_a_process_that_ends_is_replaced_and_calls_go_on() -> None:
    with bounded(), pool("--only", "estimator") as server, EstimatorClient(server.target) as client:
        workers = wait_for_workers(server, 2)
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
            assert client.get_model("glm-5.3").model_id == "glm-5.3"
            wait_for_workers(server, 2, worker)
        assert not set(workers) & set(server.workers)
        server.process.send_signal(signal.SIGTERM)
        _, log = server.process.communicate(timeout=LIMIT_SECONDS)
    assert log.count('"worker_ended"') == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_every_process_in_order(number: signal.Signals) -> None:
    with bounded(), pool("--only", "estimator", count=3) as server:
        workers = wait_for_workers(server, 3)
        server.process.send_signal(number)
        _, log = server.process.communicate(timeout=LIMIT_SECONDS)
        assert server.process.returncode == 0, log
    assert not any(runs(worker) for worker in workers)
    assert log.count('"server_stopped"') == 3


def test_no_process_is_left_when_the_first_one_is_killed() -> None:
    with bounded(), pool("--only", "estimator") as server:
        workers = wait_for_workers(server, 2)
        server.process.kill()
        wait_until_ended(workers)


def test_the_pair_runs_with_several_estimators(tmp_path: Path) -> None:
    with bounded(), pool("--ingest-port", "0", "--data", str(tmp_path)) as server:
        for target in (server.target, server.ingest_target):
            assert linkbound("health", "--target", target).exit_code == 0
        wait_for_workers(server, 2)
        server.process.send_signal(signal.SIGTERM)
        _, log = server.process.communicate(timeout=LIMIT_SECONDS)
    assert server.process.returncode == 0, log


def test_a_port_that_is_taken_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        outcome = linkbound("serve", "--only", "estimator", "--processes", "2", "--estimator-port", port)
    assert outcome.exit_code == 3
    assert f"cannot listen on 127.0.0.1:{port}" in outcome.err


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_port_that_other_processes_share_is_refused(count: str) -> None:
    with bounded(), pool("--only", "estimator") as server:
        wait_for_workers(server, 2)
        arguments = ["--processes", count, "--estimator-port", str(server.port)]
        outcome = linkbound("serve", "--only", "estimator", *arguments)
    assert outcome.exit_code == 3
    assert f"cannot listen on {server.target}" in outcome.err


def test_processes_that_cannot_start_end_the_command(tmp_path: Path) -> None:
    files = {"LINKBOUND_SERVER_TOKEN_FILE": str(tmp_path / "missing")}
    outcome = linkbound("serve", "--only", "estimator", "--processes", "2", "--estimator-port", "0", settings=files)
    assert outcome.exit_code == 3
    assert "a worker ended with exit code 2" in outcome.err
    assert "LINKBOUND_SERVER_TOKEN_FILE" in outcome.err or "token_file" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--processes", "0"], "--processes: 0 is not a whole number from 1 to 256"),
        (["--processes", "257"], "--processes: 257 is not a whole number from 1 to 256"),
        (["--processes", "many"], "--processes: 'many' is not a whole number"),
        (["--processes", "2", "--only", "ingest"], "--processes: the ingest service is one process"),
    ],
)
def test_a_number_of_processes_that_cannot_be_is_refused(arguments: list[str], problem: str) -> None:
    outcome = linkbound("serve", *arguments)
    assert outcome.exit_code == 2
    assert problem in outcome.err
