"""Replays an engine's scheduler: arrivals in, passes out."""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import define, evolve

from estimator_service.core.schedule.engine import Engine, Plan
from estimator_service.core.schedule.limits import UNLIMITED, Limits, length_limit_tokens, limits_of
from estimator_service.core.schedule.passes import Pass, PassSeconds, ShareKind
from estimator_service.core.schedule.requests import Live
from estimator_service.core.schedule.skipping import largest_that, repeat_count
from estimator_service.core.schedule.violations import outgrown, replay_violations
from estimator_service.core.wanted import check_wanted
from linkbound.domain.engine import EngineRequest, SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError


def replay(
    scheduler: SchedulerSettings,
    requests: tuple[EngineRequest, ...],
    pass_seconds: PassSeconds | None = None,
    *,
    longest_repeat: int = UNLIMITED,
) -> Iterator[Pass]:
    """The passes that an engine makes of requests, in their order (`docs/formulas.md`, Schedule).

    Requests come in the order of their arrival. Equal passes come together, at most `longest_repeat` of them, so that
    the work depends on how often something changes and not on tokens. Between arrivals by pass the engine may have
    nothing to do: those passes have no rows. Between arrivals by time it waits, and no pass is counted.

    Raises InvalidArgumentError for an engine whose rules are not known, arrivals by time without `pass_seconds`, and
    requests that the engine takes for too long or would never finish; where that shows only as they compete for the
    cache, from the iterator.
    """
    limits = limits_of(scheduler)
    violations = tuple(replay_violations(limits, requests, has_pass_seconds=pass_seconds is not None))
    if violations:
        raise InvalidArgumentError(violations)
    return _Replay(limits=limits, requests=requests, pass_seconds=pass_seconds).passes(longest_repeat)


@define(kw_only=True)
class _Replay:
    """One run: `number` is the next pass, `seconds` when it starts, `arrived` how many requests the engine has seen."""

    limits: Limits
    requests: tuple[EngineRequest, ...]
    pass_seconds: PassSeconds | None
    number: int = 0
    seconds: float = 0.0
    arrived: int = 0

    def passes(self, longest_repeat: int) -> Iterator[Pass]:
        engine = Engine.idle(self.limits)
        while True:
            check_wanted()
            self._let_in(engine)
            most = min(longest_repeat, self._passes_to_arrival())
            if engine.has_requests:
                yield self._step(engine, most)
            elif self.arrived == len(self.requests):
                return
            elif self._arrives_by_time():
                self.seconds = self._arrival_seconds()
            else:
                yield self._idle(most)

    def _step(self, engine: Engine, most: int) -> Pass:
        plan = engine.plan()
        for live in plan.preempted:
            if not self.limits.fits_alone(live.tokens):
                raise InvalidArgumentError([outgrown(self.limits, self.requests[live.index], live.index, live.tokens)])
        found = self._pass_of(engine, plan, repeat_count(engine, plan, most))
        found = self._until_arrival(found)
        first, finished = engine.commit(plan, found.repeat)
        self.number += found.repeat
        if self.pass_seconds is not None and found.requests:
            self.seconds += self._checked_seconds(found)
        if not first and not finished:
            return found
        return evolve(found, first_tokens=_indices(first), finished=_indices(finished))

    def _pass_of(self, engine: Engine, plan: Plan, repeat: int) -> Pass:
        accepted = self.limits.acceptance
        cohort = engine.cohort
        count = len(cohort.lives)
        return Pass(
            number=self.number,
            repeat=repeat,
            requests=cohort.requests + _indices(plan.lives),
            rows=(cohort.rows,) * count + tuple(plan.rows),
            contexts_before=(*cohort.contexts(), *[live.computed for live in plan.lives]),
            kinds=(ShareKind.GENERATING,) * count + tuple(plan.kinds),
            accepted_draft_tokens_per_pass=accepted.numerator / accepted.denominator,
            preempted=_indices(plan.preempted),
            start_seconds=None if self.pass_seconds is None else self.seconds,
        )

    def _until_arrival(self, found: Pass) -> Pass:
        """As many of the passes as start before the next request arrives by time."""
        if found.repeat == 1 or not self._arrives_by_time():
            return found
        arrival, start = self._arrival_seconds(), self.seconds

        def starts_before_arrival(repeat: int) -> bool:
            return start + self._checked_seconds(found.repeated(repeat - 1)) < arrival

        return found.repeated(largest_that(starts_before_arrival, found.repeat))

    def _idle(self, repeat: int) -> Pass:
        start = None if self.pass_seconds is None else self.seconds
        found = Pass(
            number=self.number, repeat=repeat, requests=(), rows=(), contexts_before=(), kinds=(), start_seconds=start
        )
        self.number += repeat
        return found

    def _let_in(self, engine: Engine) -> None:
        """Queue the requests that have arrived as the next pass starts."""
        while self.arrived < len(self.requests):
            request = self.requests[self.arrived]
            if (request.arrival_pass or 0) > self.number or (request.arrival_seconds or 0.0) > self.seconds:
                return
            limit = length_limit_tokens(request, self.limits)
            engine.waiting.append(Live(index=self.arrived, tokens=request.prompt_tokens, limit=limit))
            self.arrived += 1

    def _passes_to_arrival(self) -> int:
        """Passes before the next request arrives by pass."""
        if self.arrived == len(self.requests):
            return UNLIMITED
        arrival = self.requests[self.arrived].arrival_pass
        return UNLIMITED if arrival is None else arrival - self.number

    def _arrives_by_time(self) -> bool:
        return self.arrived < len(self.requests) and self.requests[self.arrived].arrival_seconds is not None

    def _arrival_seconds(self) -> float:
        return self.requests[self.arrived].arrival_seconds or 0.0

    def _checked_seconds(self, found: Pass) -> float:
        """The seconds of passes. A clock that does not run forward is a fault of who gave it."""
        seconds = 0.0 if self.pass_seconds is None else self.pass_seconds(found)
        if not 0 <= seconds < math.inf:
            raise ValueError(f"passes take {seconds} seconds")
        return seconds


def _indices(lives: list[Live]) -> tuple[int, ...]:
    return tuple([live.index for live in lives])
