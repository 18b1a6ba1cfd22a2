"""Passes as they are shown, and what becomes of each request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import define, frozen

from estimator_service.core.schedule.limits import length_limit_tokens, limits_of
from estimator_service.core.schedule.passes import Pass
from linkbound.domain.engine import EngineRequest, SchedulerSettings
from linkbound.domain.schedule import PassShare, SchedulePass


def stretches(passes: Iterable[Pass]) -> Iterator[tuple[Pass, ...]]:
    """Passes in a row that schedule the same rows of the same requests (`docs/formulas.md`, Schedule).

    A replay parts such passes where what the rows are changes: where a prompt ends, or someone was admitted.
    """
    stretch: list[Pass] = []
    for found in passes:
        if stretch and (found.requests, found.rows) != (stretch[0].requests, stretch[0].rows):
            yield tuple(stretch)
            stretch.clear()
        stretch.append(found)
    if stretch:
        yield tuple(stretch)


def schedule_pass(stretch: tuple[Pass, ...]) -> SchedulePass:
    """A stretch as it is answered, without times (`docs/formulas.md`, Schedule)."""
    shares = zip(stretch[0].requests, stretch[0].rows, strict=True)
    return SchedulePass(
        scheduled=tuple(PassShare(request, rows) for request, rows in shares),
        repeat=sum(found.repeat for found in stretch),
    )


@frozen(kw_only=True)
class RequestOutcome:
    """Passes, from 0, that give a request its first and last token, and what happened on the way."""

    request: int
    first_token_pass: int
    last_token_pass: int
    preemption_count: int
    output_tokens: int


@define
class OutcomeCounter:
    """Follows every request through the passes of one replay, as they come."""

    _preemption_counts: list[int]
    _first_token_passes: list[int]
    _last_token_passes: list[int]
    _output_tokens: list[int]
    pass_count: int = 0

    @classmethod
    def of(cls, scheduler: SchedulerSettings, requests: tuple[EngineRequest, ...]) -> OutcomeCounter:
        """A counter for a replay of these requests that has not begun."""
        limits = limits_of(scheduler)
        count = len(requests)
        outputs = [length_limit_tokens(request, limits) - request.prompt_tokens for request in requests]
        return cls([0] * count, [-1] * count, [-1] * count, outputs)

    def count(self, found: Pass) -> None:
        """Take note of the next pass of the replay."""
        last = found.number + found.repeat - 1
        self.pass_count = last + 1
        for request in found.preempted:
            self._preemption_counts[request] += 1
        for request in found.first_tokens:
            self._first_token_passes[request] = last
        for request in found.finished:
            self._last_token_passes[request] = last

    def outcomes(self) -> tuple[RequestOutcome, ...]:
        """What became of every request, once the replay has ended."""
        return tuple(
            RequestOutcome(
                request=request,
                first_token_pass=first,
                last_token_pass=last,
                preemption_count=preemptions,
                output_tokens=output,
            )
            for request, (first, last, preemptions, output) in enumerate(
                zip(
                    self._first_token_passes,
                    self._last_token_passes,
                    self._preemption_counts,
                    self._output_tokens,
                    strict=True,
                )
            )
        )
