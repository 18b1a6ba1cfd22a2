"""Services and agents that are killed under load, and services that are away: each sample is stored exactly once.

`FAULT_KILLS` sets how many kills each test makes.
"""

import os
from pathlib import Path

import pytest

from linkbound.client.spool.segment import segment_paths
from tests.faults.killing import RUN, Scene, scene
from tests.faults.truth import Verdict

pytestmark = pytest.mark.storage

KILL_COUNT = int(os.environ.get("FAULT_KILLS", "2"))


def check(found: Verdict) -> None:
    assert (found.missing_count, found.duplicate_count, found.wrong_count) == (0, 0, 0), found
    assert found.stored_count > 0


@pytest.mark.parametrize(
    "kill",
    [Scene.kill_service, Scene.lose_log, Scene.kill_agent, Scene.kill_both],
    ids=lambda kill: kill.__name__,
)
def test_nothing_is_lost_or_stored_twice(tmp_path: Path, kill: object) -> None:
    assert callable(kill)
    with scene(tmp_path, agent_count=2, seed=KILL_COUNT) as stage:
        for _ in range(KILL_COUNT):
            kill(stage)
        check(stage.end())


def test_an_outage_is_written_through_and_caught_up_with(tmp_path: Path) -> None:
    with scene(tmp_path, agent_count=1, seed=1) as stage:
        (agent,) = stage.agents
        stage.let_things_move()
        stage.service.stop()
        # Nothing is stored meanwhile, and a whole process comes and goes.
        agent.wait_for(spooled_count=agent.progress.spooled_count + 20_000)
        agent.kill()
        agent.start()
        agent.wait_for(spooled_count=20_000)
        stage.service.start()
        agent.wait_for(committed_number=1)
        check(stage.end())
        (directory,) = (tmp_path / "spool" / RUN).iterdir()
        assert len(segment_paths(directory)) >= 1
