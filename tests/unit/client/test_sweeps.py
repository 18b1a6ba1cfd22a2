"""When a sweep goes on, where, and when it gives up."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any

import pytest

from linkbound.client.backoff import LONGEST_PAUSE_SECONDS
from linkbound.client.resuming import ATTEMPT_COUNT, FIRST_ATTEMPT_COUNT
from linkbound.client.sweeps import swept, swept_async
from linkbound.domain.errors import DeadlineExceededError, Error, FailedPreconditionError, UnavailableError
from linkbound.domain.link import Link
from linkbound.domain.sweep import SweepAxis, SweepColumns, SweepRange, SweepRequest, SweepVariable
from linkbound.domain.workload import PrefillWorkload

TOTAL = 10
BROKEN = UnavailableError("gone")


def request(start_index: int = 0) -> SweepRequest:
    axis = SweepAxis(variable=SweepVariable.PROMPT_TOKENS, range=SweepRange(first=1, step=1, value_count=TOTAL))
    return SweepRequest(
        workload=PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=1),
        link=Link(line_rate_bits_per_second=1),
        axes=(axis,),
        start_index=start_index,
    )


def stretch(start_index: int, point_count: int, version: str = "1") -> SweepColumns:
    return SweepColumns(
        start_index=start_index,
        total_point_count=TOTAL,
        sent_bytes_per_rank=array("q", range(point_count)),
        network_seconds=array("d", range(point_count)),
        extra_ttft_lower_seconds=array("d"),
        extra_ttft_upper_seconds=array("d"),
        infeasible_indices=array("q"),
        estimator_version=version,
        assumptions=(f"from {start_index}",),
    )


class ScriptedBackend:
    """Plays one stream after another; an error in one breaks it."""

    def __init__(self, *streams: Sequence[SweepColumns | Error]) -> None:
        self._streams = list(streams)
        self.asked: list[int] = []

    def sweep(self, asked: SweepRequest, _timeout_seconds: float | None) -> Generator[SweepColumns, None, None]:
        self.asked.append(asked.start_index)
        for step in self._streams.pop(0):
            if isinstance(step, Error):
                raise step
            yield step


class AsyncScriptedBackend:
    def __init__(self, backend: ScriptedBackend) -> None:
        self._backend = backend

    async def sweep(self, asked: SweepRequest, timeout_seconds: float | None) -> AsyncGenerator[SweepColumns, None]:
        for columns in self._backend.sweep(asked, timeout_seconds):
            yield columns


def collected(api: str, backend: ScriptedBackend, timeout_seconds: float | None = None) -> list[SweepColumns]:
    played: Any = backend
    if api == "blocking":
        return list(swept(played, request(), timeout_seconds))

    async def collect() -> list[SweepColumns]:
        stand_in: Any = AsyncScriptedBackend(backend)
        return [columns async for columns in swept_async(stand_in, request(), timeout_seconds)]

    return asyncio.run(collect())


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


def test_a_stream_that_breaks_is_opened_again_where_it_was(api: str, pauses: list[float]) -> None:
    backend = ScriptedBackend([stretch(0, 3), BROKEN], [BROKEN], [BROKEN], [stretch(3, 3), BROKEN], [stretch(6, 4)])
    received = collected(api, backend)
    assert backend.asked == [0, 3, 3, 3, 6]
    assert [columns.start_index for columns in received] == [0, 3, 6]
    # What is assumed stands in the first stretch alone, however many streams it took.
    assert [columns.assumptions for columns in received] == [("from 0",), (), ()]
    # Each pause is twice the one before, and the first again after progress.
    assert pauses == [0.1, 0.2, 0.4, 0.1]


def test_a_stream_that_ends_early_is_opened_again(api: str) -> None:
    backend = ScriptedBackend([stretch(0, 3)], [], [stretch(3, 7)])
    assert [columns.point_count for columns in collected(api, backend)] == [3, 7]


def test_points_that_are_missing_are_asked_for_again(api: str) -> None:
    backend = ScriptedBackend([stretch(0, 3), stretch(4, 6)], [stretch(2, 8)], [stretch(3, 0)], [stretch(3, 7)])
    assert [columns.start_index for columns in collected(api, backend)] == [0, 3]
    assert backend.asked == [0, 3, 3, 3]


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


def test_a_service_that_does_not_come_back_is_given_up(api: str, pauses: list[float]) -> None:
    backend = ScriptedBackend([stretch(0, 3), BROKEN], *[[BROKEN]] * 100)
    with pytest.raises(UnavailableError):
        collected(api, backend)
    assert len(backend.asked) == ATTEMPT_COUNT
    assert max(pauses) == LONGEST_PAUSE_SECONDS


def test_other_errors_end_a_sweep(api: str) -> None:
    refusal = FailedPreconditionError("no")
    with pytest.raises(FailedPreconditionError) as caught:
        collected(api, ScriptedBackend([stretch(0, 3), refusal]))
    assert caught.value is refusal


def test_answers_of_two_versions_are_never_mixed(api: str) -> None:
    backend = ScriptedBackend([stretch(0, 3, "1"), BROKEN], [stretch(3, 7, "2")])
    with pytest.raises(FailedPreconditionError) as caught:
        collected(api, backend)
    assert caught.value.reason == "ESTIMATOR_CHANGED"
    assert caught.value.metadata == {"nextIndex": "3"}


def test_the_timeout_is_that_of_the_whole_sweep(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 4))
    monkeypatch.setattr("linkbound.client.resuming.time.monotonic", lambda: next(now))
    backend = ScriptedBackend([stretch(0, 3), BROKEN], *[[BROKEN]] * 100)
    with pytest.raises(DeadlineExceededError, match="it is at point 3"):
        collected(api, backend, timeout_seconds=10)
