"""Zamba2: some layers run a block of attention and feed-forward before their state space, and share its weights."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from estimator_service.architecture.facts import DenseFeedForward
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.layer_kinds import Kind
from estimator_service.architecture.mixers import Attention
from estimator_service.architecture.read_layers import Layer

_SHARED_NORM_VECTORS = 3
"""Norms of the shared block: one over two hidden sizes, one over one."""


def with_shared_blocks(
    layers: Sequence[Layer], kinds: Sequence[Kind], config: Fields, hidden_size: int, dense: DenseFeedForward | None
) -> tuple[Layer, ...]:
    """`layers`, with the shared block in the hybrid ones: the first of each block holds its weights.

    The block reads hidden state and embedding side by side, ends in a square matrix of the layer's own, and has an
    adapter of low rank for each use.
    """
    block_count = config.whole("num_mem_blocks", maximum=64) or 1
    heads = config.whole("num_attention_heads", maximum=10**5) or 1
    head_dim = config.whole("attention_head_dim") or max(1, 2 * hidden_size // heads)
    rank = config.whole("adapter_rank", minimum=0) or 0
    config.use("attention_hidden_size", "num_query_groups", "kv_channels", "hybrid_layer_ids", "use_long_context")
    config.use("use_mem_rope", "num_key_value_heads", "use_shared_attention_adapter")
    attention = Attention(
        head_count=heads,
        key_value_head_count=heads,
        head_dim=head_dim,
        value_head_dim=head_dim,
        input_width=2 * hidden_size,
    )
    if dense is None:
        return tuple(layers)
    adapter = rank * (hidden_size + 2 * dense.inner_width)
    shared, seen = [], 0
    for layer, kind in zip(layers, kinds, strict=True):
        if kind is not Kind.HYBRID:
            shared.append(layer)
            continue
        first = seen < block_count
        shared.append(
            evolve(
                layer,
                mixers=(*layer.mixers, attention),
                feed_forwards=(dense,),
                norm_vectors=layer.norm_vectors + (_SHARED_NORM_VECTORS if first else 0),
                other_parameters=hidden_size * hidden_size + adapter,
                reuses_weights=not first,
            )
        )
        seen += 1
    return tuple(shared)
