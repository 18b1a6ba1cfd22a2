"""Schedules in this process: the time of replays over a fixed loop of the interpreter, and what one holds at once."""

from __future__ import annotations

import tracemalloc
from collections import deque

from attrs import evolve

from estimator_service.service import default_estimator
from linkbound.domain.engine import EngineRequest, SchedulerSettings
from linkbound.domain.schedule import DEFAULT_SCHEDULER, ScheduleRequest, ScheduleSummary
from tests.bench.measure import Result, alternating, median_ratio, seconds_of

LOOP_STEP_COUNT = 200_000
MILLISECONDS = 1e3
MEGABYTE = 1e6

STUDY_SCHEDULER = SchedulerSettings(
    engine="vllm-0.32",
    max_num_batched_tokens=4096,
    long_prefill_token_threshold=2048,
    max_num_seqs=8,
    max_model_len=262_144,
    draft_token_count=4,
    accepted_draft_tokens_per_pass=0.0,
)
"""Source: the first study, its engine."""
FOUR_LONG = ScheduleRequest(
    requests=(EngineRequest(prompt_tokens=16_384, output_tokens=1024),) * 4, scheduler=STUDY_SCHEDULER
)
"""Source: the first study, P6."""


def alike(count: int) -> ScheduleRequest:
    """As many requests that arrive together, of 8K prompt and 1K output tokens."""
    request = EngineRequest(prompt_tokens=8192, output_tokens=1024)
    return ScheduleRequest(requests=(request,) * count, scheduler=DEFAULT_SCHEDULER)


def replay_of_the_study() -> Result:
    """The first study's four prompts with all their outputs, over the loop."""
    return _against_the_loop("schedule of the study's four prompts", FOUR_LONG, "under 10 ms")


def replay_of_a_thousand() -> Result:
    """A thousand requests with all their outputs, over the loop."""
    return _against_the_loop("schedule of 1000 requests", alike(1000), "under 2000 ms")


def memory_of_a_thousand() -> Result:
    """What the same schedule holds at once, over that of a tenth of the requests: those that are live count."""
    thousand, hundred = _peak_bytes(alike(1000)), _peak_bytes(alike(100))
    return Result(
        name="schedule of 1000 requests, memory",
        value=f"{thousand / MEGABYTE:.1f} MB at once",
        ratio=thousand / hundred,
        ratio_of=f"100 requests, {hundred / MEGABYTE:.1f} MB",
        goal="at most 10, as many times as live requests",
    )


def _against_the_loop(name: str, request: ScheduleRequest, goal: str) -> Result:
    ours, loop = alternating(lambda: seconds_of(lambda: _drained(request)), lambda: seconds_of(_loop))
    return Result(
        name=name,
        value=f"{min(ours) * MILLISECONDS:.1f} ms",
        ratio=median_ratio(ours, loop),
        ratio_of=f"a loop of {LOOP_STEP_COUNT:,} additions, {min(loop) * MILLISECONDS:.1f} ms",
        goal=goal,
    )


def _loop() -> int:
    """What an interpreter needs on any machine, whatever this project does."""
    total = 0
    for step in range(LOOP_STEP_COUNT):
        total += step % 7
    return total


def _drained(request: ScheduleRequest) -> None:
    """Every part as a client takes it, none of which is kept."""
    (last,) = deque(default_estimator().stream_schedule(request), maxlen=1)
    if not isinstance(last, ScheduleSummary) or len(last.requests) != len(request.requests):
        raise RuntimeError("the schedule has no end")


def _peak_bytes(request: ScheduleRequest) -> int:
    _drained(evolve(request, requests=request.requests[:1]))
    tracemalloc.start()
    try:
        _drained(request)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
