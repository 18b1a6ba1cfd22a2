"""The weights of each kind of mixer (`docs/formulas.md`, Parameters)."""

from __future__ import annotations

from collections.abc import Iterator

from estimator_service.architecture.mixers import (
    Attention,
    CompressedAttention,
    Indexer,
    IndexerKind,
    LatentAttention,
    LinearAttention,
    LinearKind,
    LinearMixer,
    Mixer,
    OutputGate,
    QueryKeyNorm,
    ShortConvolution,
    StateSpace,
)
from estimator_service.architecture.weight import Weight, matrix, vector
from linkbound.domain.catalog import ModelPart, WeightSplit

_ATTENTION = ModelPart.ATTENTION
_INDEXER = ModelPart.SPARSE_INDEXER
_LINEAR = ModelPart.LINEAR_MIXER
_WHOLE = WeightSplit.REPLICATED
_BY_HEADS = WeightSplit.KEY_VALUE_HEADS
_SLICED = WeightSplit.SLICED


def weights_of_mixer(mixer: Mixer, hidden_size: int) -> Iterator[Weight]:
    """Weights of one mixer of a model of `hidden_size` (`docs/formulas.md`, Parameters)."""
    match mixer:
        case Attention():
            yield from _attention(mixer, hidden_size)
        case LatentAttention():
            yield from _latent(mixer, hidden_size)
        case CompressedAttention():
            yield from _compressed(mixer, hidden_size)
        case LinearAttention():
            yield from _linear(mixer, hidden_size)
        case StateSpace():
            yield from _mamba_2(mixer, hidden_size) if mixer.head_count else _mamba_1(mixer, hidden_size)
        case ShortConvolution():
            yield matrix("conv.in_proj", _LINEAR, 3 * hidden_size, hidden_size, bias=mixer.bias)
            convolution_values = hidden_size * (mixer.width + mixer.bias)
            yield vector("conv.conv", _LINEAR, convolution_values, split=_SLICED)
            yield matrix("conv.out_proj", _LINEAR, hidden_size, hidden_size, bias=mixer.bias)
        case LinearMixer():
            yield matrix("self_attn.linear", _LINEAR, hidden_size, hidden_size, bias=mixer.bias)


def _attention(a: Attention, h: int) -> Iterator[Weight]:
    inputs = a.input_width or h
    query_rows = a.head_count * a.head_dim
    gate_rows = query_rows if a.output_gate is OutputGate.VALUE else 0
    key_rows = a.key_value_head_count * a.head_dim
    value_rows = a.key_value_head_count * a.value_head_dim
    if a.query_rank:
        yield matrix("self_attn.q_a_proj", _ATTENTION, a.query_rank, inputs, split=_WHOLE)
        yield vector("self_attn.q_a_norm", ModelPart.NORM, a.query_rank)
    yield matrix("self_attn.q_proj", _ATTENTION, query_rows + gate_rows, a.query_rank or inputs, bias=a.projection_bias)
    has_projections = not a.reuses_cache or a.stores_unused_projections
    if has_projections:
        yield matrix("self_attn.k_proj", _ATTENTION, key_rows, inputs, bias=a.projection_bias, split=_BY_HEADS)
        if not a.value_is_key:
            yield matrix("self_attn.v_proj", _ATTENTION, value_rows, inputs, bias=a.projection_bias, split=_BY_HEADS)
    yield matrix("self_attn.o_proj", _ATTENTION, h, a.head_count * a.value_head_dim, bias=a.output_bias)
    if a.output_gate is OutputGate.HEAD:
        yield matrix("self_attn.g_proj", _ATTENTION, a.head_count, inputs)
    if a.sinks:
        yield vector("self_attn.sinks", _ATTENTION, a.head_count, split=_SLICED)
    if a.query_key_norm is not QueryKeyNorm.NONE:
        over_heads = a.query_key_norm is QueryKeyNorm.LAYER
        norm_width = query_rows if over_heads else a.head_dim
        if has_projections:
            norm_width += key_rows if over_heads else a.head_dim
        yield vector("self_attn.norm", ModelPart.NORM, norm_width * (2 if a.query_key_norm_bias else 1))
    if a.indexer is not None:
        yield from _indexer(a.indexer, h)


def _latent(a: LatentAttention, h: int) -> Iterator[Weight]:
    query_rows = a.head_count * (a.content_head_dim + a.position_head_dim)
    norm_values = a.latent_rank
    if a.query_rank:
        yield matrix("self_attn.q_a_proj", _ATTENTION, a.query_rank, h, bias=a.down_bias, split=_WHOLE)
        yield matrix("self_attn.q_b_proj", _ATTENTION, query_rows, a.query_rank)
        norm_values += a.query_rank
    else:
        yield matrix("self_attn.q_proj", _ATTENTION, query_rows, h)
    down_rows = a.latent_rank + a.position_head_dim
    up_rows = a.head_count * (a.content_head_dim + a.value_head_dim)
    yield matrix("self_attn.kv_a_proj_with_mqa", _ATTENTION, down_rows, h, bias=a.down_bias, split=_WHOLE)
    yield matrix("self_attn.kv_b_proj", _ATTENTION, up_rows, a.latent_rank)
    yield matrix("self_attn.o_proj", _ATTENTION, h, a.head_count * a.value_head_dim, bias=a.output_bias)
    if a.output_gate:
        yield matrix("self_attn.g_proj", _ATTENTION, a.head_count * a.value_head_dim, h)
    yield vector("self_attn.norm", ModelPart.NORM, norm_values)
    if a.indexer is not None:
        yield from _indexer(a.indexer, h)


def _indexer(i: Indexer, h: int) -> Iterator[Weight]:
    rows = i.head_count * i.head_dim
    yield matrix("self_attn.indexer.wq_b", _INDEXER, rows, i.query_width, split=_WHOLE)
    yield matrix("self_attn.indexer.wk", _INDEXER, i.head_dim, h, split=_WHOLE)
    yield vector("self_attn.indexer.norm", _INDEXER, 2 * i.head_dim)
    if i.kind is not IndexerKind.BLOCK:
        yield matrix("self_attn.indexer.weights_proj", _INDEXER, i.head_count, h, split=_WHOLE, plain=True)
    if i.kind is IndexerKind.POOL:
        yield matrix("self_attn.indexer.pool_gate", _INDEXER, i.head_dim, h, split=_WHOLE, plain=True)
        yield vector("self_attn.indexer.pool_positions", _INDEXER, i.pool_tokens * i.head_dim)


def _compressed(a: CompressedAttention, h: int) -> Iterator[Weight]:
    query_rows = a.head_count * a.head_dim
    yield matrix("self_attn.q_a_proj", _ATTENTION, a.query_rank, h, split=_WHOLE)
    yield matrix("self_attn.q_b_proj", _ATTENTION, query_rows, a.query_rank)
    yield matrix("self_attn.kv_proj", _ATTENTION, a.head_dim, h, split=_WHOLE)
    output_rows = a.output_group_count * a.output_rank
    yield matrix("self_attn.o_a_proj", _ATTENTION, output_rows, query_rows // a.output_group_count)
    yield matrix("self_attn.o_b_proj", _ATTENTION, h, output_rows)
    yield vector("self_attn.sinks", _ATTENTION, a.head_count, split=_SLICED)
    yield vector("self_attn.norm", ModelPart.NORM, a.query_rank + a.head_dim)
    if not a.compress_tokens:
        return
    yield from _compressor("self_attn.compressor", _ATTENTION, a, a.head_dim, h)
    if a.indexer is not None:
        rows = a.indexer.head_count * a.indexer.head_dim
        yield from _compressor("self_attn.indexer.compressor", _INDEXER, a, a.indexer.head_dim, h)
        yield matrix("self_attn.indexer.wq_b", _INDEXER, rows, a.indexer.query_width, split=_WHOLE)
        yield matrix("self_attn.indexer.weights_proj", _INDEXER, a.indexer.head_count, h, split=_WHOLE, plain=True)


def _compressor(module: str, part: ModelPart, a: CompressedAttention, width: int, h: int) -> Iterator[Weight]:
    # Pools that an indexer scores overlap: each token is in two, so there are two of everything.
    rows = 2 * width if a.indexer is not None else width
    yield matrix(f"{module}.kv_proj", part, rows, h, split=_WHOLE, plain=True)
    yield matrix(f"{module}.gate_proj", part, rows, h, split=_WHOLE, plain=True)
    yield vector(f"{module}.positions", part, a.compress_tokens * rows)
    yield vector(f"{module}.norm", ModelPart.NORM, width)


def _linear(a: LinearAttention, h: int) -> Iterator[Weight]:
    key_rows, value_rows = a.key_head_count * a.key_head_dim, a.value_head_count * a.value_head_dim
    convolution_values = (2 * key_rows + value_rows) * a.convolution_width
    yield matrix("linear_attn.in_proj_qkv", _LINEAR, 2 * key_rows + value_rows, h)
    if a.convolution_width:
        yield vector("linear_attn.conv1d", _LINEAR, convolution_values, split=_SLICED)
    if a.kind is LinearKind.GATED_DELTA:
        yield matrix("linear_attn.in_proj_z", _LINEAR, value_rows, h)
        yield matrix("linear_attn.in_proj_ba", _LINEAR, 2 * a.value_head_count, h)
        yield vector("linear_attn.decay", _LINEAR, 2 * a.value_head_count, split=_SLICED)
        yield vector("linear_attn.norm", ModelPart.NORM, a.value_head_dim)
    elif a.kind is LinearKind.KIMI_DELTA:
        yield matrix("linear_attn.f_a_proj", _LINEAR, a.value_head_dim, h, split=_WHOLE)
        yield matrix("linear_attn.f_b_proj", _LINEAR, value_rows, a.value_head_dim)
        yield matrix("linear_attn.b_proj", _LINEAR, a.value_head_count, h)
        if a.gate_rank:
            yield matrix("linear_attn.g_a_proj", _LINEAR, a.gate_rank, h, split=_WHOLE)
        yield matrix("linear_attn.g_b_proj", _LINEAR, value_rows, a.gate_rank or h)
        yield vector("linear_attn.decay", _LINEAR, value_rows + a.value_head_count, split=_SLICED)
        yield vector("linear_attn.norm", ModelPart.NORM, a.value_head_dim)
    else:
        yield matrix("linear_attn.output_gate", _LINEAR, value_rows, h)
        yield vector("linear_attn.norm", ModelPart.NORM, value_rows)
    yield matrix("linear_attn.out_proj", _LINEAR, h, value_rows)


def _mamba_2(s: StateSpace, h: int) -> Iterator[Weight]:
    convolved = s.inner_width + 2 * s.group_count * s.state_width
    yield matrix("mixer.in_proj", _LINEAR, convolved + s.inner_width + s.head_count, h, bias=s.projection_bias)
    convolution_values = convolved * (s.convolution_width + s.convolution_bias)
    yield vector("mixer.conv1d", _LINEAR, convolution_values, split=_SLICED)
    yield vector("mixer.heads", _LINEAR, 3 * s.head_count, split=_SLICED)
    if s.inner_norm:
        yield vector("mixer.norm", ModelPart.NORM, s.inner_width, split=_SLICED)
    yield matrix("mixer.out_proj", _LINEAR, h, s.inner_width, bias=s.projection_bias)


def _mamba_1(s: StateSpace, h: int) -> Iterator[Weight]:
    yield matrix("mixer.in_proj", _LINEAR, 2 * s.inner_width, h, bias=s.projection_bias)
    convolution_values = s.inner_width * (s.convolution_width + s.convolution_bias)
    yield vector("mixer.conv1d", _LINEAR, convolution_values, split=_SLICED)
    yield matrix("mixer.x_proj", _LINEAR, s.step_rank + 2 * s.state_width, s.inner_width)
    yield matrix("mixer.dt_proj", _LINEAR, s.inner_width, s.step_rank, bias=True)
    yield vector("mixer.states", _LINEAR, s.inner_width * (s.state_width + 1), split=_SLICED)
    if s.inner_norm:
        yield vector("mixer.norm", ModelPart.NORM, s.step_rank + 2 * s.state_width)
    yield matrix("mixer.out_proj", _LINEAR, h, s.inner_width, bias=s.projection_bias)
