"""Schedules that survive their server: the stream is opened again, at the pass after the last one that came.

Another server makes the same passes as long as names mean the same to it: a calibration that is asked for by its name
may bring the settings of the engine, and the times at which requests are replayed that arrive by time. What names mean
is not compared, so replicas that keep calibrations have to share them; a table in the request leaves nothing to names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

import attrs

from linkbound.client.backend import AsyncBackend, Backend
from linkbound.client.resuming import IndexedProgress, resumed, resumed_async
from linkbound.domain.schedule import (
    RequestTimes,
    ScheduledRequests,
    ScheduleEstimate,
    SchedulePart,
    SchedulePass,
    SchedulePasses,
    ScheduleRequest,
    ScheduleSummary,
)


class ScheduleProgress(IndexedProgress[ScheduleRequest, SchedulePart]):
    """Where a schedule is, and whether and when it may be asked for again."""

    stream_noun = "schedule"
    entry_noun = "entry"

    def __init__(self, request: ScheduleRequest, timeout_seconds: float | None) -> None:
        super().__init__(request.start_index, timeout_seconds)
        self._request = request
        self._requests: list[RequestTimes] = []
        self._is_finished = False

    @property
    def is_finished(self) -> bool:
        """Whether the summary has come."""
        return self._is_finished

    def next_request(self) -> ScheduleRequest:
        """The passes that are still to come; a summary that came in part comes again as a whole."""
        self._requests.clear()
        return attrs.evolve(self._request, start_index=self._next_index)

    def take(self, part: SchedulePart) -> SchedulePart:
        """`part`, which came; a summary with the requests that came before it.

        Raises UnavailableError where passes or requests are missing before it, FailedPreconditionError
        (ESTIMATOR_CHANGED) where other rules made it.
        """
        match part:
            case SchedulePasses():
                self._advance(part.start_index, part.end_index, part.estimator_version)
                return part
            case ScheduledRequests():
                self._requests.extend(part.requests)
                return part
            case ScheduleSummary():
                return self._whole(part)

    def _whole(self, summary: ScheduleSummary) -> ScheduleSummary:
        self._check_version(summary.estimator_version)
        whole = attrs.evolve(summary, requests=(*self._requests, *summary.requests))
        count, due = len(whole.requests), len(self._request.requests)
        if count != due:
            raise self._broken(f"its summary came with {count} of {due} requests")
        self._is_finished = True
        return whole


def scheduled(
    backend: Backend, request: ScheduleRequest, timeout_seconds: float | None
) -> Iterator[SchedulePass | ScheduleSummary]:
    """Every pass of `request`, then the summary, over as many streams as it takes."""
    for part in resumed(backend.schedule, ScheduleProgress(request, timeout_seconds)):
        yield from _entries(part)


async def scheduled_async(
    backend: AsyncBackend, request: ScheduleRequest, timeout_seconds: float | None
) -> AsyncIterator[SchedulePass | ScheduleSummary]:
    """Every pass of `request`, then the summary, over as many streams as it takes."""
    async for part in resumed_async(backend.schedule, ScheduleProgress(request, timeout_seconds)):
        for entry in _entries(part):
            yield entry


def whole_schedule(entries: Iterable[SchedulePass | ScheduleSummary]) -> ScheduleEstimate:
    """What came one by one as one answer; the summary came last."""
    passes: list[SchedulePass] = []
    for entry in entries:
        if isinstance(entry, ScheduleSummary):
            return ScheduleEstimate(passes=tuple(passes), summary=entry)
        passes.append(entry)
    raise ValueError("a schedule without its summary")


def _entries(part: SchedulePart) -> Iterable[SchedulePass | ScheduleSummary]:
    match part:
        case SchedulePasses():
            return part.passes
        case ScheduledRequests():
            return ()
        case ScheduleSummary():
            return (part,)
