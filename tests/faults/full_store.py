"""A service whose file system is really full: run as a process of its own, with a small file system in DIR/disk.

    python -m tests.faults.full_store DIR FREE_SPACE_FLOOR_BYTES

Without a floor the service is to end, with one it is to refuse and go on. Then there is room again. Prints what came of
it, as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import grpc
from attrs import asdict, frozen
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.faults.killing import Scene, scene
from tests.integration.command_line import POLL_SECONDS

LIMIT_SECONDS = 240.0
AGENT_COUNT = 2
INGEST_SERVICE = "linkbound.ingest.v1.IngestService"
AWAY = "the service is away"
DISK_FULL = "the disk"


@frozen(kw_only=True)
class Outcome:
    """What the service did on the full disk; `exit_code` is None where it went on."""

    exit_code: int | None
    has_said_not_serving: bool
    peak_rss_bytes: int
    recovery_seconds: list[float]


class HealthWatch:
    """What the service says of its health, from now on until it ends."""

    def __init__(self, target: str) -> None:
        self.statuses: list[int] = []
        self._channel = grpc.insecure_channel(target)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    @property
    def has_said_not_serving(self) -> bool:
        """Whether it ever said that it stores nothing."""
        return health_pb2.HealthCheckResponse.NOT_SERVING in self.statuses

    def _listen(self) -> None:
        stub: Any = health_pb2_grpc.HealthStub(self._channel)
        try:
            for answer in stub.Watch(health_pb2.HealthCheckRequest(service=INGEST_SERVICE)):
                self.statuses.append(answer.status)
        except grpc.RpcError:
            return


def fill(stage: Scene, health: HealthWatch, floor_bytes: int) -> int | None:
    """Let agents write until the disk is full; the exit code of the service, None where it goes on."""
    service = stage.service
    give_up = time.monotonic() + LIMIT_SECONDS
    while service.is_running if floor_bytes == 0 else not health.has_said_not_serving:
        assert time.monotonic() < give_up
        time.sleep(POLL_SECONDS)
    if floor_bytes == 0:
        return service.wait()
    # What is refused is kept by the agents, however long it takes.
    for agent in stage.agents:
        agent.wait_for(spooled_count=agent.progress.spooled_count + 10_000)
    assert service.is_running
    return None


def main() -> None:
    """Make the fault and print what came of it."""
    directory, floor_bytes = Path(sys.argv[1]), int(sys.argv[2])
    disk = directory / "disk"
    settings = {"LINKBOUND_STORE_FREE_SPACE_FLOOR_BYTES": str(floor_bytes)}
    with scene(directory, AGENT_COUNT, seed=1, settings=settings, data=disk) as stage:
        health = HealthWatch(stage.service.target)
        stage.let_things_move()
        exit_code = fill(stage, health, floor_bytes)
        subprocess.run(["mount", "-o", "remount,size=512m", str(disk)], check=True)
        with stage.recovery():
            if exit_code is not None:
                stage.service.start()
            stage.let_things_move()
        found = stage.end()
    outcome = Outcome(
        exit_code=exit_code,
        has_said_not_serving=health.has_said_not_serving,
        peak_rss_bytes=stage.service.peak_rss_bytes,
        recovery_seconds=stage.recovery_seconds,
    )
    json.dump({"outcome": asdict(outcome), "verdict": asdict(found)}, sys.stdout)


if __name__ == "__main__":
    main()
