"""What a replay assumes, and which settings have no effect, in words."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_service.core.schedule.limits import Limits, length_limit_tokens, limits_of
from linkbound.domain.engine import EngineRequest, SchedulerSettings

RULES = (
    "Passes are those of the scheduler of {}: first come, first served, one pass after the other, without a prefix"
    " cache, and every output ends by its length."
)
BLOCKS_FOR_ALL = "Without kv_block_count, blocks of the cache never run out."
ALL_AT_ONCE = "Without max_num_seqs, requests run together without a limit."
LONE_PROMPT = (
    "A request that is alone in the engine takes the whole max_num_batched_tokens, whatever"
    " long_prefill_token_threshold is."
)
CAPS_NOTHING = "long_prefill_token_threshold, {}, is not below max_num_batched_tokens, {}: it caps nothing."
CAPS_DRAFTS = "long_prefill_token_threshold, {}, is below the {} rows of a request that generates: it cuts drafts, too."
CUT_DRAFTS = "max_num_batched_tokens, {}, is below the {} rows of a request that generates: drafts are always cut."
SLOTS_FOR_DRAFTS = (
    "Blocks are held for the next {0} drafts as well, as for MTP and EAGLE, and drafts are made in every pass."
)
NO_ACCEPTANCE = (
    "No acceptance of drafts was given: as if none was accepted. Passes are as many as there may be, output speeds at"
    " least."
)
EVEN_ACCEPTANCE = "Accepted drafts are spread evenly: a fraction of one adds up over the passes of a request."
CUT_OUTPUTS = "{} of {} outputs end at max_model_len, {}."


def schedule_words(scheduler: SchedulerSettings, requests: tuple[EngineRequest, ...]) -> tuple[str, ...]:
    """What the passes of these requests assume, and which settings do nothing (`docs/formulas.md`, Schedule).

    Raises InvalidArgumentError for an engine whose rules are not known.
    """
    limits = limits_of(scheduler)
    return (*_of_limits(limits, scheduler), *_of_drafts(limits, scheduler), *_of_outputs(limits, requests))


def _of_limits(limits: Limits, scheduler: SchedulerSettings) -> Iterator[str]:
    yield RULES.format(limits.rules.name)
    threshold, batch = scheduler.long_prefill_token_threshold, limits.batch_tokens
    if threshold >= batch:
        yield CAPS_NOTHING.format(threshold, batch)
    elif threshold and not limits.rules.caps_lone_request:
        yield LONE_PROMPT
    if scheduler.max_num_seqs is None:
        yield ALL_AT_ONCE
    if limits.usable_blocks is None:
        yield BLOCKS_FOR_ALL


def _of_drafts(limits: Limits, scheduler: SchedulerSettings) -> Iterator[str]:
    if not limits.draft_tokens:
        return
    rows = 1 + limits.draft_tokens
    if scheduler.has_unknown_acceptance:
        yield NO_ACCEPTANCE
    if limits.usable_blocks is not None:
        yield SLOTS_FOR_DRAFTS.format(limits.draft_tokens)
    if limits.acceptance.denominator > 1:
        yield EVEN_ACCEPTANCE
    if limits.batch_tokens < rows:
        yield CUT_DRAFTS.format(limits.batch_tokens, rows)
    elif limits.long_prompt_rows < rows:
        yield CAPS_DRAFTS.format(limits.long_prompt_rows, rows)


def _of_outputs(limits: Limits, requests: tuple[EngineRequest, ...]) -> Iterator[str]:
    cut = sum(
        length_limit_tokens(request, limits) < request.prompt_tokens + request.output_tokens for request in requests
    )
    if cut:
        yield CUT_OUTPUTS.format(cut, len(requests), limits.length_tokens)
