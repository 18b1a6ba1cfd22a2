"""Requests that generate side by side, followed together instead of one by one."""

from __future__ import annotations

from attrs import Factory, define

from estimator_service.core.elementwise import ceil_quotient, smaller
from estimator_service.core.schedule.limits import Limits
from estimator_service.core.schedule.requests import Live


@define(kw_only=True)
class Cohort:
    """The requests that run longest, all generating, that get all their rows in every pass.

    With `numerator` accepted drafts in `denominator` passes, a request that has computed c tokens, and of the next
    draft r over the denominator, is at c x denominator + r, and each pass moves it by the sum of both. So `starts`,
    where each would have been before the first pass of the cohort, and `passes`, which all have had since, say where it
    is. `ends` are the passes after which each leaves, and `blocks` what they hold together.
    """

    limits: Limits
    lives: list[Live] = Factory(list)
    starts: list[int] = Factory(list)
    ends: list[int] = Factory(list)
    requests: tuple[int, ...] = ()
    passes: int = 0
    blocks: int = 0

    @property
    def rows(self) -> int:
        """Rows of each request in a pass."""
        return 1 + self.limits.draft_tokens

    def takes(self, live: Live, place: int) -> bool:
        """Whether a request can join in that place: it generates, and there is room for all its rows in a pass."""
        limits, rows = self.limits, self.rows
        return (
            live.is_generating
            and (place + 1) * rows <= limits.batch_tokens
            and rows <= limits.long_prompt_rows
            and rows <= limits.length_tokens - 1 - live.computed
        )

    def join(self, lives: list[Live]) -> None:
        """Take requests in, behind those that are there."""
        acceptance, length = self.limits.acceptance, self.limits.length_tokens
        shift = self.passes * self._pace
        for live in lives:
            live.joined = self.passes
            self.starts.append(live.computed * acceptance.denominator + live.remainder - shift)
            self.ends.append(self.passes + live.generating_passes_alike(self.rows, length, acceptance))
            self.blocks += live.blocks
        self.lives += lives
        self._list_requests()

    def contexts(self) -> list[int]:
        """Tokens of each that are computed before the next pass."""
        shift, per = self.passes * self._pace, self.limits.acceptance.denominator
        if per == 1:
            return [start + shift for start in self.starts]
        return [(start + shift) // per for start in self.starts]

    def passes_left(self) -> int:
        """Passes until the first of them leaves."""
        return min(self.ends) - self.passes

    def blocks_needed(self, passes: int) -> int:
        """Blocks that the last of the next `passes` needs beyond those that are held.

        Each pass reaches further than any before it, so nobody holds more than it needs.
        """
        limits = self.limits
        per, block = limits.acceptance.denominator, limits.block_tokens
        # Of a context c, ceil((c + ahead) / block) is floor((c + ahead + block - 1) / block).
        ahead = self.rows + limits.draft_tokens + block - 1
        shift = (self.passes + passes - 1) * self._pace + ahead * per
        counts = [(start + shift) // (per * block) for start in self.starts]
        longest = ceil_quotient(limits.length_tokens, block)
        if counts and max(counts) > longest:
            counts = [smaller(count, longest) for count in counts]
        return sum(counts) - self.blocks

    def advance(self, passes: int) -> None:
        """Have as many passes, for which there are blocks."""
        if self.lives and self.limits.usable_blocks is not None:
            self.blocks += self.blocks_needed(passes)
        self.passes += passes

    def leave(self) -> tuple[list[Live], list[Live]]:
        """Let go who has had the last pass here: those that finished, and apart from them those that go on.

        The latter have no room left for all their rows; who runs behind them goes too, so that the order stays.
        """
        if self.passes not in self.ends:
            return [], []
        places = [place for place, end in enumerate(self.ends) if end == self.passes]
        for place in places:
            self._settle(place)
        finished = [place for place in places if self.lives[place].has_finished]
        gone = [self.lives[place] for place in finished]
        for place in reversed(finished):
            del self.lives[place], self.starts[place], self.ends[place]
        self._list_requests()
        return gone, self.part(self.ends.index(self.passes)) if self.passes in self.ends else []

    def part(self, first: int = 0) -> list[Live]:
        """Let the request in the place `first` go, and everyone behind it, as they are now."""
        parted = self.lives[first:]
        for place in range(first, len(self.lives)):
            if self.ends[place] != self.passes:
                self._settle(place)
        del self.lives[first:], self.starts[first:], self.ends[first:]
        self._list_requests()
        return parted

    def _settle(self, place: int) -> None:
        """Write down where a request is, and take its blocks out of those that are held together."""
        limits, live = self.limits, self.lives[place]
        at = self.starts[place] + self.passes * self._pace
        if live.joined < self.passes and limits.usable_blocks is not None:
            live.blocks = limits.blocks_for((at - self._pace) // limits.acceptance.denominator + self.rows)
        self.blocks -= live.blocks
        live.computed, live.remainder = divmod(at, limits.acceptance.denominator)
        live.tokens = live.computed + 1

    @property
    def _pace(self) -> int:
        return self.limits.acceptance.numerator + self.limits.acceptance.denominator

    def _list_requests(self) -> None:
        self.requests = tuple([live.index for live in self.lives])
