"""What layers keep for a request (`docs/formulas.md`, Caches)."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from estimator_service.architecture.facts import Architecture
from estimator_service.architecture.mixers import (
    Attention,
    CompressedAttention,
    Indexer,
    IndexerKind,
    LatentAttention,
    LinearAttention,
    Mixer,
    ShortConvolution,
    StateSpace,
)
from estimator_service.core.elementwise import ceil_quotient
from linkbound.domain.catalog import CacheGroup

FP8_SCALE_GROUP = 128
"""Values that share a scale in the FP8 caches of sparse MLA and of the indexer."""
FP8_SCALE_BYTES = 4
COMPRESSED_SCALE_GROUP = 64
COMPRESSED_SCALE_ALIGNMENT_BYTES = 8
"""A byte for 64 values in the FP8 cache of compressed attention, padded to 8 bytes."""
BLOCK_KEY_VALUE_BYTES = 2
"""Keys that score blocks of tokens are kept in BF16 unless the engine is told to keep them in FP8."""
_KEY_AND_VALUE = 2


def cache_groups(architecture: Architecture) -> tuple[CacheGroup, ...]:
    """What every kind of layer keeps; equal kinds together (`docs/formulas.md`, Caches)."""
    counts: dict[CacheGroup, int] = {}
    for group in architecture.layers:
        for mixer in group.mixers:
            for kept in caches_of_mixer(mixer, architecture.hidden_size, architecture.value_bytes):
                counts[kept] = counts.get(kept, 0) + group.layer_count
    return tuple(evolve(kept, layer_count=count) for kept, count in counts.items())


def caches_of_mixer(mixer: Mixer, hidden_size: int, value_bytes: int) -> Iterator[CacheGroup]:
    """What one layer keeps for its `mixer`, as groups of one layer (`docs/formulas.md`, Caches)."""
    match mixer:
        case Attention():
            yield from _attention(mixer)
        case LatentAttention():
            yield from _latent(mixer)
        case CompressedAttention():
            yield from _compressed(mixer)
        case LinearAttention():
            yield _state(
                "linear attention: a matrix for each head, inputs of the convolution", _linear(mixer, value_bytes)
            )
        case StateSpace():
            yield _state("state space: a state for each channel, inputs of the convolution", _space(mixer, value_bytes))
        case ShortConvolution():
            yield _state("convolution: its last inputs", hidden_size * (mixer.width - 1) * value_bytes)
        case _:
            return


def _attention(a: Attention) -> Iterator[CacheGroup]:
    if a.reuses_cache:
        return
    values = a.key_value_head_count * (a.head_dim + a.value_head_dim)
    words = "keys and values of each key-value head"
    if a.window_tokens is not None:
        words = f"{words}, of a window"
    yield CacheGroup(
        reason=words,
        layer_count=1,
        values_per_token=values,
        split_head_count=a.key_value_head_count,
        window_tokens=a.window_tokens,
        read_tokens=a.read_tokens,
        fp8_bytes_per_token=values,
    )
    if a.indexer is not None:
        yield _indexer_keys(a.indexer)


def _latent(a: LatentAttention) -> Iterator[CacheGroup]:
    values = a.latent_rank + a.position_head_dim
    fp8_bytes = values
    words = "latent of all heads and keys of positions"
    if a.read_tokens is not None:
        scale_bytes = FP8_SCALE_BYTES * ceil_quotient(a.latent_rank, FP8_SCALE_GROUP)
        fp8_bytes = a.latent_rank + scale_bytes + 2 * a.position_head_dim
        words = f"{words}, of which a row reads what is selected"
    yield CacheGroup(
        reason=words,
        layer_count=1,
        values_per_token=values,
        read_tokens=a.read_tokens,
        fp8_bytes_per_token=fp8_bytes,
    )
    if a.indexer is not None:
        yield _indexer_keys(a.indexer)


def _indexer_keys(i: Indexer, pooled_tokens: int = 1) -> CacheGroup:
    """Keys of an indexer: one for each token, or for each pool."""
    pool = max(pooled_tokens, i.pool_tokens if i.kind is IndexerKind.POOL else 1)
    fp8_bytes = ceil_quotient(_fp8_key_bytes(i), pool)
    # Nothing says how an engine keeps pooled keys of a POOL indexer: the type of the cache is taken.
    fixed_bytes = {
        IndexerKind.TOKEN: fp8_bytes,
        IndexerKind.BLOCK: BLOCK_KEY_VALUE_BYTES * i.head_dim,
        IndexerKind.POOL: 0,
    }
    return CacheGroup(
        reason="keys of the indexer" + (f", one for {pool} tokens" if pool > 1 else ""),
        layer_count=1,
        values_per_token=ceil_quotient(i.head_dim, pool),
        fp8_bytes_per_token=fp8_bytes,
        fixed_bytes_per_token=fixed_bytes[i.kind],
    )


def _fp8_key_bytes(i: Indexer) -> int:
    """One key in FP8: with scales, but for blocks of tokens."""
    scale_count = 0 if i.kind is IndexerKind.BLOCK else ceil_quotient(i.head_dim, FP8_SCALE_GROUP)
    return i.head_dim + FP8_SCALE_BYTES * scale_count


def _compressed(a: CompressedAttention) -> Iterator[CacheGroup]:
    entry_bytes = _compressed_entry_bytes(a)
    yield CacheGroup(
        reason="one key of all heads for each token, of a window",
        layer_count=1,
        values_per_token=a.head_dim,
        window_tokens=a.window_tokens,
        fp8_bytes_per_token=entry_bytes,
    )
    if not a.compress_tokens:
        return
    selected = None if a.read_tokens is None else a.read_tokens * a.compress_tokens
    yield CacheGroup(
        reason=f"one key of all heads for {a.compress_tokens} tokens",
        layer_count=1,
        values_per_token=ceil_quotient(a.head_dim, a.compress_tokens),
        read_tokens=selected,
        fp8_bytes_per_token=ceil_quotient(entry_bytes, a.compress_tokens),
    )
    if a.indexer is not None:
        yield _indexer_keys(a.indexer, a.compress_tokens)


def _compressed_entry_bytes(a: CompressedAttention) -> int:
    content = a.head_dim - a.position_head_dim
    scale_bytes = COMPRESSED_SCALE_ALIGNMENT_BYTES * ceil_quotient(
        ceil_quotient(content, COMPRESSED_SCALE_GROUP), COMPRESSED_SCALE_ALIGNMENT_BYTES
    )
    return content + 2 * a.position_head_dim + scale_bytes


def _state(reason: str, state_bytes: int) -> CacheGroup:
    return CacheGroup(reason=reason, layer_count=1, state_bytes_per_request=state_bytes)


def _linear(a: LinearAttention, value_bytes: int) -> int:
    matrix = a.value_head_count * a.key_head_dim * a.value_head_dim * a.state_value_bytes
    channels = _KEY_AND_VALUE * a.key_head_count * a.key_head_dim + a.value_head_count * a.value_head_dim
    return matrix + channels * max(0, a.convolution_width - 1) * value_bytes


def _space(s: StateSpace, value_bytes: int) -> int:
    channels = s.inner_width + (2 * s.group_count * s.state_width if s.head_count else 0)
    return s.inner_width * s.state_width * s.state_value_bytes + channels * (s.convolution_width - 1) * value_bytes
