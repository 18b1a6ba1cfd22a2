"""The attention of each layer: over all tokens, over a window or a chunk, over what an indexer selects."""

from __future__ import annotations

from attrs import evolve

from estimator_service.architecture.family import Family
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.mixers import Attention, Indexer, IndexerKind, Mixer
from estimator_service.architecture.read_attention import (
    read_attention,
    read_compressed_attention,
    read_latent_attention,
    with_compression,
    with_own_indexers,
)
from estimator_service.architecture.read_heads import LATENT_RANK_KEYS, Heads, with_heads_of_layers

NO_ATTENTION = "the size of attention: heads or their width are not in the config"
NO_LATENT_ATTENTION = "the size of latent attention: heads or the widths of their queries are not in the config"
NO_COMPRESSED_ATTENTION = "the size of compressed attention: heads, ranks, groups or the window are not in the config"


def full_attention(
    config: Fields, family: Family, heads: Heads, hidden_size: int, layer_count: int
) -> tuple[Mixer, ...] | None:
    """Attention over all tokens, of each layer: latent, compressed or with heads of keys, whichever the fields give."""
    if config.has(*LATENT_RANK_KEYS):
        latent = read_latent_attention(config, hidden_size)
        if latent is None:
            config.ledger.leave_open(NO_LATENT_ATTENTION)
            return None
        return with_own_indexers(latent, config, layer_count)
    if config.has("o_lora_rank"):
        compressed = read_compressed_attention(config)
        if compressed is None:
            config.ledger.leave_open(NO_COMPRESSED_ATTENTION)
            return None
        return with_compression(compressed, config, layer_count)
    plain = read_attention(config, family, heads)
    if plain is None:
        config.ledger.leave_open(NO_ATTENTION)
        return None
    plain = _global_attention(plain, config)
    if config.flag("add_full_attention_sink_bias") is False:
        plain = evolve(plain, sinks=False)
    return with_heads_of_layers(_block_sparse(plain, config, hidden_size, layer_count), config)


def _global_attention(plain: Attention, config: Fields) -> Attention:
    """Gemma 4: attention over all tokens has wider and fewer heads than that over a window, and one for both."""
    head_dim = config.whole("global_head_dim")
    if head_dim is None:
        return plain
    return evolve(
        plain,
        head_dim=head_dim,
        value_head_dim=head_dim,
        key_value_head_count=config.whole("num_global_key_value_heads", maximum=10**5) or plain.key_value_head_count,
        value_is_key=bool(config.flag("attention_k_eq_v")),
    )


def _block_sparse(plain: Attention, config: Fields, hidden_size: int, layer_count: int) -> tuple[Attention, ...]:
    """MiniMax-M3: attention that selects blocks of tokens, in the layers that are marked."""
    sparse = config.section("sparse_attention_config")
    if sparse is None or sparse.flag("use_sparse_attention") is False:
        return (plain,) * layer_count
    head_count, head_dim = sparse.whole("sparse_num_index_heads", maximum=10**5), sparse.whole("sparse_index_dim")
    marks = sparse.wholes("sparse_attention_freq", length=layer_count)
    blocks, block_tokens = sparse.whole("sparse_topk_blocks"), sparse.whole("sparse_block_size")
    sparse.use("sparse_init_block", "sparse_local_block", "sparse_disable_index_value", "sparse_score_type")
    if head_count is None or head_dim is None:
        return (plain,) * layer_count
    indexer = Indexer(kind=IndexerKind.BLOCK, head_count=head_count, head_dim=head_dim, query_width=hidden_size)
    read_tokens = min(blocks * block_tokens, 10**9) if blocks and block_tokens else None
    marked = evolve(plain, indexer=indexer, read_tokens=read_tokens)
    return tuple(marked if mark else plain for mark in marks or (1,) * layer_count)


def windowed_attention(
    config: Fields,
    family: Family,
    heads: Heads,
    attention: tuple[Mixer, ...] | None,
    window: int | None,
) -> tuple[Mixer, ...] | None:
    """Attention over a window: like that over all tokens, unless keys give it heads of its own."""
    if attention is None or not isinstance(attention[0], Attention):
        return with_window(attention, window)
    plain = read_attention(config, family, heads) if config.has("global_head_dim") else None
    own = tuple(plain or a for a in attention)
    return with_window(tuple(_with_own_heads(a, config) if isinstance(a, Attention) else a for a in own), window)


def _with_own_heads(attention: Attention, config: Fields) -> Attention:
    """MiMo-V2: attention over a window has its own counts and widths of heads, and its own sinks."""
    sinks = config.flag("add_swa_attention_sink_bias")
    return evolve(
        attention,
        head_count=config.whole("swa_num_attention_heads", maximum=10**5) or attention.head_count,
        key_value_head_count=config.whole("swa_num_key_value_heads", maximum=10**5) or attention.key_value_head_count,
        head_dim=config.whole("swa_head_dim") or attention.head_dim,
        value_head_dim=config.whole("swa_v_head_dim") or attention.value_head_dim,
        sinks=attention.sinks if sinks is None else sinks,
    )


def with_window(attention: tuple[Mixer, ...] | None, window: int | None) -> tuple[Mixer, ...] | None:
    """The attention of each layer within `window` tokens; None: as it is."""
    if attention is None or window is None:
        return attention
    return tuple(evolve(a, window_tokens=window) if isinstance(a, Attention) else a for a in attention)
