"""When a schedule goes on, where, and when it gives up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any

import pytest
from attrs import evolve

from linkbound.client.resuming import ATTEMPT_COUNT, FIRST_ATTEMPT_COUNT
from linkbound.client.schedules import scheduled, scheduled_async, whole_schedule
from linkbound.domain.engine import EngineRequest, SchedulerSettings
from linkbound.domain.errors import Error, FailedPreconditionError, UnavailableError
from linkbound.domain.schedule import (
    PassShare,
    RequestTimes,
    ScheduledRequests,
    ScheduleEstimate,
    SchedulePart,
    SchedulePass,
    SchedulePasses,
    ScheduleRequest,
    ScheduleSummary,
)

BROKEN = UnavailableError("gone")
PASSES = tuple(SchedulePass(scheduled=(PassShare(0, index),), repeat=index) for index in range(1, 6))
TIMES = tuple(
    RequestTimes(request=index, first_token_pass=0, last_token_pass=0, preemption_count=0, output_tokens=1)
    for index in range(4)
)
SUMMARY = ScheduleSummary(
    requests=TIMES, pass_count=15, scheduler=SchedulerSettings(max_num_batched_tokens=1), estimator_version="1"
)
WHOLE: list[SchedulePass | ScheduleSummary] = [*PASSES, SUMMARY]
ASKED = ScheduleRequest(requests=(EngineRequest(prompt_tokens=1, output_tokens=1),) * len(TIMES))

Step = SchedulePart | Error


def passes(first: int, end: int, version: str = "1") -> SchedulePasses:
    return SchedulePasses(start_index=first, passes=PASSES[first:end], estimator_version=version)


class ScriptedBackend:
    """Plays one stream after another; an error in one breaks it."""

    def __init__(self, *streams: Sequence[Step]) -> None:
        self._streams = list(streams)
        self.asked: list[int] = []

    def schedule(self, asked: ScheduleRequest, _timeout_seconds: float | None) -> Generator[SchedulePart, None, None]:
        assert evolve(asked, start_index=0) == ASKED
        self.asked.append(asked.start_index)
        for step in self._streams.pop(0):
            if isinstance(step, Error):
                raise step
            yield step


class AsyncScriptedBackend:
    def __init__(self, backend: ScriptedBackend) -> None:
        self._backend = backend

    async def schedule(
        self, asked: ScheduleRequest, timeout_seconds: float | None
    ) -> AsyncGenerator[SchedulePart, None]:
        for part in self._backend.schedule(asked, timeout_seconds):
            yield part


@pytest.fixture(params=["blocking", "asyncio"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No test waits; the pauses are noted."""
    noted: list[float] = []

    async def sleep(seconds: float) -> None:
        noted.append(seconds)

    monkeypatch.setattr("linkbound.client.resuming.time.sleep", noted.append)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    return noted


def collected(api: str, backend: ScriptedBackend) -> list[SchedulePass | ScheduleSummary]:
    played: Any = backend
    if api == "blocking":
        return list(scheduled(played, ASKED, None))

    async def collect() -> list[SchedulePass | ScheduleSummary]:
        stand_in: Any = AsyncScriptedBackend(backend)
        return [entry async for entry in scheduled_async(stand_in, ASKED, None)]

    return asyncio.run(collect())


def test_a_stream_that_breaks_is_opened_again_where_it_was(api: str, pauses: list[float]) -> None:
    backend = ScriptedBackend(
        [passes(0, 2), BROKEN], [BROKEN], [passes(2, 3), passes(3, 4), BROKEN], [passes(4, 5), SUMMARY]
    )
    assert collected(api, backend) == WHOLE
    assert backend.asked == [0, 2, 2, 4]
    assert pauses == [0.1, 0.2, 0.1]


def test_a_stream_that_ends_without_its_summary_is_opened_again(api: str) -> None:
    backend = ScriptedBackend([passes(0, 5)], [], [SUMMARY])
    assert collected(api, backend) == WHOLE
    assert backend.asked == [0, 5, 5]


def test_passes_that_are_missing_are_asked_for_again(api: str) -> None:
    backend = ScriptedBackend([passes(0, 2), passes(3, 5)], [passes(1, 5)], [passes(2, 2)], [passes(2, 5), SUMMARY])
    assert collected(api, backend) == WHOLE
    assert backend.asked == [0, 2, 2, 2]


def test_requests_that_come_before_the_summary_are_part_of_it(api: str) -> None:
    first, second = ScheduledRequests(requests=TIMES[:2]), ScheduledRequests(requests=TIMES[2:3])
    last = evolve(SUMMARY, requests=TIMES[3:])
    assert collected(api, ScriptedBackend([passes(0, 5), first, second, last])) == WHOLE
    # A summary that broke off comes again from its beginning.
    broken = ScriptedBackend([passes(0, 5), first, BROKEN], [first, second, last])
    assert collected(api, broken) == WHOLE
    incomplete = ScriptedBackend([passes(0, 5), second, last], [SUMMARY])
    assert collected(api, incomplete) == WHOLE


def test_a_service_that_is_not_there_is_given_up_soon(api: str) -> None:
    backend = ScriptedBackend(*[[BROKEN]] * 100)
    with pytest.raises(UnavailableError) as caught:
        collected(api, backend)
    assert caught.value is BROKEN
    assert len(backend.asked) == FIRST_ATTEMPT_COUNT


@pytest.mark.parametrize("reason", ["SHUTTING_DOWN", "STREAM_ENDED"])
def test_a_server_that_took_the_stream_is_waited_for_though_nothing_has_come(api: str, reason: str) -> None:
    """What comes first may take long: its server may go away meanwhile, and its successor takes a while."""
    backend = ScriptedBackend([UnavailableError("going", reason=reason)], *[[BROKEN]] * 100)
    with pytest.raises(UnavailableError) as caught:
        collected(api, backend)
    assert caught.value is BROKEN
    assert len(backend.asked) == ATTEMPT_COUNT


def test_a_service_that_does_not_come_back_is_given_up(api: str) -> None:
    backend = ScriptedBackend([passes(0, 3)], *[[]] * 100)
    with pytest.raises(UnavailableError, match="the stream ended at entry 3") as caught:
        collected(api, backend)
    assert caught.value.reason == "STREAM_ENDED"
    assert len(backend.asked) == ATTEMPT_COUNT


@pytest.mark.parametrize("rest", [[passes(3, 5, "2"), SUMMARY], [passes(3, 5), evolve(SUMMARY, estimator_version="2")]])
def test_answers_of_two_versions_are_never_mixed(api: str, rest: list[Step]) -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        collected(api, ScriptedBackend([passes(0, 3), BROKEN], rest))
    assert caught.value.reason == "ESTIMATOR_CHANGED"


def test_other_errors_end_a_schedule(api: str) -> None:
    refusal = FailedPreconditionError("no")
    with pytest.raises(FailedPreconditionError) as caught:
        collected(api, ScriptedBackend([passes(0, 3), refusal]))
    assert caught.value is refusal


def test_the_whole_of_it() -> None:
    assert whole_schedule(WHOLE) == ScheduleEstimate(passes=PASSES, summary=SUMMARY)
