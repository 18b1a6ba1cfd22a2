"""The replay against traces that were recorded from vLLM's own scheduler, pass by pass."""

from __future__ import annotations

import json
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from estimator_service.core.schedule import KNOWN_RULES, Pass, replay, stretches
from linkbound.domain.engine import EngineRequest, SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError

TRACES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vllm_schedules.json").read_text("utf-8"))["traces"]
ENDING = [
    pytest.param(trace, id=f"{trace['engine']}: {trace['name']}") for trace in TRACES if "never_ends" not in trace
]
ENDLESS = [pytest.param(trace, id=trace["name"]) for trace in TRACES if "never_ends" in trace]


def asked(trace: dict[str, Any]) -> tuple[SchedulerSettings, tuple[EngineRequest, ...]]:
    columns = zip(trace["prompt_tokens"], trace["output_tokens"], trace["arrival_pass"], strict=True)
    requests = tuple(
        EngineRequest(prompt_tokens=prompt, output_tokens=output, arrival_pass=arrival)
        for prompt, output, arrival in columns
    )
    return SchedulerSettings(engine=trace["engine"], **trace["settings"]), requests


def recorded(passes: list[Pass]) -> list[list[Any]]:
    """Passes as the file has them."""
    return [
        [
            [list(share) for share in zip(stretch[0].requests, stretch[0].rows, strict=True)],
            sum(found.repeat for found in stretch),
        ]
        for stretch in stretches(passes)
    ]


@pytest.mark.parametrize("trace", ENDING)
def test_every_pass_is_as_recorded(trace: dict[str, Any]) -> None:
    scheduler, requests = asked(trace)
    assert recorded(list(replay(scheduler, requests))) == trace["passes"]


@pytest.mark.parametrize("trace", ENDLESS)
def test_what_never_ends_is_refused(trace: dict[str, Any]) -> None:
    """Before the first pass where it is sure from the start, and else once it is."""
    scheduler, requests = asked(trace)
    found: list[Pass] = []
    with pytest.raises(InvalidArgumentError, match="the engine"):
        found.extend(replay(scheduler, requests))
    flat = [rows for rows, count in trace["passes"] for _ in repeat(None, count)]
    flat_found = [rows for rows, count in recorded(found) for _ in repeat(None, count)]
    assert flat_found == flat[: len(flat_found)]


def test_the_traces_of_each_kind_were_found() -> None:
    """Guards the tests above against empty lists."""
    assert len(ENDING) >= 35
    assert len(ENDLESS) >= 3
    assert {trace["engine"] for trace in TRACES} == {rules.name for rules in KNOWN_RULES}
