"""Streams that survive their server: one that broke is opened again, behind the last of what came.

Pure but for the clock: one class keeps where a stream is, and the two APIs only differ in how they wait.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from typing import Generic, TypeVar

from linkbound.client.backoff import pause_seconds
from linkbound.domain.errors import DeadlineExceededError, FailedPreconditionError, UnavailableError

FIRST_ATTEMPT_COUNT = 5
"""Attempts while no server has taken the stream; as many as gRPC makes of a unary call."""
ATTEMPT_COUNT = 10
"""Attempts without progress once one has: a server that is replaced takes a while."""
REASONS_OF_TAKEN_STREAMS = ("SHUTTING_DOWN", "STREAM_ENDED")
"""Of errors that come from a server, or from one that was there: it is replaced, though nothing has come of it yet."""

RequestT = TypeVar("RequestT")
PartT = TypeVar("PartT")


class StreamProgress(ABC, Generic[RequestT, PartT]):
    """Where a stream is, and whether and when it may be asked for again.

    `attempt_count` is the number of attempts without progress once a server has taken the stream, which an error says
    whose reason is among `reasons_of_taken_streams`.
    """

    attempt_count = ATTEMPT_COUNT
    reasons_of_taken_streams: tuple[str, ...] = REASONS_OF_TAKEN_STREAMS

    def __init__(self, timeout_seconds: float | None) -> None:
        self._give_up_time = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self._failure_count = 0
        self._was_taken = False

    @property
    @abstractmethod
    def is_finished(self) -> bool:
        """Whether everything has come."""

    @abstractmethod
    def next_request(self) -> RequestT:
        """The request of a stream that is opened now: for what is still to come."""

    @abstractmethod
    def take(self, part: PartT) -> PartT:
        """`part`, which came. Raises UnavailableError where something is missing before it."""

    @abstractmethod
    def check_finished(self) -> None:
        """Raise UnavailableError where a stream ended before everything had come."""

    @property
    def remaining_seconds(self) -> float | None:
        """Time until the caller gives up; None: never. Raises DeadlineExceededError once that is past."""
        if self._give_up_time is None:
            return None
        remaining = self._give_up_time - time.monotonic()
        if remaining <= 0:
            raise DeadlineExceededError(self._too_late_message())
        return remaining

    def pause_seconds_after(self, error: UnavailableError) -> float:
        """How long to wait before the next attempt. Raises `error` once there were enough of them."""
        self._failure_count += 1
        self._was_taken = self._was_taken or error.reason in self.reasons_of_taken_streams
        if self._failure_count >= (self.attempt_count if self._was_taken else FIRST_ATTEMPT_COUNT):
            raise error
        pause = pause_seconds(self._failure_count)
        remaining = self.remaining_seconds
        return pause if remaining is None else min(pause, remaining)

    @abstractmethod
    def _too_late_message(self) -> str:
        """What is said once the time is over: where the stream is."""

    def _note_progress(self) -> None:
        self._was_taken = True
        self._failure_count = 0


class IndexedProgress(StreamProgress[RequestT, PartT]):
    """Progress through entries that are numbered, all made by one version of the formulas.

    `stream_noun` and `entry_noun` name both in messages: "sweep", "point".
    """

    stream_noun: str
    entry_noun: str

    def __init__(self, start_index: int, timeout_seconds: float | None) -> None:
        super().__init__(timeout_seconds)
        self._next_index = start_index
        self._estimator_version = ""

    def check_finished(self) -> None:
        """Raise UnavailableError where a stream ended before everything had come."""
        if not self.is_finished:
            raise self._broken(f"the stream ended at {self.entry_noun} {self._next_index}")

    def _too_late_message(self) -> str:
        return f"the {self.stream_noun} was not done in time; it is at {self.entry_noun} {self._next_index}"

    def _advance(self, start_index: int, end_index: int, estimator_version: str) -> None:
        """Note entries that came, one at least.

        Raises UnavailableError where others are missing before them, FailedPreconditionError (ESTIMATOR_CHANGED) where
        other formulas made them.
        """
        if start_index != self._next_index or end_index <= start_index:
            noun = self.entry_noun
            raise self._broken(f"{noun} {start_index} came where {noun} {self._next_index} was due")
        self._check_version(estimator_version)
        self._next_index = end_index
        self._note_progress()

    def _check_version(self, estimator_version: str) -> None:
        if self._estimator_version not in ("", estimator_version):
            raise FailedPreconditionError(
                f"the {self.stream_noun} began with version {self._estimator_version} of the formulas and would go on"
                f" with {estimator_version} at {self.entry_noun} {self._next_index}",
                reason="ESTIMATOR_CHANGED",
                metadata={"nextIndex": str(self._next_index)},
            )
        self._estimator_version = estimator_version

    def _broken(self, what: str) -> UnavailableError:
        return UnavailableError(f"the {self.stream_noun} broke: {what}", reason="STREAM_ENDED")


def resumed(
    open_stream: Callable[[RequestT, float | None], Generator[PartT, None, None]],
    progress: StreamProgress[RequestT, PartT],
) -> Generator[PartT, None, None]:
    """Every part, over as many streams as it takes."""
    while not progress.is_finished:
        try:
            with closing(open_stream(progress.next_request(), progress.remaining_seconds)) as parts:
                for part in parts:
                    yield progress.take(part)
            progress.check_finished()
        except UnavailableError as error:
            time.sleep(progress.pause_seconds_after(error))


async def resumed_async(
    open_stream: Callable[[RequestT, float | None], AsyncGenerator[PartT, None]],
    progress: StreamProgress[RequestT, PartT],
) -> AsyncGenerator[PartT, None]:
    """Every part, over as many streams as it takes."""
    import asyncio

    while not progress.is_finished:
        try:
            async with aclosing(open_stream(progress.next_request(), progress.remaining_seconds)) as parts:
                async for part in parts:
                    yield progress.take(part)
            progress.check_finished()
        except UnavailableError as error:
            await asyncio.sleep(progress.pause_seconds_after(error))
