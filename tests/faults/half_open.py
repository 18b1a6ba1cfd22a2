"""Connections whose other end has gone without a word: run as a process of its own, within a network of its own.

    python -m tests.faults.half_open DIR ROUNDS SERVER_KEEPALIVE_SECONDS SERVER_KEEPALIVE_TIMEOUT_SECONDS

While the link is down nothing arrives, in either direction: no data, no end of a connection, no refusal. Prints what
came of it, as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
from attrs import asdict, field, frozen
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.faults.killing import Scene, scene

LIMIT_SECONDS = 180.0
POLL_SECONDS = 0.1
ESTABLISHED = "01"
AGENT_COUNT = 2
AWAY = "the service is away"
REST_SECONDS = 2.0
"""After a call, until nothing more of it is on its way."""


@frozen(kw_only=True)
class Outcome:
    """What came of connections that were half open, and how long each side took to notice."""

    server_notice_seconds: list[float] = field(factory=list)
    agent_notice_seconds: list[float] = field(factory=list)
    idle_notice_seconds: list[float] = field(factory=list)
    recovery_seconds: list[float] = field(factory=list)
    peak_rss_bytes: list[int] = field(factory=list)


def set_link(state: str) -> None:
    """The only link of this network: `up` or `down`."""
    subprocess.run(["ip", "link", "set", "dev", "lo", state], check=True)


def connection_count(port: int) -> int:
    """Connections of a service that it takes for alive."""
    tables = [Path("/proc/net", name).read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    ends = [line.split() for lines in tables for line in lines]
    return sum(fields[1].endswith(f":{port:04X}") and fields[3] == ESTABLISHED for fields in ends)


def seconds_until(is_met: Callable[[], bool]) -> float:
    """How long it takes until something is the case."""
    start = time.monotonic()
    while not is_met():
        if time.monotonic() - start > LIMIT_SECONDS:
            raise TimeoutError
        time.sleep(POLL_SECONDS)
    return time.monotonic() - start


def idle_connection(target: str) -> grpc.Channel:
    """A connection over which a call was made, and none is any more."""
    channel = grpc.insecure_channel(target)
    stub: Any = health_pb2_grpc.HealthStub(channel)
    stub.Check(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=LIMIT_SECONDS)
    return channel


def half_open(stage: Scene, outcome: Outcome) -> None:
    """Take the link away until both sides have noticed, and bring it back."""
    service = stage.service
    stage.let_things_move()
    with idle_connection(service.target):
        time.sleep(REST_SECONDS)
        assert connection_count(service.port) == AGENT_COUNT + 1
        ended_before, told_before = len(_ended_streams(stage)), _told_count(stage)
        set_link("down")
        start = time.monotonic()
        seconds_until(lambda: _told_count(stage) == told_before + AGENT_COUNT)
        outcome.agent_notice_seconds.append(time.monotonic() - start)
        seconds_until(lambda: len(_ended_streams(stage)) == ended_before + AGENT_COUNT)
        outcome.server_notice_seconds.append(time.monotonic() - start)
        seconds_until(lambda: connection_count(service.port) == 0)
        outcome.idle_notice_seconds.append(time.monotonic() - start)
        set_link("up")
        with stage.recovery():
            committed = [agent.progress.committed_number for agent in stage.agents]
            for agent, number in zip(stage.agents, committed, strict=True):
                agent.wait_for(committed_number=number + 1)


def agents_that_vanish(stage: Scene) -> None:
    """Agents go with their link; others, which find it again, are taken in their place: no more may stream at once."""
    stage.let_things_move()
    ended_before = len(_ended_streams(stage))
    set_link("down")
    for agent in stage.agents:
        agent.kill()
    seconds_until(lambda: len(_ended_streams(stage)) == ended_before + AGENT_COUNT)
    set_link("up")
    for agent in stage.agents:
        agent.start()
    stage.let_things_move()


def _ended_streams(stage: Scene) -> list[object]:
    return [line for line in stage.service.log_lines("rpc_finished") if line["rpc"].endswith("/StreamSamples")]


def _told_count(stage: Scene) -> int:
    return sum(agent.log_text.count(AWAY) for agent in stage.agents)


def main() -> None:
    """Make the fault and print what came of it."""
    directory, rounds, keepalive_seconds, timeout_seconds = Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]
    settings = {
        "LINKBOUND_SERVER_KEEPALIVE_SECONDS": keepalive_seconds,
        "LINKBOUND_SERVER_KEEPALIVE_TIMEOUT_SECONDS": timeout_seconds,
        "LINKBOUND_INGEST_MAX_STREAMS": str(AGENT_COUNT),
    }
    outcome = Outcome()
    with scene(directory, AGENT_COUNT, seed=rounds, settings=settings) as stage:
        for _ in range(rounds):
            half_open(stage, outcome)
        agents_that_vanish(stage)
        found = stage.end()
        outcome.recovery_seconds.extend(stage.recovery_seconds)
    outcome.peak_rss_bytes.append(stage.service.peak_rss_bytes)
    json.dump({"outcome": asdict(outcome), "verdict": asdict(found)}, sys.stdout)


if __name__ == "__main__":
    main()
