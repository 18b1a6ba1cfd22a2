"""Services and agents that are killed under load, and services that are away: each sample is stored exactly once."""

from pathlib import Path

import pytest

from linkbound.client.spool.segment import segment_paths
from tests.faults.conftest import Report
from tests.faults.figures import FaultFigures
from tests.faults.killing import RUN, Scene, scene
from tests.faults.repeats import KILLS, REPEATS

pytestmark = pytest.mark.storage


@pytest.mark.parametrize(
    ("kill", "times", "fault"),
    [
        (Scene.kill_service, KILLS, "service killed"),
        (Scene.kill_agent, REPEATS, "an agent killed"),
        (Scene.kill_both, REPEATS, "service and an agent killed"),
        (Scene.lose_log, REPEATS, "service killed, its log lost"),
    ],
    ids=["service", "agent", "both", "log"],
)
def test_nothing_is_lost_or_stored_twice(tmp_path: Path, report: Report, kill: object, times: int, fault: str) -> None:
    assert callable(kill)
    with scene(tmp_path, agent_count=2, seed=times) as stage:
        for _ in range(times):
            kill(stage)
        found = stage.end()
    report(
        FaultFigures(
            fault=fault,
            times=times,
            rows=found.rows,
            recovery_seconds=stage.recovery_seconds,
            peak_rss_bytes=stage.service.peak_rss_bytes,
        )
    )
    assert found.is_right, found


def test_an_outage_is_written_through_and_caught_up_with(tmp_path: Path, report: Report) -> None:
    with scene(tmp_path, agent_count=1, seed=1) as stage:
        (agent,) = stage.agents
        stage.let_things_move()
        stage.service.stop()
        # Nothing is stored meanwhile, and a whole process comes and goes.
        agent.wait_for(spooled_count=agent.progress.spooled_count + 20_000)
        agent.kill()
        agent.start()
        agent.wait_for(spooled_count=20_000)
        with stage.recovery():
            stage.service.start()
            agent.wait_for(committed_number=1)
        found = stage.end()
        (directory,) = (tmp_path / "spool" / RUN).iterdir()
        assert len(segment_paths(directory)) >= 1
    report(FaultFigures(fault="service away", times=1, rows=found.rows, recovery_seconds=stage.recovery_seconds))
    assert found.is_right, found
