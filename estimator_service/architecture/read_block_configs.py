"""Models pruned block by block (NVIDIA's NAS): each layer says what is left of its attention and its feed-forward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from estimator_service.architecture.facts import DenseFeedForward, FeedForward
from estimator_service.architecture.family import Family
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.mixers import Attention, LinearMixer, Mixer
from estimator_service.architecture.read_attention import read_attention
from estimator_service.architecture.read_feed_forward import is_gated
from estimator_service.architecture.read_heads import Heads
from estimator_service.architecture.read_layers import Layer

_WIDTH_MULTIPLE = 256
"""Inner widths are rounded up to a multiple of it."""


def read_block_configs(
    config: Fields, family: Family, heads: Heads, hidden_size: int, blocks: Sequence[Any]
) -> tuple[Layer, ...]:
    """Every layer, as its block config has it; a block that is a no-op is not there and has no norm."""
    known_heads = Heads(count=heads.count, key_value_count=heads.count, head_dim=heads.head_dim)
    attention = read_attention(config, family, known_heads)
    config.use("intermediate_size", "num_key_value_heads")
    gated = is_gated(config, family)
    layers = []
    for index, block in enumerate(blocks):
        if not isinstance(block, Mapping):
            config.refuse(f"block_configs[{index}]", "is not an object")
            return ()
        own = Fields(block, config.ledger, field=config.field, path=f"block_configs[{index}].")
        mixers = _mixers(own, attention)
        feed_forwards = _feed_forwards(own, hidden_size, gated=gated)
        present = len(mixers) + len(feed_forwards)
        layers.append(Layer(mixers=mixers, feed_forwards=feed_forwards, norm_vectors=present * family.norm_values))
    return tuple(layers)


def _mixers(block: Fields, attention: Attention | None) -> tuple[Mixer, ...]:
    own = block.section("attention")
    if own is None or own.flag("no_op"):
        return ()
    if own.flag("replace_with_linear"):
        return (LinearMixer(),)
    if attention is None:
        return ()
    in_group = own.whole("n_heads_in_group", maximum=10**5)
    stated = own.whole("num_key_value_heads", maximum=10**5)
    key_value_heads = stated or (max(1, attention.head_count // in_group) if in_group else attention.head_count)
    window = own.whole("window_length", maximum=10**9)
    return (evolve(attention, key_value_head_count=key_value_heads, window_tokens=window),)


def _feed_forwards(block: Fields, hidden_size: int, *, gated: bool) -> tuple[FeedForward, ...]:
    own = block.section("ffn", "mlp")
    if own is None or own.flag("no_op"):
        return ()
    multiplier = own.number("ffn_mult", maximum=100)
    width = own.whole("intermediate_size")
    if own.flag("replace_with_linear"):
        # One square matrix: as a block of two matrices of half the width each.
        return (DenseFeedForward(inner_width=max(1, hidden_size // 2), gated=False),)
    if width is None and multiplier is not None:
        width = inner_width_of(multiplier, hidden_size)
    return () if width is None else (DenseFeedForward(inner_width=width, gated=gated),)


def inner_width_of(multiplier: float, hidden_size: int) -> int:
    """Inner width of a gated block: two thirds of m h, rounded down, then up to a multiple of 256."""
    width = int(2 * multiplier * hidden_size / 3)
    return -(-width // _WIDTH_MULTIPLE) * _WIDTH_MULTIPLE
