"""What bounds a pass, a request and the cache, as whole numbers."""

from __future__ import annotations

from fractions import Fraction

from attrs import frozen

from estimator_service.core.elementwise import ceil_quotient, smaller
from estimator_service.core.schedule.rules import EngineRules, engine_rules
from linkbound.domain.engine import EngineRequest, SchedulerSettings

UNLIMITED = 10**18
"""Above every count of tokens or requests that a question can hold."""


@frozen(kw_only=True)
class Acceptance:
    """Accepted drafts of a pass: numerator over denominator."""

    numerator: int
    denominator: int


@frozen(kw_only=True)
class Limits:
    """Settings of a scheduler with what they imply.

    `draft_tokens` are verified in each generating pass, and as many slots are kept behind them for the next drafts.
    `usable_blocks` leaves out the block that the engine keeps; None: blocks never run out.
    """

    rules: EngineRules
    batch_tokens: int
    long_prompt_rows: int
    requests: int
    length_tokens: int
    draft_tokens: int
    acceptance: Acceptance
    block_tokens: int
    usable_blocks: int | None

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold these tokens and the slots of the next drafts, within the length of a request."""
        return ceil_quotient(smaller(tokens + self.draft_tokens, self.length_tokens), self.block_tokens)

    def fits_alone(self, tokens: int) -> bool:
        """Whether an empty cache has room to compute a request of these tokens."""
        return self.usable_blocks is None or self.blocks_for(tokens) <= self.usable_blocks


def limits_of(scheduler: SchedulerSettings) -> Limits:
    """The limits that settings set (`docs/formulas.md`, Schedule).

    Raises InvalidArgumentError for an engine whose rules are not known.
    """
    # The shortest decimal form is what was meant: 0.1 is a tenth.
    accepted = Fraction(repr(scheduler.accepted_draft_tokens_per_pass or 0))
    blocks = scheduler.kv_block_count
    return Limits(
        rules=engine_rules(scheduler.engine),
        batch_tokens=scheduler.max_num_batched_tokens,
        long_prompt_rows=scheduler.long_prefill_token_threshold or UNLIMITED,
        requests=scheduler.max_num_seqs or UNLIMITED,
        length_tokens=scheduler.max_model_len or UNLIMITED,
        draft_tokens=scheduler.draft_token_count,
        acceptance=Acceptance(numerator=accepted.numerator, denominator=accepted.denominator),
        block_tokens=scheduler.kv_block_tokens,
        usable_blocks=None if blocks is None else blocks - 1,
    )


def length_limit_tokens(request: EngineRequest, limits: Limits) -> int:
    """Tokens, prompt included, at which a request ends (`docs/formulas.md`, Schedule)."""
    return smaller(request.prompt_tokens + request.output_tokens, limits.length_tokens)
