"""One request within the engine, and how it advances."""

from __future__ import annotations

from attrs import define

from estimator_service.core.elementwise import ceil_quotient, smaller
from estimator_service.core.schedule.limits import Acceptance
from estimator_service.core.schedule.passes import ShareKind


@define(eq=False, kw_only=True)
class Live:
    """A request that has arrived and not finished.

    `tokens` are its prompt and what it has generated, `computed` how many of them passes have computed, `limit` the
    tokens at which it ends. `is_generating`: all tokens but the last one generated are computed. `remainder` is the
    fraction of a draft that is accepted already, over the denominator of the acceptance. `joined` is when it was taken
    into a cohort, in passes of that.
    """

    index: int
    tokens: int
    limit: int
    computed: int = 0
    blocks: int = 0
    remainder: int = 0
    joined: int = 0
    is_generating: bool = False
    has_first_token: bool = False

    def advance(self, rows: int, passes: int, acceptance: Acceptance) -> int:
        """Tokens that as many generating passes of `rows` give: 1 and the accepted drafts each."""
        gained, per, remainder = self._pace(rows, acceptance)
        return passes + (remainder + passes * gained) // per

    def passes_to_finish(self, rows: int, acceptance: Acceptance) -> int:
        """The fewest generating passes of `rows` after which it has its last token."""
        gained, per, remainder = self._pace(rows, acceptance)
        return ceil_quotient((self.limit - self.tokens) * per - remainder, gained + per)

    def passes_within(self, tokens: int, rows: int, acceptance: Acceptance) -> int:
        """The most generating passes of `rows` that advance by `tokens` at most."""
        gained, per, remainder = self._pace(rows, acceptance)
        return ((tokens + 1) * per - remainder - 1) // (gained + per)

    @property
    def has_finished(self) -> bool:
        """Whether it has its last token."""
        return self.tokens >= self.limit

    def generating_passes_alike(self, rows: int, length_tokens: int, acceptance: Acceptance) -> int:
        """The most generating passes in a row in which it takes `rows`, and ends in none but the last.

        Near the longest length it has room for fewer drafts.
        """
        room = length_tokens - 1 - rows - self.computed
        return smaller(self.passes_to_finish(rows, acceptance), self.passes_within(room, rows, acceptance) + 1)

    def passes_alike(self, rows: int, kind: ShareKind, length_tokens: int, acceptance: Acceptance) -> int:
        """The most passes in a row in which it takes `rows`, reads on to the last or generates in each."""
        if kind is ShareKind.PROMPT:
            return ceil_quotient(self.tokens - self.computed, rows) - 1
        return self.generating_passes_alike(rows, length_tokens, acceptance)

    def computed_after(self, rows: int, kind: ShareKind, passes: int, acceptance: Acceptance) -> int:
        """Tokens of it that are computed after as many more passes, none of which ends its prompt."""
        if kind is ShareKind.PROMPT:
            return self.computed + rows * passes
        return self.computed + self.advance(rows, passes, acceptance)

    def generate(self, rows: int, passes: int, acceptance: Acceptance) -> None:
        """Take the tokens of as many generating passes."""
        gained = self.advance(rows, passes, acceptance)
        self.computed += gained
        self.tokens += gained
        self.remainder = (self.remainder + passes * acceptance.numerator) % acceptance.denominator

    def end_prompt(self) -> None:
        """Take the token that the end of the prompt gives."""
        self.computed = self.tokens
        self.tokens += 1
        self.is_generating = self.has_first_token = True

    def restart(self) -> None:
        """Lose what was computed; the tokens stay."""
        self.computed = self.blocks = 0
        self.is_generating = False

    def _pace(self, rows: int, acceptance: Acceptance) -> tuple[int, int, int]:
        """Accepted drafts a pass, as a ratio, and the part of one that is there already; no more than are verified."""
        if (rows - 1) * acceptance.denominator < acceptance.numerator:
            return rows - 1, 1, 0
        return acceptance.numerator, acceptance.denominator, self.remainder
