"""The layers of a config, each with its mixers, its feed-forward blocks and its norms."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from estimator_service.architecture.attention_layers import full_attention, windowed_attention, with_window
from estimator_service.architecture.facts import DenseFeedForward, Experts, FeedForward
from estimator_service.architecture.family import Family
from estimator_service.architecture.feed_forward_layers import Block, blocks_of_layers
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.layer_kinds import Kind, kinds_of_layers
from estimator_service.architecture.mixers import Attention, Mixer
from estimator_service.architecture.read_attention import read_window
from estimator_service.architecture.read_feed_forward import (
    block_beside_experts,
    feed_forwards_of,
    read_dense,
    read_experts,
)
from estimator_service.architecture.read_heads import Heads
from estimator_service.architecture.read_recurrent import (
    STATE_KEYS,
    read_linear_attention,
    read_short_convolution,
    read_state_space,
)

NO_FEED_FORWARD = "the size of a feed-forward block: its inner width is not in the config"


@frozen(kw_only=True)
class Layer:
    """One layer. `missing` blocks are there and end in a sum over the ranks, but nothing says what they are made of."""

    mixers: tuple[Mixer, ...] = ()
    feed_forwards: tuple[FeedForward, ...] = ()
    norm_vectors: int = 2
    all_reduce_count: int | None = None
    other_parameters: int = 0
    reuses_weights: bool = False
    missing: int = 0


def _with_shared_caches(layers: tuple[Layer, ...], config: Fields, family: Family) -> tuple[Layer, ...]:
    """Layers that read the keys and values of earlier ones: the last, or all but each n-th (Hunyuan-Large).

    The last may have a dense block of twice the width.
    """
    shared = config.whole("num_kv_shared_layers", minimum=0, maximum=len(layers)) or 0
    doubled = config.flag("use_double_wide_mlp")
    first = len(layers) - shared
    group_size = (config.whole("cla_share_factor", maximum=len(layers)) or 1) if config.flag("use_cla") else 1

    def changed(layer: Layer) -> Layer:
        mixers = tuple(_without_cache(m, family) if isinstance(m, Attention) else m for m in layer.mixers)
        blocks = tuple(
            evolve(b, inner_width=2 * b.inner_width) if doubled and isinstance(b, DenseFeedForward) else b
            for b in layer.feed_forwards
        )
        return evolve(layer, mixers=mixers, feed_forwards=blocks)

    return tuple(
        changed(layer) if index >= first or index % group_size else layer for index, layer in enumerate(layers)
    )


def _without_cache(attention: Attention, family: Family) -> Attention:
    return evolve(attention, reuses_cache=True, stores_unused_projections=family.unused_projections)


def _with_layer_embeddings(layers: tuple[Layer, ...], config: Fields, hidden_size: int) -> tuple[Layer, ...]:
    """Layers that read an embedding of their own: a gate, a projection and a norm more (Gemma 4)."""
    width = config.whole("hidden_size_per_layer_input", minimum=0) or 0
    if not width:
        return layers
    more = 2 * hidden_size * width
    return tuple(
        evolve(layer, norm_vectors=layer.norm_vectors + 1, other_parameters=layer.other_parameters + more)
        for layer in layers
    )


@frozen(kw_only=True)
class _Blocks:
    """What the layers of a config are put together from; None: not there, or not known."""

    attention: tuple[Mixer, ...] | None
    window: tuple[Mixer, ...] | None
    chunk: tuple[Mixer, ...] | None
    linear: Mixer | None
    state: Mixer | None
    convolution: Mixer | None
    dense: tuple[DenseFeedForward, ...] | None
    beside: DenseFeedForward | None
    experts: Experts | None


def read_layers(config: Fields, family: Family, heads: Heads, hidden_size: int, layer_count: int) -> tuple[Layer, ...]:
    """Every layer, in order."""
    blocks = config.items("block_configs", length=layer_count)
    if blocks is not None:
        from estimator_service.architecture.read_block_configs import read_block_configs

        return read_block_configs(config, family, heads, hidden_size, blocks)
    window = read_window(config)
    kinds = kinds_of_layers(config, family, layer_count, has_window=window is not None)
    parts = _blocks(config, family, heads, hidden_size, kinds, window)
    feed_forward_kinds = _feed_forward_kinds(config, family, parts, kinds)
    layers = tuple(
        _layer(i, kinds[i], feed_forward_kinds[i], parts, config, family, hidden_size) for i in range(layer_count)
    )
    layers = _with_shared_caches(layers, config, family)
    layers = _with_layer_embeddings(layers, config, hidden_size)
    if Kind.HYBRID in kinds:
        from estimator_service.architecture.read_shared_blocks import with_shared_blocks

        return with_shared_blocks(layers, kinds, config, hidden_size, parts.dense[0] if parts.dense else None)
    if config.has("altup_num_inputs", "laurel_rank"):
        from estimator_service.architecture.read_streams import with_streams

        return with_streams(layers, config, hidden_size)
    return layers


def _blocks(
    config: Fields, family: Family, heads: Heads, hidden_size: int, kinds: Sequence[Kind], window: int | None
) -> _Blocks:
    layer_count = len(kinds)
    experts = read_experts(config, family, hidden_size)
    needs_dense = (
        experts is None
        or family.separate_feed_forwards
        or family.doubled_layers
        or bool(config.flag("residual_moe"))
        or _has_dense_layers(config, kinds)
    )
    dense = read_dense(config, family, hidden_size, layer_count) if needs_dense else None
    if not needs_dense:
        config.use("intermediate_size", "mlp_bias", "dense_intermediate_size", "n_inner", "ffn_hidden_size")
    if experts is None and config.has("shared_intermediate_size") and config.states("num_local_experts"):
        width = config.whole("shared_intermediate_size", minimum=0)
        dense = tuple(evolve(block, inner_width=width) for block in dense) if dense is not None and width else dense
    attention: tuple[Mixer, ...] | None = None
    windowed: tuple[Mixer, ...] | None = None
    chunked: tuple[Mixer, ...] | None = None
    if Kind.FULL in kinds or Kind.WINDOW in kinds or Kind.CHUNK in kinds or family.parallel_mixers:
        attention = full_attention(config, family, heads, hidden_size, layer_count)
        windowed = windowed_attention(config, family, heads, attention, window)
        chunk = config.whole("attention_chunk_size", maximum=10**9)
        chunked = with_window(attention, chunk)
    needs_state = Kind.STATE in kinds or Kind.HYBRID in kinds or family.parallel_mixers
    if not needs_state:
        config.use(*STATE_KEYS)
    return _Blocks(
        attention=attention,
        window=windowed,
        chunk=chunked,
        linear=read_linear_attention(config) if Kind.LINEAR in kinds else None,
        state=read_state_space(config, family, hidden_size) if needs_state else None,
        convolution=read_short_convolution(config) if Kind.CONVOLUTION in kinds else None,
        dense=dense,
        beside=block_beside_experts(config, family, hidden_size, dense[0] if dense else None),
        experts=experts,
    )


def _has_dense_layers(config: Fields, kinds: Sequence[Kind]) -> bool:
    if Kind.DENSE_ONLY in kinds:
        return True
    return Block.DENSE in blocks_of_layers(config, len(kinds))


def _feed_forward_kinds(config: Fields, family: Family, parts: _Blocks, kinds: Sequence[Kind]) -> tuple[Block, ...]:
    layer_count = len(kinds)
    if Kind.DENSE_ONLY in kinds or Kind.EXPERTS_ONLY in kinds:
        by_kind = {Kind.DENSE_ONLY: Block.DENSE, Kind.EXPERTS_ONLY: Block.EXPERTS}
        return tuple(by_kind.get(kind, Block.NONE) for kind in kinds)
    if family.bare_state_layers:
        return (Block.NONE,) * layer_count
    alone = all(kind is Kind.STATE for kind in kinds) and not config.has("num_attention_heads", "n_head", "n_heads")
    if alone:
        return (Block.NONE,) * layer_count
    if parts.experts is None:
        return (Block.DENSE,) * layer_count
    return blocks_of_layers(config, layer_count)


def _layer(
    index: int,
    kind: Kind,
    block: Block,
    parts: _Blocks,
    config: Fields,
    family: Family,
    hidden_size: int,
) -> Layer:
    mixers, missing = _mixers(index, kind, parts, family)
    dense = parts.dense[index] if parts.dense is not None else None
    if parts.experts is not None and dense is not None and family.doubled_layers:
        mixers = 2 * mixers
        feed_forwards: tuple[FeedForward, ...] = (dense, dense, parts.experts)
    elif parts.experts is not None and parts.beside is not None and block is Block.EXPERTS:
        feed_forwards = (parts.beside, parts.experts)
    else:
        feed_forwards = feed_forwards_of(block, dense, parts.experts)
    if block is not Block.NONE and not feed_forwards:
        config.ledger.leave_open(NO_FEED_FORWARD)
        missing += 1
    norm_count = _norm_count(config, family, feed_forwards)
    return Layer(
        mixers=mixers,
        feed_forwards=feed_forwards,
        norm_vectors=norm_count * family.norm_values,
        all_reduce_count=_all_reduces(config, family, mixers, feed_forwards, missing),
        # Residuals of earlier blocks, weighed with a norm and a vector before each block of a layer (Kimi K3).
        other_parameters=4 * hidden_size if config.whole("attn_res_block_size") else 0,
        missing=missing,
    )


def _mixers(index: int, kind: Kind, parts: _Blocks, family: Family) -> tuple[tuple[Mixer, ...], int]:
    """The mixers of a layer, and how many are missing."""
    if kind in (Kind.DENSE_ONLY, Kind.EXPERTS_ONLY):
        return (), 0
    by_layer: dict[Kind, tuple[Mixer, ...] | None] = {
        Kind.FULL: parts.attention,
        Kind.WINDOW: parts.window,
        Kind.CHUNK: parts.chunk,
    }
    single: dict[Kind, Mixer | None] = {
        Kind.LINEAR: parts.linear,
        Kind.STATE: parts.state,
        Kind.HYBRID: parts.state,
        Kind.CONVOLUTION: parts.convolution,
    }
    found = single.get(kind)
    sequence = by_layer.get(kind)
    if sequence is not None:
        found = sequence[index]
    if found is None:
        return (), 1
    if family.parallel_mixers and parts.state is not None:
        return (parts.state, found), 0
    return (found,), 0


def _norm_count(config: Fields, family: Family, feed_forwards: tuple[FeedForward, ...]) -> int:
    count = max(family.layer_norms, 4 if config.flag("sandwich_norm") else 0)
    if config.flag("use_residual") and len(feed_forwards) == 2:
        count += 1
    if family.separate_feed_forwards and len(feed_forwards) == 2:
        count += 3
    if family.model_types[:1] == ("falcon",):
        count = _falcon_norm_count(config)
    if family.model_types[:1] == ("stablelm",) and config.flag("use_parallel_residual"):
        count = 1
    return count


def _falcon_norm_count(config: Fields) -> int:
    stated = config.whole("num_ln_in_parallel_attn", minimum=0, maximum=2)
    if config.flag("new_decoder_architecture"):
        return stated or 2
    return 1 if config.flag("parallel_attn") else 2


def _all_reduces(
    config: Fields, family: Family, mixers: tuple[Mixer, ...], feed_forwards: tuple[FeedForward, ...], missing: int
) -> int | None:
    merged = family.merged_blocks
    if config.has("parallel_attn"):
        merged = bool(config.flag("parallel_attn")) or bool(config.flag("new_decoder_architecture"))
    if merged:
        return 1
    if not family.separate_feed_forwards and not family.doubled_layers and len(feed_forwards) == 2:
        # Experts and the dense block beside them are added first (`arctic.py` in vLLM, commit 00db0119).
        return len(mixers) + 1 + missing
    return len(mixers) + len(feed_forwards) + missing if missing else None
