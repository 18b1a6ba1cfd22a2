"""When requests get their tokens: a replay read as spans of passes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from estimator_service.core.engine_times.work import NO_WORK, Work, pass_work
from estimator_service.core.schedule import OutcomeCounter, Pass, PassSeconds, RequestOutcome, replay
from linkbound.domain.engine import EngineRequest, SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError, Violation

SAME_TIME = 1e-9
"""A pass that starts later than this share after the one before it ended: the engine was idle between them."""

LARGEST_KEPT_SHARE_COUNT = 10_000_000
"""Shares of all stretches, one for each request in one, that a question may keep: some hundred bytes each."""


@frozen(kw_only=True)
class RequestSpan:
    """Stretches of passes from `begin` on, the one with the first token and the one with the last, by their index.

    `begin` is the first stretch after the arrival, or where arrivals have times the first one since the engine was
    idle; `waited_seconds`, 0 or below, is less what of that was before the arrival. `arrival` is the first stretch that
    starts after the arrival.
    """

    begin: int
    arrival: int
    first: int
    last: int
    waited_seconds: float = 0.0


@frozen(kw_only=True)
class Timeline:
    """The stretches of a replay, where each request is in them, and what became of it."""

    passes: tuple[Pass, ...]
    spans: tuple[RequestSpan, ...]
    outcomes: tuple[RequestOutcome, ...]
    pass_count: int

    @property
    def last_request(self) -> int:
        """The request whose first token is the last one; of several, the last of them."""
        return max(range(len(self.spans)), key=lambda index: (self.spans[index].first, index))

    def is_as(self, other: Timeline) -> bool:
        """Whether the same requests have the same rows of the same passes, whenever these start."""
        return self.spans == other.spans and self.shares() == other.shares()

    @property
    def idle_count(self) -> int:
        """Stretches without rows before the first request arrives."""
        return next(index for index, found in enumerate(self.passes) if found.requests)

    def shares(self, stretch_count: int | None = None) -> list[tuple[object, ...]]:
        """What the first so many stretches since the first arrival hold, apart from when they start."""
        begin = self.idle_count
        end = None if stretch_count is None else begin + stretch_count
        return [(found.requests, found.rows, found.contexts_before, found.repeat) for found in self.passes[begin:end]]


def timeline(
    scheduler: SchedulerSettings,
    requests: tuple[EngineRequest, ...],
    pass_seconds: PassSeconds | None = None,
    sent: tuple[EngineRequest, ...] | None = None,
) -> Timeline:
    """Replay `requests` and find their tokens (`docs/formulas.md`, Engine times).

    `pass_seconds`, seconds of all passes of a stretch, is needed where requests arrive by time. `sent` are the requests
    with the arrivals that times count from, where the engine sees them later. Raises InvalidArgumentError for what the
    engine refuses, and for a replay that has too many shares to be kept.
    """
    in_seconds = requests[0].arrival_seconds is not None
    passes = tuple(_kept(replay(scheduler, requests, pass_seconds if in_seconds else None)))
    counter = OutcomeCounter.of(scheduler, requests)
    first, last = [0] * len(requests), [0] * len(requests)
    for index, found in enumerate(passes):
        counter.count(found)
        for request in found.first_tokens:
            first[request] = index
        for request in found.finished:
            last[request] = index
    begins = _begins_by_time(passes, first, pass_seconds) if in_seconds else _begins_by_pass(passes, sent or requests)
    return Timeline(
        passes=passes,
        spans=tuple(
            RequestSpan(
                begin=begins[index],
                first=first[index],
                last=last[index],
                arrival=_arrival(passes, begins[index], request),
                waited_seconds=_waited_seconds(passes[begins[index]], request),
            )
            for index, request in enumerate(sent or requests)
        ),
        outcomes=counter.outcomes(),
        pass_count=counter.pass_count,
    )


def check_kept(share_count: int) -> None:
    """Raise InvalidArgumentError for more shares than a question may keep (`docs/formulas.md`, Engine times)."""
    if share_count > LARGEST_KEPT_SHARE_COUNT:
        raise InvalidArgumentError(
            [
                Violation(
                    "requests",
                    f"are in more than {LARGEST_KEPT_SHARE_COUNT} places of passes together, which times would need to"
                    " be kept of; passes alone are not kept",
                )
            ]
        )


def _kept(passes: Iterable[Pass]) -> Iterator[Pass]:
    share_count = 0
    for found in passes:
        share_count += len(found.requests)
        check_kept(share_count)
        yield found


def _arrival(passes: Sequence[Pass], begin: int, request: EngineRequest) -> int:
    if request.arrival_seconds is None:
        return begin
    arrival = request.arrival_seconds
    return next(index for index in range(begin, len(passes)) if (passes[index].start_seconds or 0.0) >= arrival)


def _waited_seconds(begin: Pass, request: EngineRequest) -> float:
    if begin.start_seconds is None or request.arrival_seconds is None:
        return 0.0
    return begin.start_seconds - request.arrival_seconds


def _begins_by_pass(passes: Sequence[Pass], requests: Sequence[EngineRequest]) -> list[int]:
    """A stretch ends wherever a request arrives, so that each of them has one to begin with."""
    begins: list[int] = []
    index = 0
    for request in requests:
        while passes[index].number < (request.arrival_pass or 0):
            index += 1
        begins.append(index)
    return begins


def _begins_by_time(passes: Sequence[Pass], firsts: Sequence[int], pass_seconds: PassSeconds | None) -> list[int]:
    """The start of the busy time in which each request gets its first token."""
    busy_since: list[int] = []
    end = -1.0
    for index, found in enumerate(passes):
        start = found.start_seconds or 0.0
        is_idle_before = start > end + SAME_TIME * max(1.0, end)
        busy_since.append(index if is_idle_before else busy_since[-1])
        end = start + (0.0 if pass_seconds is None else pass_seconds(found))
    return [busy_since[first] for first in firsts]


def running_sums(values: Iterable[float]) -> list[float]:
    """Sums of the first so many stretches, from none to all (`docs/formulas.md`, Engine times)."""
    return list(itertools.accumulate(values, initial=0.0))


def running_work(passes: Sequence[Pass]) -> list[Work]:
    """Work of the first so many stretches, from none to all (`docs/formulas.md`, Engine times)."""
    return list(itertools.accumulate(map(pass_work, passes), Work.plus, initial=NO_WORK))
