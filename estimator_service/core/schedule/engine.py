"""The state of an engine, and what it puts into its next pass."""

from __future__ import annotations

from collections import deque

from attrs import Factory, define

from estimator_service.core.elementwise import ceil_quotient, smaller
from estimator_service.core.schedule.cohort import Cohort
from estimator_service.core.schedule.limits import UNLIMITED, Limits
from estimator_service.core.schedule.passes import ShareKind
from estimator_service.core.schedule.requests import Live


@define(kw_only=True)
class Plan:
    """The next pass: the cohort, then these requests with their rows, and what the choice did to others.

    `stands_alone`: the pass after it may differ whatever happens, since someone came, went, or goes on to generate.
    """

    lives: list[Live] = Factory(list)
    rows: list[int] = Factory(list)
    kinds: list[ShareKind] = Factory(list)
    preempted: list[Live] = Factory(list)
    stands_alone: bool = False

    def take(self, live: Live, rows: int) -> None:
        """Give `rows` to a request."""
        if live.is_generating:
            kind = ShareKind.GENERATING
        elif rows < live.tokens - live.computed:
            kind = ShareKind.PROMPT
        else:
            kind, self.stands_alone = ShareKind.PROMPT_END, True
        self.lives.append(live)
        self.rows.append(rows)
        self.kinds.append(kind)


@define(kw_only=True)
class Engine:
    """Requests that run, in order of admission, and that wait, first come first served, and the free blocks.

    Those that run are the cohort and, behind it, `others`.
    """

    limits: Limits
    cohort: Cohort
    free_blocks: int
    others: list[Live] = Factory(list)
    waiting: deque[Live] = Factory(deque)

    @classmethod
    def idle(cls, limits: Limits) -> Engine:
        """An engine without requests."""
        free = UNLIMITED if limits.usable_blocks is None else limits.usable_blocks
        return cls(limits=limits, cohort=Cohort(limits=limits), free_blocks=free)

    @property
    def running_count(self) -> int:
        """Requests that run."""
        return len(self.cohort.lives) + len(self.others)

    @property
    def has_requests(self) -> bool:
        """Whether any request has arrived and not finished."""
        return bool(self.waiting) or self.running_count > 0

    def plan(self) -> Plan:
        """Choose the next pass and claim its blocks: running requests first, then, if none was preempted, waiting ones.

        The plan is empty where the request that came first outgrew the cache, which it then has lost.
        """
        plan = Plan()
        cap = self._long_prompt_rows()
        if self.limits.usable_blocks is not None and self.cohort.lives:
            needed = self.cohort.blocks_needed(1)
            if needed > self.free_blocks:
                self.others = self.cohort.part() + self.others
            else:
                self.cohort.blocks += needed
                self.free_blocks -= needed
        rows_left = self.limits.batch_tokens - len(self.cohort.lives) * self.cohort.rows
        rows_left = self._plan_others(plan, cap, rows_left)
        if not plan.preempted:
            self._plan_waiting(plan, cap, rows_left)
        return plan

    def commit(self, plan: Plan, repeat: int) -> tuple[list[Live], list[Live]]:
        """Carry out the planned pass `repeat` times, and return who got the first token, and who finished, in the last.

        A pass may be repeated no more often than it stays the same.
        """
        held = self.cohort.blocks
        self.cohort.advance(repeat)
        self.free_blocks -= self.cohort.blocks - held
        finished, parted = self.cohort.leave()
        first = self._commit_others(plan, repeat)
        gone = [live for live in plan.lives if live.has_finished]
        if gone:
            self.others = [live for live in self.others if not live.has_finished]
        finished += gone
        for live in finished:
            self.free_blocks += live.blocks
        self._gather(parted)
        return first, finished

    def claim(self, live: Live, tokens: int) -> bool:
        """Hold blocks for `tokens` of a request and the next drafts, if as many are free."""
        if self.limits.usable_blocks is None:
            return True
        needed = self.limits.blocks_for(tokens) - live.blocks
        if needed > self.free_blocks:
            return False
        if needed > 0:
            live.blocks += needed
            self.free_blocks -= needed
        return True

    def _long_prompt_rows(self) -> int:
        """The most rows of one request in the next pass: a threshold is there so that others are not held up."""
        is_lone = self.running_count + len(self.waiting) == 1
        return UNLIMITED if is_lone and not self.limits.rules.caps_lone_request else self.limits.long_prompt_rows

    def _plan_others(self, plan: Plan, cap: int, rows_left: int) -> int:
        limits = self.limits
        index = 0
        while index < len(self.others) and rows_left:
            live = self.others[index]
            wanted = 1 + limits.draft_tokens if live.is_generating else live.tokens - live.computed
            rows = min(wanted, cap, rows_left, limits.length_tokens - 1 - live.computed)
            while not self.claim(live, live.computed + rows):
                last = self.others.pop()
                self._preempt(last, plan)
                if last is live:
                    return rows_left
            plan.take(live, rows)
            rows_left -= rows
            index += 1
        return rows_left

    def _preempt(self, live: Live, plan: Plan) -> None:
        self.free_blocks += live.blocks
        live.restart()
        self.waiting.appendleft(live)
        plan.preempted.append(live)
        plan.stands_alone = True

    def _plan_waiting(self, plan: Plan, cap: int, rows_left: int) -> None:
        limits = self.limits
        pads = self._pads_single_token(plan)
        while self.waiting and rows_left and self.running_count < limits.requests:
            live = self.waiting[0]
            rows = live.tokens
            if pads and rows == 1:
                rows = 1 + limits.draft_tokens
                if rows > rows_left:
                    return
            rows = min(rows, cap, rows_left)
            if not self._admit(live, rows):
                return
            plan.take(live, rows)
            plan.stands_alone = True
            rows_left -= rows

    def _pads_single_token(self, plan: Plan) -> bool:
        """Whether a request of a single token gets as many rows as one that generates, so that all rows are alike."""
        limits = self.limits
        return (
            limits.draft_tokens > 0
            and (bool(self.cohort.lives) or bool(plan.kinds))
            and all(kind is ShareKind.GENERATING for kind in plan.kinds)
            and 2 + limits.draft_tokens <= limits.length_tokens
        )

    def _admit(self, live: Live, rows: int) -> bool:
        limits = self.limits
        whole = ceil_quotient(smaller(live.tokens, limits.length_tokens), limits.block_tokens)
        if whole > self.free_blocks or not self.claim(live, rows):
            return False
        self.others.append(self.waiting.popleft())
        return True

    def _commit_others(self, plan: Plan, repeat: int) -> list[Live]:
        acceptance = self.limits.acceptance
        first: list[Live] = []
        for live, rows, kind in zip(plan.lives, plan.rows, plan.kinds, strict=True):
            if repeat > 1:
                self.claim(live, live.computed_after(rows, kind, repeat - 1, acceptance) + rows)
            if kind is ShareKind.GENERATING:
                live.generate(rows, repeat, acceptance)
            elif kind is ShareKind.PROMPT:
                live.computed += rows * repeat
            else:
                if not live.has_first_token:
                    first.append(live)
                live.end_prompt()
        return first

    def _gather(self, parted: list[Live]) -> None:
        """Put who parted from the cohort before the others, and take into it who can join."""
        if parted:
            self.others = parted + self.others
        size = len(self.cohort.lives)
        count = 0
        while count < len(self.others) and self.cohort.takes(self.others[count], size + count):
            count += 1
        if count:
            self.cohort.join(self.others[:count])
            del self.others[:count]
