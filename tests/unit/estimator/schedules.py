"""Settings, requests and passes, written briefly for tests of the replay."""

from __future__ import annotations

from typing import Any

from estimator_service.core.schedule import OutcomeCounter, Pass, PassSeconds, RequestOutcome, replay, stretches
from linkbound.domain.engine import EngineRequest, SchedulerSettings

Scheduled = tuple[tuple[tuple[int, int], ...], int]
"""Requests with their rows, and how many such passes follow each other."""


def settings(**changes: Any) -> SchedulerSettings:
    """Those of the traces: 4,096 tokens a pass, 2,048 of a long prompt, 8 requests."""
    given: dict[str, Any] = {
        "max_num_batched_tokens": 4096,
        "long_prefill_token_threshold": 2048,
        "max_num_seqs": 8,
        **changes,
    }
    if given.get("draft_token_count") and "accepted_draft_tokens_per_pass" not in given:
        given["accepted_draft_tokens_per_pass"] = 1
    return SchedulerSettings(**given)


def asked(*prompts_and_outputs: tuple[int, int], passes: tuple[int, ...] = ()) -> tuple[EngineRequest, ...]:
    """Requests by prompt and output tokens, and by pass of arrival where any are given."""
    arrivals = passes or (None,) * len(prompts_and_outputs)
    return tuple(
        EngineRequest(prompt_tokens=prompt, output_tokens=output, arrival_pass=arrival)
        for (prompt, output), arrival in zip(prompts_and_outputs, arrivals, strict=True)
    )


def timed(*arrivals_and_tokens: tuple[float, int, int]) -> tuple[EngineRequest, ...]:
    """Requests by seconds of arrival, prompt and output tokens."""
    return tuple(
        EngineRequest(prompt_tokens=prompt, output_tokens=output, arrival_seconds=arrival)
        for arrival, prompt, output in arrivals_and_tokens
    )


def shown(passes: list[Pass]) -> list[Scheduled]:
    """Passes as a trace shows them."""
    return [
        (tuple(zip(stretch[0].requests, stretch[0].rows, strict=True)), sum(found.repeat for found in stretch))
        for stretch in stretches(passes)
    ]


def scheduled(
    scheduler: SchedulerSettings, requests: tuple[EngineRequest, ...], pass_seconds: PassSeconds | None = None
) -> list[Scheduled]:
    """The trace of a replay."""
    return shown(list(replay(scheduler, requests, pass_seconds)))


def outcomes(scheduler: SchedulerSettings, requests: tuple[EngineRequest, ...]) -> tuple[RequestOutcome, ...]:
    """What becomes of every request."""
    counter = OutcomeCounter.of(scheduler, requests)
    for found in replay(scheduler, requests):
        counter.count(found)
    return counter.outcomes()
