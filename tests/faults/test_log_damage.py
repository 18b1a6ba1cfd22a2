"""The log of a service that was killed under load is damaged: what is lost is sent again, or the service says no."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import Report
from tests.faults.figures import FaultFigures
from tests.faults.killing import Scene, scene
from tests.faults.log_damage import bit_flipped, cut, zero_filled
from tests.faults.repeats import REPEATS
from tests.integration.command_line import linkbound

pytestmark = pytest.mark.storage

USAGE = 2
"""Exit code of what only a person can mend."""


@pytest.mark.parametrize("damage", [cut, zero_filled, bit_flipped], ids=lambda damage: damage.__name__)
def test_a_damaged_log_never_becomes_a_wrong_answer(
    tmp_path: Path, report: Report, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    outcomes: Counter[str] = Counter()
    with scene(tmp_path, agent_count=2, seed=REPEATS) as stage:
        for _ in range(REPEATS):
            outcomes.update(_damage_log(stage, damage))
        found = stage.end()
    report(
        FaultFigures(
            fault=f"log {damage.__name__.replace('_', ' ')}",
            times=REPEATS,
            rows=found.rows,
            recovery_seconds=stage.recovery_seconds,
            remarks=[f"{outcome} {count}" for outcome, count in sorted(outcomes.items())],
        )
    )
    assert found.is_right, found
    assert outcomes["sent again"] > 0


def _damage_log(stage: Scene, damage: Callable[[bytes, random.Random], bytes]) -> list[str]:
    """Kill the service, damage its log, bring it back; in words what came of it."""
    service = stage.service
    outcomes = []
    stage.let_things_move()
    service.kill()
    while not (service.log.exists() and service.log.stat().st_size):
        # It was checkpointed at that moment.
        service.start()
        stage.let_things_move()
        service.kill()
    with stage.recovery():
        content = damage(service.log.read_bytes(), stage.random)
        service.log.write_bytes(content)
        lost_before = len(service.log_lines("store_lost_acknowledged"))
        refusal = service.try_to_start()
        if refusal is not None:
            outcomes.append("refused and recovered")
            assert refusal.exit_code == USAGE
            assert "linkbound store recover" in refusal.message
            # Nothing was changed, so it says so again.
            assert service.log.read_bytes() == content
            recovered = linkbound("store", "recover", "--data", str(service.directory), "--json")
            assert recovered.exit_code == 0, recovered.err
            aside = Path(recovered.answer["set_aside_path"])
            assert aside.read_bytes() == content
            aside.unlink()
            service.start()
    stage.let_things_move()
    if len(service.log_lines("store_lost_acknowledged")) > lost_before:
        outcomes.append("sent again")
    return outcomes
