"""What requests keep in memory: caches of key-value heads and latents, indexer keys, windows, states."""

from __future__ import annotations

from attrs import evolve

from estimator_service.core.elementwise import ceil_quotient, smaller
from estimator_service.core.memory.reads import ReadBytes
from estimator_service.core.memory.shares import WHOLE, Share, Stage, fullest_stages, head_share, layers_on_stage
from linkbound.domain.catalog import CacheGroup, Model
from linkbound.domain.layout import ParallelLayout

FP8_VALUE_BYTES = 1
"""The least that an engine stores of a value, so that a floor of what is read holds for every cache."""


def bytes_per_token(group: CacheGroup, cache_value_bytes: int) -> int:
    """Bytes of one token in one layer over all heads: v b_c, or as the engine stores FP8 (`docs/formulas.md`, Memory).

    Sparse MLA in vLLM keeps 656 bytes in FP8: 512 values, 16 bytes of scales, 64 values of 2 bytes for the positions.
    Its indexer keeps 132 whatever the type of the cache: 128 values in FP8 and a scale.
    """
    if group.fixed_bytes_per_token:
        return group.fixed_bytes_per_token
    if cache_value_bytes == FP8_VALUE_BYTES and group.fp8_bytes_per_token:
        return group.fp8_bytes_per_token
    return group.values_per_token * cache_value_bytes


def cache_bytes_of_rank(
    model: Model,
    layout: ParallelLayout,
    context_tokens: int,
    request_count: int,
    cache_value_bytes: int,
    *,
    draft_token_count: int = 0,
) -> int | None:
    """Cache bytes of the fullest rank for `request_count` requests of `context_tokens` each.

    None where the model does not say what it caches (`docs/formulas.md`, Memory).
    """
    if not model.cache_groups:
        return None
    per_request = max(
        request_cache_bytes_of_stage(
            model, layout, stage, context_tokens, cache_value_bytes, draft_token_count=draft_token_count
        )
        for stage in fullest_stages(model.layer_count, layout.pipeline_parallel_size)
    )
    return requests_of_rank(request_count, layout) * per_request


def requests_of_rank(request_count: int, layout: ParallelLayout) -> int:
    """Requests of the fullest attention group: ceil(R / D) (`docs/formulas.md`, Memory)."""
    return ceil_quotient(request_count, layout.data_parallel_size)


def request_cache_bytes_of_stage(
    model: Model,
    layout: ParallelLayout,
    stage: Stage,
    context_tokens: int,
    cache_value_bytes: int,
    *,
    draft_token_count: int = 0,
) -> int:
    """Cache bytes of one request on one rank of `stage` (`docs/formulas.md`, Memory).

    Per layer: min(t, window) tokens and a state, cut over heads. MTP layers, where drafts are made, keep on every rank
    of the last stage what the largest kind of layer keeps in all.
    """
    total_bytes = sum(
        layers_on_stage(group.layer_count, model.layer_count, stage)
        * _layer_bytes(group, head_share(group.split_head_count, layout), context_tokens, cache_value_bytes)
        for group in model.cache_groups
    )
    if draft_token_count and stage.is_last:
        largest = max(_layer_bytes(group, WHOLE, context_tokens, cache_value_bytes) for group in model.cache_groups)
        total_bytes += model.mtp_layer_count * largest
    return total_bytes


def cache_bytes_read(
    model: Model,
    layout: ParallelLayout,
    context_tokens: int,
    request_count: int,
    rows_per_request: int,
    *,
    cache_value_bytes: int = FP8_VALUE_BYTES,
) -> ReadBytes | None:
    """Cache bytes that the busiest rank reads in one decode pass (`docs/formulas.md`, Memory).

    At least: what one row of each request reads, once; sparse attention reads `read_tokens` of what is kept. At most:
    every row reads for itself. None where the model does not say what it caches. For the passes of every stage one
    after another, ask with `pipeline_parallel_size=1`.
    """
    if not model.cache_groups:
        return None
    read = tuple(_as_read(group, cache_value_bytes) for group in model.cache_groups)
    per_request = max(
        request_cache_bytes_of_stage(evolve(model, cache_groups=read), layout, stage, context_tokens, cache_value_bytes)
        for stage in fullest_stages(model.layer_count, layout.pipeline_parallel_size)
    )
    one_row_each = requests_of_rank(request_count, layout) * per_request
    return ReadBytes(lower_bytes=one_row_each, upper_bytes=rows_per_request * one_row_each)


def _layer_bytes(group: CacheGroup, share: Share, context_tokens: int, cache_value_bytes: int) -> int:
    kept_tokens = context_tokens if group.window_tokens is None else smaller(context_tokens, group.window_tokens)
    token_bytes = share.of(bytes_per_token(group, cache_value_bytes))
    return kept_tokens * token_bytes + share.of(group.state_bytes_per_request)


def _as_read(group: CacheGroup, cache_value_bytes: int) -> CacheGroup:
    """`group` as a row reads it: no more tokens than attention selects, and in FP8 what an engine can keep in FP8."""
    limits = [limit for limit in (group.window_tokens, group.read_tokens) if limit is not None]
    in_fp8 = cache_value_bytes == FP8_VALUE_BYTES and group.fp8_bytes_per_token
    fixed_bytes = 0 if in_fp8 else group.fixed_bytes_per_token
    return evolve(group, window_tokens=min(limits, default=None), fixed_bytes_per_token=fixed_bytes)
