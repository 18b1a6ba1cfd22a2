"""What mixes tokens in a layer: softmax attention in its kinds, linear attention, state spaces."""

from __future__ import annotations

from enum import Enum

from attrs import field, frozen

from linkbound.domain.rules import instance, member, optional, whole

_HEADS = whole(1, 10**5)
_WIDTH = whole(1, 10**6)
_OPTIONAL_WIDTH = whole(0, 10**6)
_TOKENS = optional(whole(1, 10**9))
_FLAG = instance(bool)


class QueryKeyNorm(Enum):
    """Norms of queries and keys: none, one vector for every head, or one over all heads."""

    NONE = "none"
    HEAD = "head"
    LAYER = "layer"


class OutputGate(Enum):
    """What gates the output of attention: nothing, a value for each head, or a value for each of its values."""

    NONE = "none"
    HEAD = "head"
    VALUE = "value"


class IndexerKind(Enum):
    """How the tokens that sparse attention reads are scored.

    TOKEN: heads weigh each token (DeepSeek). POOL: the same over pooled keys. BLOCK: blocks of tokens, no weights.
    """

    TOKEN = "token"
    POOL = "pool"
    BLOCK = "block"


@frozen(kw_only=True)
class Indexer:
    """Scores tokens with heads of its own and keeps one key of `head_dim` for each.

    `query_width` is what its queries are made from: the query rank, or the hidden size. `pool_tokens` tokens share a
    key of a POOL indexer.
    """

    kind: IndexerKind = field(default=IndexerKind.TOKEN, metadata=member(IndexerKind))
    head_count: int = field(metadata=_HEADS)
    head_dim: int = field(metadata=_WIDTH)
    query_width: int = field(metadata=_WIDTH)
    pool_tokens: int = field(default=0, metadata=whole(0, 10**6))


@frozen(kw_only=True)
class Attention:
    """Softmax attention with keys and values of their own heads (MHA, GQA, MQA).

    `query_rank`: queries of all heads come from so many values; 0: from the input. `projection_bias` is that of
    queries, keys and values. `value_is_key`: no value projection. `reuses_cache`: keys and values are those of an
    earlier layer, and nothing projects them unless `stores_unused_projections`. `sinks`: one learned logit a head.
    `window_tokens` bounds what a token sees, `read_tokens` what it selects of that.
    """

    head_count: int = field(metadata=_HEADS)
    key_value_head_count: int = field(metadata=_HEADS)
    head_dim: int = field(metadata=_WIDTH)
    value_head_dim: int = field(metadata=_WIDTH)
    input_width: int = field(default=0, metadata=_OPTIONAL_WIDTH)
    query_rank: int = field(default=0, metadata=_OPTIONAL_WIDTH)
    projection_bias: bool = field(default=False, metadata=_FLAG)
    output_bias: bool = field(default=False, metadata=_FLAG)
    query_key_norm: QueryKeyNorm = field(default=QueryKeyNorm.NONE, metadata=member(QueryKeyNorm))
    query_key_norm_bias: bool = field(default=False, metadata=_FLAG)
    output_gate: OutputGate = field(default=OutputGate.NONE, metadata=member(OutputGate))
    value_is_key: bool = field(default=False, metadata=_FLAG)
    reuses_cache: bool = field(default=False, metadata=_FLAG)
    stores_unused_projections: bool = field(default=False, metadata=_FLAG)
    sinks: bool = field(default=False, metadata=_FLAG)
    window_tokens: int | None = field(default=None, metadata=_TOKENS)
    read_tokens: int | None = field(default=None, metadata=_TOKENS)
    indexer: Indexer | None = field(default=None, metadata=optional(instance(Indexer)))


@frozen(kw_only=True)
class LatentAttention:
    """Multi-head latent attention: keys and values of all heads come from one latent per token (MLA).

    `query_rank` 0: queries are projected at full rank. `down_bias` is that of the projections to the ranks.
    `read_tokens` bounds what sparse attention reads; `indexer` None with it: the selection of an earlier layer.
    """

    head_count: int = field(metadata=_HEADS)
    query_rank: int = field(metadata=_OPTIONAL_WIDTH)
    latent_rank: int = field(metadata=_WIDTH)
    content_head_dim: int = field(metadata=_OPTIONAL_WIDTH)
    position_head_dim: int = field(metadata=_OPTIONAL_WIDTH)
    value_head_dim: int = field(metadata=_WIDTH)
    down_bias: bool = field(default=False, metadata=_FLAG)
    output_bias: bool = field(default=False, metadata=_FLAG)
    output_gate: bool = field(default=False, metadata=_FLAG)
    read_tokens: int | None = field(default=None, metadata=_TOKENS)
    indexer: Indexer | None = field(default=None, metadata=optional(instance(Indexer)))


@frozen(kw_only=True)
class CompressedAttention:
    """Attention over a window and over pooled keys (DeepSeek-V4): one head of `head_dim` is key and value of all.

    `compress_tokens` tokens share one pooled key; 0: the window alone. The output goes through groups of rank
    `output_rank`. `indexer` scores pooled keys, of which `read_tokens` tokens' worth are read.
    """

    head_count: int = field(metadata=_HEADS)
    head_dim: int = field(metadata=_WIDTH)
    position_head_dim: int = field(default=0, metadata=_OPTIONAL_WIDTH)
    query_rank: int = field(metadata=_WIDTH)
    output_group_count: int = field(metadata=_HEADS)
    output_rank: int = field(metadata=_WIDTH)
    window_tokens: int = field(metadata=whole(1, 10**9))
    compress_tokens: int = field(default=0, metadata=whole(0, 10**6))
    read_tokens: int | None = field(default=None, metadata=_TOKENS)
    indexer: Indexer | None = field(default=None, metadata=optional(instance(Indexer)))


class LinearKind(Enum):
    """Linear attention: a gated delta net, Kimi's delta attention, or decay alone (lightning attention)."""

    GATED_DELTA = "gated_delta"
    KIMI_DELTA = "kimi_delta"
    LIGHTNING = "lightning"


@frozen(kw_only=True)
class LinearAttention:
    """Attention with a state of fixed size: a matrix of key by value width for each value head.

    `gate_rank` is the rank of the output gate; 0: full rank.
    """

    kind: LinearKind = field(metadata=member(LinearKind))
    key_head_count: int = field(metadata=_HEADS)
    value_head_count: int = field(metadata=_HEADS)
    key_head_dim: int = field(metadata=_WIDTH)
    value_head_dim: int = field(metadata=_WIDTH)
    convolution_width: int = field(default=0, metadata=whole(0, 1024))
    gate_rank: int = field(default=0, metadata=_OPTIONAL_WIDTH)
    state_value_bytes: int = field(default=4, metadata=whole(1, 8))


@frozen(kw_only=True)
class StateSpace:
    """A selective state space: Mamba-1 where `head_count` is 0 and `step_rank` counts, else Mamba-2."""

    inner_width: int = field(metadata=_WIDTH)
    state_width: int = field(metadata=_WIDTH)
    convolution_width: int = field(metadata=whole(1, 1024))
    head_count: int = field(default=0, metadata=whole(0, 10**5))
    group_count: int = field(default=1, metadata=_HEADS)
    step_rank: int = field(default=0, metadata=_OPTIONAL_WIDTH)
    convolution_bias: bool = field(default=True, metadata=_FLAG)
    projection_bias: bool = field(default=False, metadata=_FLAG)
    inner_norm: bool = field(default=False, metadata=_FLAG)
    state_value_bytes: int = field(default=2, metadata=whole(1, 8))


@frozen(kw_only=True)
class ShortConvolution:
    """A gated convolution over the last tokens (LFM2): three projections of the hidden size in, one out."""

    width: int = field(metadata=whole(1, 1024))
    bias: bool = field(default=False, metadata=_FLAG)


@frozen(kw_only=True)
class LinearMixer:
    """One matrix in place of attention, as pruned models have it."""

    bias: bool = field(default=False, metadata=_FLAG)


Mixer = (
    Attention | LatentAttention | CompressedAttention | LinearAttention | StateSpace | ShortConvolution | LinearMixer
)
MIXERS = (Attention, LatentAttention, CompressedAttention, LinearAttention, StateSpace, ShortConvolution, LinearMixer)
