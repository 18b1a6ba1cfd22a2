"""Kills of services and agents at random moments under load."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb
from attrs import field, frozen

from linkbound import IngestClient
from tests.faults.agent_process import AgentProcess
from tests.faults.service_process import ServiceProcess
from tests.faults.truth import Verdict, verdict

RUN = "faults"
LONGEST_PAUSE_SECONDS = 0.3


@frozen(kw_only=True)
class Scene:
    """A service and agents that write to it, all of them processes."""

    service: ServiceProcess
    agents: list[AgentProcess]
    random: random.Random = field(repr=False)
    recovery_seconds: list[float] = field(factory=list)
    """From each fault until the service served, or the agent wrote, again."""

    def let_things_move(self) -> None:
        """Return at a random moment after every agent got something stored since it was last looked at."""
        committed = [agent.progress.committed_number for agent in self.agents]
        for agent, number in zip(self.agents, committed, strict=True):
            agent.wait_for(committed_number=number + 1)
        time.sleep(self.random.uniform(0, LONGEST_PAUSE_SECONDS))

    def kill_service(self) -> None:
        """Kill the service under load and bring it back."""
        self.let_things_move()
        with self.recovery():
            self.service.kill()
            self.service.start()

    def lose_log(self) -> None:
        """Kill the service under load, and with it everything that no checkpoint holds, acknowledged or not."""
        self.let_things_move()
        with self.recovery():
            self.service.kill()
            self.service.log.unlink(missing_ok=True)
            self.service.start()

    def kill_agent(self) -> None:
        """Kill one of the agents under load and bring it back."""
        self.let_things_move()
        agent = self.random.choice(self.agents)
        with self.recovery():
            agent.kill()
            agent.start()
            agent.wait_for(spooled_count=1)

    def kill_both(self) -> None:
        """Kill the service and an agent at the same moment and bring both back, the agent first."""
        self.let_things_move()
        agent = self.random.choice(self.agents)
        with self.recovery():
            self.service.kill()
            agent.kill()
            agent.start()
            self.service.start()
            agent.wait_for(spooled_count=1)

    @contextmanager
    def recovery(self) -> Iterator[None]:
        """From a fault until everything works again."""
        start = time.monotonic()
        yield
        self.recovery_seconds.append(time.monotonic() - start)

    def stored_event_count(self) -> int:
        """Events that are stored, while the service does not run."""
        with duckdb.connect(str(self.service.store), read_only=True) as connection:
            row = connection.execute("SELECT count(*) FROM hot.events").fetchone()
        assert row is not None
        return int(row[0])

    def end(self) -> Verdict:
        """Let the agents deliver everything, stop the service, and look into its store."""
        for agent in self.agents:
            agent.stop()
        self.service.stop()
        return verdict(self.service.store, RUN, {agent.writer_id: agent.told for agent in self.agents})


@contextmanager
def scene(
    directory: Path,
    agent_count: int,
    seed: int,
    settings: Mapping[str, str] | None = None,
    data: Path | None = None,
) -> Iterator[Scene]:
    """A service over the store in `data`, or in `directory`, and its agents, while the block lasts.

    The same seed kills the same ones after the same pauses.
    """
    service = ServiceProcess(directory, settings, data)
    agents = [AgentProcess(directory, service.target, RUN, f"agent-{number}") for number in range(agent_count)]
    try:
        service.start()
        with IngestClient(service.target) as client:
            client.create_run(RUN)
        # The run is to be in the file itself, whatever becomes of the log.
        service.stop()
        service.start()
        for agent in agents:
            agent.start()
        yield Scene(service=service, agents=agents, random=random.Random(seed))
    finally:
        for agent in agents:
            agent.close()
        service.close()
