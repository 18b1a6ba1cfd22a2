"""When a watch goes on, where, and when it gives up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any

import pytest

from linkbound.client.run_watches import watched, watched_async
from linkbound.domain.errors import DeadlineExceededError, Error, OutOfRangeError, UnavailableError
from linkbound.domain.run_watch import RunUpdate, WatchRunsRequest

BROKEN = UnavailableError("gone")
REFUSED = OutOfRangeError("that is compacted")


class ScriptedBackend:
    """Plays one stream after another; an error in one breaks it."""

    def __init__(self, *streams: Sequence[RunUpdate | Error]) -> None:
        self._streams = list(streams)
        self.asked: list[int] = []

    def watch_runs(self, asked: WatchRunsRequest, _timeout_seconds: float | None) -> Generator[RunUpdate, None, None]:
        self.asked.append(asked.start_revision)
        for step in self._streams.pop(0):
            if isinstance(step, Error):
                raise step
            yield step


class AsyncScriptedBackend:
    def __init__(self, backend: ScriptedBackend) -> None:
        self._backend = backend

    async def watch_runs(
        self, asked: WatchRunsRequest, timeout_seconds: float | None
    ) -> AsyncGenerator[RunUpdate, None]:
        for update in self._backend.watch_runs(asked, timeout_seconds):
            yield update


def told(api: str, backend: ScriptedBackend, timeout_seconds: float | None = None) -> tuple[list[int], Error]:
    """The revisions that are told, and the error that ends the watch; nothing else does."""
    played: Any = backend
    stand_in: Any = AsyncScriptedBackend(backend)
    revisions: list[int] = []

    def note(update: RunUpdate) -> None:
        revisions.append(update.revision)

    def play() -> None:
        for update in watched(played, WatchRunsRequest(), timeout_seconds):
            note(update)

    async def play_on_an_event_loop() -> None:
        async for update in watched_async(stand_in, WatchRunsRequest(), timeout_seconds):
            note(update)

    with pytest.raises(Error) as caught:
        play() if api == "blocking" else asyncio.run(play_on_an_event_loop())
    return revisions, caught.value


@pytest.fixture(params=["blocking", "asyncio"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No test waits; the pauses are noted."""
    noted: list[float] = []

    async def sleep(seconds: float) -> None:
        noted.append(seconds)

    monkeypatch.setattr(time, "sleep", noted.append)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    return noted


def updates(*revisions: int) -> list[RunUpdate | Error]:
    return [RunUpdate(revision=revision) for revision in revisions]


def test_a_watch_goes_on_behind_the_last_revision(api: str, pauses: list[float]) -> None:
    backend = ScriptedBackend([*updates(0, 3), BROKEN], [BROKEN], [BROKEN], [*updates(4), BROKEN], [REFUSED])
    assert told(api, backend) == ([0, 3, 4], REFUSED)
    assert backend.asked == [0, 4, 4, 4, 5]
    # Each pause is twice the one before, and the first again after an answer.
    assert pauses == [0.1, 0.2, 0.4, 0.1]


def test_a_stream_that_ends_by_itself_is_opened_again(api: str) -> None:
    backend = ScriptedBackend(updates(2), [REFUSED])
    assert told(api, backend) == ([2], REFUSED)
    assert backend.asked == [0, 3]


@pytest.mark.parametrize("reason", ["", "SHUTTING_DOWN", "STREAM_ENDED"])
def test_a_service_that_has_told_nothing_is_given_up_soon(api: str, reason: str) -> None:
    gone = UnavailableError("gone", reason=reason)
    backend = ScriptedBackend(*[[gone]] * 100)
    assert told(api, backend) == ([], gone)
    assert len(backend.asked) == 5


def test_a_service_that_has_is_waited_for_longer(api: str, pauses: list[float]) -> None:
    backend = ScriptedBackend([*updates(0), BROKEN], *[[BROKEN]] * 100)
    assert told(api, backend) == ([0], BROKEN)
    assert len(backend.asked) == 40
    assert max(pauses) == 2.0
    assert sum(pauses) > 60


def test_streams_that_end_at_once_are_given_up_too(api: str) -> None:
    revisions, error = told(api, ScriptedBackend(*[[]] * 100))
    assert (revisions, error.reason) == ([], "STREAM_ENDED")
    assert error.message == "the watch ended, which it never does by itself"


def test_the_timeout_is_that_of_the_whole_watch(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 1000, 4))
    monkeypatch.setattr("linkbound.client.resuming.time.monotonic", lambda: next(now))
    backend = ScriptedBackend([*updates(7), BROKEN], *[[BROKEN]] * 100)
    revisions, error = told(api, backend, timeout_seconds=10)
    assert revisions == [7]
    assert isinstance(error, DeadlineExceededError)
    assert error.message == "the watch is over; it is at revision 7"
