"""The mixers of a config: which fields say that a layer has attention, of what kind and of what size."""

from __future__ import annotations

from attrs import evolve

from estimator_service.architecture.family import Family
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.mixers import (
    Attention,
    CompressedAttention,
    Indexer,
    IndexerKind,
    LatentAttention,
    OutputGate,
    QueryKeyNorm,
)
from estimator_service.architecture.read_heads import (
    HEAD_DIM_KEYS,
    HEAD_KEYS,
    KEY_VALUE_KEYS,
    LATENT_RANK_KEYS,
    Heads,
)

_QUERY_BIAS_KEYS = ("qkv_bias", "use_qkv_bias", "add_qkv_bias", "attention_qkv_bias")
_BIAS_KEYS = ("attention_bias", "use_bias", "bias", "add_bias_linear", "enable_bias", "use_attention_bias")
_OUTPUT_BIAS_KEYS = ("attention_out_bias", "o_proj_bias", "attention_output_bias")
_NORM_KEYS = ("use_qk_norm", "qk_norm", "qk_layernorm", "use_qk_layernorm", "enable_qk_norm")
_DEFAULT_WINDOW_KEYS = ("sliding_window", "sliding_window_size", "attn_window_size", "window_size")


def read_window(config: Fields) -> int | None:
    """Tokens of a sliding window, whichever layers have it."""
    if config.flag("use_sliding_window") is False:
        config.use(*_DEFAULT_WINDOW_KEYS, "max_window_layers", "sliding_window_pattern")
        return None
    return config.whole(*_DEFAULT_WINDOW_KEYS, minimum=0, maximum=10**9) or None


def read_attention(config: Fields, family: Family, heads: Heads) -> Attention | None:
    """Attention over all tokens; None where the config does not say enough."""
    if not heads.count or not heads.head_dim:
        return None
    value_head_dim = config.whole("v_head_dim", "value_head_dim") or heads.head_dim
    query_key_norm = _query_key_norm(config, family)
    gate = family.output_gate
    if config.flag("attn_output_gate", "attention_output_gate") is False:
        gate = OutputGate.NONE
    elif config.flag("attn_output_gate") and gate is OutputGate.NONE:
        gate = OutputGate.VALUE
    return Attention(
        head_count=heads.count,
        key_value_head_count=heads.key_value_count,
        head_dim=heads.head_dim,
        value_head_dim=value_head_dim,
        query_rank=config.whole("share_q_dim", minimum=0) or 0,
        projection_bias=_projection_bias(config, family),
        output_bias=_output_bias(config, family),
        query_key_norm=query_key_norm,
        query_key_norm_bias=family.query_key_norm_bias and query_key_norm is not QueryKeyNorm.NONE,
        output_gate=gate,
        sinks=family.sinks,
    )


def _projection_bias(config: Fields, family: Family) -> bool:
    nested = config.section("attn_config") or config
    stated = config.flag(*_QUERY_BIAS_KEYS)
    if stated is None:
        stated = nested.flag(*_BIAS_KEYS)
    # Qwen's first generation says so of everything but these.
    if stated is None and config.flag("no_bias") is not None and not family.projection_bias:
        stated = not config.flag("no_bias")
    return family.projection_bias if stated is None else stated


def _output_bias(config: Fields, family: Family) -> bool:
    stated = config.flag(*_OUTPUT_BIAS_KEYS)
    if stated is not None:
        return stated
    if family.output_bias is False:
        return False
    shared = config.flag(*_BIAS_KEYS)
    if shared is not None:
        return shared
    return bool(family.output_bias)


def _query_key_norm(config: Fields, family: Family) -> QueryKeyNorm:
    if not family.query_key_norm_follows_key:
        config.use(*_NORM_KEYS)
        return family.query_key_norm
    stated = config.flag(*_NORM_KEYS)
    kind = config.text("qk_norm_type")
    usual = family.query_key_norm
    if stated is None and kind is None:
        return usual
    if stated is False:
        return QueryKeyNorm.NONE
    if kind is not None:
        return QueryKeyNorm.LAYER if kind == "per_layer" else QueryKeyNorm.HEAD
    if usual is QueryKeyNorm.NONE and family.model_types and family.model_types[0] in ("cohere", "stablelm"):
        return QueryKeyNorm.LAYER
    return QueryKeyNorm.HEAD if usual is QueryKeyNorm.NONE else usual


def read_latent_attention(config: Fields, hidden_size: int) -> LatentAttention | None:
    """Latent attention, where the fields of one are there."""
    latent_rank = config.whole(*LATENT_RANK_KEYS)
    if latent_rank is None:
        return None
    heads = config.whole(*HEAD_KEYS, maximum=10**5)
    content = config.whole("qk_nope_head_dim", "attention_qk_dim", minimum=0)
    position = config.whole("qk_rope_head_dim", "attention_qk_rope_dim", minimum=0)
    value = config.whole("v_head_dim", "attention_v_dim")
    query_rank = config.whole("q_lora_rank", "attention_q_lora_dim", minimum=0) or 0
    config.use("qk_head_dim", *HEAD_DIM_KEYS, *KEY_VALUE_KEYS)
    if heads is None or content is None or position is None:
        return None
    if value is None:
        # MiniCPM3.
        value = max(1, hidden_size // heads)
        config.ledger.assume(f"v_head_dim is {value}, the hidden size over the heads, since no key says.")
    bias = bool(config.flag("attention_bias"))
    return LatentAttention(
        head_count=heads,
        query_rank=query_rank,
        latent_rank=latent_rank,
        content_head_dim=content,
        position_head_dim=position,
        value_head_dim=value,
        down_bias=bias,
        output_bias=bias,
        output_gate=bool(config.flag("mla_use_output_gate")),
        read_tokens=config.whole("index_topk", maximum=10**9),
        indexer=read_indexer(config, query_rank or hidden_size),
    )


def read_indexer(config: Fields, query_width: int) -> Indexer | None:
    """The indexer of sparse attention, where the config has one."""
    head_count, head_dim = config.whole("index_n_heads", maximum=10**5), config.whole("index_head_dim")
    if head_count is None or head_dim is None:
        return None
    pool_tokens = config.whole("index_kpool_size", minimum=0) or 0
    return Indexer(
        kind=IndexerKind.POOL if pool_tokens else IndexerKind.TOKEN,
        head_count=head_count,
        head_dim=head_dim,
        query_width=query_width,
        pool_tokens=pool_tokens,
    )


def with_own_indexers(attention: LatentAttention, config: Fields, layer_count: int) -> tuple[LatentAttention, ...]:
    """The attention of each layer: some select tokens by the indexer of an earlier layer and have none of their own."""
    types = config.items("indexer_types", length=layer_count)
    config.use("index_topk_freq", "index_topk_pattern", "index_skip_topk_offset")
    if types is None:
        frequency = config.whole("index_topk_freq", minimum=1, maximum=4096) or 1
        offset = config.whole("index_skip_topk_offset", minimum=0, maximum=4096) or 0
        own = [frequency == 1 or i < offset or (i - offset + 1) % frequency == 0 for i in range(layer_count)]
    else:
        own = [kind != "shared" for kind in types]
    return tuple(attention if has_own else evolve(attention, indexer=None) for has_own in own)


def read_compressed_attention(config: Fields) -> CompressedAttention | None:
    """Attention over a window and pooled keys, where the fields of one are there."""
    group_count, output_rank = config.whole("o_groups", maximum=10**5), config.whole("o_lora_rank")
    heads, head_dim = config.whole(*HEAD_KEYS, maximum=10**5), config.whole("head_dim")
    query_rank, window = config.whole("q_lora_rank"), config.whole(*_DEFAULT_WINDOW_KEYS, maximum=10**9)
    position = config.whole("qk_rope_head_dim", minimum=0) or 0
    config.use(*KEY_VALUE_KEYS)
    if group_count is None or output_rank is None or heads is None:
        return None
    if head_dim is None or query_rank is None or window is None:
        return None
    return CompressedAttention(
        head_count=heads,
        head_dim=head_dim,
        position_head_dim=min(position, head_dim),
        query_rank=query_rank,
        output_group_count=group_count,
        output_rank=output_rank,
        window_tokens=window,
    )


def with_compression(
    attention: CompressedAttention, config: Fields, layer_count: int
) -> tuple[CompressedAttention, ...]:
    """The attention of each layer: how many tokens share a pooled key; the smallest such number is scored."""
    ratios = config.wholes("compress_ratios", length=layer_count)
    if ratios is None:
        return (attention,) * layer_count
    indexer, read_tokens = read_indexer(config, attention.query_rank), config.whole("index_topk", maximum=10**9)
    scored = min((ratio for ratio in ratios if ratio), default=0)
    plain = attention
    return tuple(
        plain
        if not ratio
        else evolve(
            plain,
            compress_tokens=ratio,
            indexer=indexer if ratio == scored else None,
            read_tokens=read_tokens if ratio == scored and indexer is not None else None,
        )
        for ratio in ratios
    )
