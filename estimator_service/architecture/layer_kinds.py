"""What kind of mixer each layer has, from whichever of the many keys says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from estimator_service.architecture.family import UNKNOWN, Family
from estimator_service.architecture.fields import Fields
from linkbound.domain.rules import shown


class Kind(Enum):
    """The mixer of a layer, or the one block of a layer that has no mixer."""

    FULL = "attention over all tokens"
    WINDOW = "attention over a window"
    CHUNK = "attention within a chunk"
    LINEAR = "linear attention"
    STATE = "state space"
    CONVOLUTION = "convolution"
    DENSE_ONLY = "dense block alone"
    EXPERTS_ONLY = "experts alone"
    HYBRID = "state space, then attention and a dense block shared by several layers"
    UNKNOWN = "not known"


_NAMES = {
    "full_attention": Kind.FULL,
    "attention": Kind.FULL,
    "global_attention": Kind.FULL,
    "global": Kind.FULL,
    "full": Kind.FULL,
    "*": Kind.FULL,
    "a": Kind.FULL,
    "deepseek_sparse_attention": Kind.FULL,
    "sparse_attention": Kind.FULL,
    "minimax_m3_sparse": Kind.FULL,
    "compressed_sparse_attention": Kind.FULL,
    "heavily_compressed_attention": Kind.FULL,
    "sliding_attention": Kind.WINDOW,
    "sliding_window_attention": Kind.WINDOW,
    "local_attention": Kind.WINDOW,
    "local": Kind.WINDOW,
    "sliding": Kind.WINDOW,
    "chunked_attention": Kind.CHUNK,
    "linear_attention": Kind.LINEAR,
    "kda": Kind.LINEAR,
    "gated_delta_net": Kind.LINEAR,
    "lightning_attention": Kind.LINEAR,
    "mamba": Kind.STATE,
    "mamba2": Kind.STATE,
    "m": Kind.STATE,
    "hybrid": Kind.HYBRID,
    "conv": Kind.CONVOLUTION,
    "short_conv": Kind.CONVOLUTION,
    "mlp": Kind.DENSE_ONLY,
    "-": Kind.DENSE_ONLY,
    "moe": Kind.EXPERTS_ONLY,
    "e": Kind.EXPERTS_ONLY,
}
_LIST_KEYS = ("layers_block_type", "layer_types", "layer_block_types", "block_types", "hybrid_layer_types")
_WINDOW_PERIOD_KEYS = ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
_RECURRENT_MODES = ("chunk", "fused_chunk", "fused_recurrent")
"""How flash-linear-attention runs its layers, whatever they are made of."""
_PATTERN_KEYS = ("hybrid_override_pattern", "hybrid_pattern")
COUNT_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "n_blocks", "num_transformer_layers")
_DECODER_KEYS = ("num_decoder_layers", "decoder_layers")


def layer_count_of(config: Fields, limit: int) -> int | None:
    """How many layers there are: a count, else the length of the list that names them. At most `limit`."""
    if config.has(*_DECODER_KEYS):
        # Of an encoder-decoder: any other count is, or may be, that of the encoder.
        config.use(*COUNT_KEYS)
        return config.whole(*_DECODER_KEYS, maximum=limit)
    names = COUNT_KEYS
    config.note_conflicts(*names)
    stated = config.whole(*names, maximum=limit)
    if stated is not None or config.states(*names):
        return stated
    for key in _LIST_KEYS:
        if config.states(key):
            named = config.items(key)
            return None if named is None else len(named)
    for key in _PATTERN_KEYS:
        pattern = config.text(key) if config.states(key) else None
        if pattern:
            return min(len(pattern), limit)
    return config.whole(*names, maximum=limit)


def kinds_of_layers(config: Fields, family: Family, layer_count: int, *, has_window: bool) -> tuple[Kind, ...]:
    """The kind of each layer (`docs/formulas.md`, Parameters)."""
    if family.unread_mixers or (family is UNKNOWN and config.values.get("attn_mode") in _RECURRENT_MODES):
        config.use("attn_mode")
        reason = family.unread_mixers or "attn_mode is that of linear attention, of a kind that no key names"
        config.ledger.leave_open(f"{reason}: its parameters and caches are not counted")
        return (Kind.UNKNOWN,) * layer_count
    readers: tuple[Callable[[Fields, int], Sequence[Kind] | None], ...] = (
        _by_pattern,
        _by_names,
        _by_attention_names,
        _by_flags,
        _by_linear_lists,
        _by_attention_lists,
        _by_period,
    )
    for reader in readers:
        kinds = reader(config, layer_count)
        if kinds is not None:
            config.use("full_attention_interval", "sliding_window_pattern", "global_attn_every_n_layers", *_LIST_KEYS)
            return tuple(kinds)
    if _is_state_space_alone(config) or (has_state_space(config) and not family.parallel_mixers):
        return (Kind.STATE,) * layer_count
    if has_window:
        return _windows(config, family, layer_count)
    chunked = _chunks(config, layer_count)
    return (Kind.FULL,) * layer_count if chunked is None else chunked


def _known_hybrids(config: Fields, kinds: Sequence[Kind]) -> list[Kind]:
    """Hybrid layers are known of Zamba2 alone, by the count of blocks that they share."""
    if Kind.HYBRID in kinds and not config.has("num_mem_blocks"):
        config.ledger.leave_open("what a layer called 'hybrid' is made of: its parameters are not counted")
        return [Kind.UNKNOWN if kind is Kind.HYBRID else kind for kind in kinds]
    return list(kinds)


def kind_of_name(name: object) -> Kind:
    """The kind that a config calls `name`."""
    return _NAMES.get(name.casefold(), Kind.UNKNOWN) if isinstance(name, str) else Kind.UNKNOWN


def _named(config: Fields, names: Sequence[object]) -> list[Kind]:
    kinds = [kind_of_name(name) for name in names]
    unknown = sorted({shown(name) for name, kind in zip(names, kinds, strict=True) if kind is Kind.UNKNOWN})
    for name in unknown[:4]:
        config.ledger.leave_open(f"what a layer called {name} is made of: its parameters are not counted")
    return kinds


def _by_pattern(config: Fields, layer_count: int) -> Sequence[Kind] | None:
    pattern = next((config.text(key) for key in _PATTERN_KEYS if isinstance(config.values.get(key), str)), None)
    if pattern is None:
        return None
    if len(pattern) < layer_count:
        config.refuse(_PATTERN_KEYS[0], f"{len(pattern)} characters are fewer than the {layer_count} layers")
        return None
    return _named(config, pattern[:layer_count])


def _by_names(config: Fields, layer_count: int) -> Sequence[Kind] | None:
    for key in _LIST_KEYS:
        names = config.items(key)
        if not names:
            continue
        if key == "block_types":
            # A pattern that repeats.
            names = [names[i % len(names)] for i in range(layer_count)]
        if len(names) < layer_count:
            config.refuse(key, f"{len(names)} entries are fewer than the {layer_count} layers")
            return None
        kinds = _known_hybrids(config, _named(config, names[:layer_count]))
        if has_state_space(config) and not has_linear_attention(config):
            return [Kind.STATE if kind is Kind.LINEAR else kind for kind in kinds]
        return kinds
    return None


def _by_attention_names(config: Fields, layer_count: int) -> Sequence[Kind] | None:
    """GPT-Neo names the attention of each layer; elsewhere the key may hold numbers, which are not read."""
    names = config.values.get("attention_layers")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        return None
    config.close("attention_types")
    listed = config.items("attention_layers", length=layer_count)
    return None if listed is None else _named(config, listed)


def _by_flags(config: Fields, layer_count: int) -> Sequence[Kind] | None:
    """Lists of 0 and 1: MiMo marks windows, MiniMax marks full attention."""
    windows = config.wholes("hybrid_layer_pattern", length=layer_count)
    if windows is not None:
        return [Kind.WINDOW if flag else Kind.FULL for flag in windows]
    full = config.wholes("attn_type_list", length=layer_count)
    return None if full is None else [Kind.FULL if flag else Kind.LINEAR for flag in full]


def _by_linear_lists(config: Fields, layer_count: int) -> Sequence[Kind] | None:
    """Kimi lists the layers of each kind, counted from 1."""
    nested = config.section("linear_attn_config")
    if nested is None:
        return None
    full = nested.wholes("full_attn_layers", minimum=1)
    nested.use("kda_layers")
    if full is None:
        return None
    return [Kind.FULL if i + 1 in full else Kind.LINEAR for i in range(layer_count)]


def _by_attention_lists(config: Fields, layer_count: int) -> Sequence[Kind] | None:
    """State spaces everywhere but in the layers that are listed (Bamba)."""
    attention = config.wholes("attn_layer_indices", "attn_layer_idx", "full_attn_idxs")
    if attention is None:
        return None
    other = Kind.CONVOLUTION if config.has("conv_L_cache") else Kind.STATE
    return [Kind.FULL if i in attention else other for i in range(layer_count)]


def _by_period(config: Fields, layer_count: int) -> Sequence[Kind] | None:
    interval = config.whole("full_attention_interval", maximum=10**5)
    if interval is not None and has_linear_attention(config):
        return [Kind.FULL if (i + 1) % interval == 0 else Kind.LINEAR for i in range(layer_count)]
    group_size = config.whole("layer_group_size", maximum=10**5) or 1
    if group_size > 1:
        # Bailing: the last layer of each group, and those after the last whole group, see all tokens.
        whole_groups = layer_count // group_size * group_size
        return [
            Kind.FULL if (i + 1) % group_size == 0 or i >= whole_groups else Kind.LINEAR for i in range(layer_count)
        ]
    period = config.whole("attn_layer_period", maximum=10**5)
    if period is None:
        return None
    offset = config.whole("attn_layer_offset", minimum=0) or 0
    return [Kind.FULL if i % period == offset else Kind.STATE for i in range(layer_count)]


def has_state_space(config: Fields) -> bool:
    """Whether the config has the fields of a state space beside those of attention."""
    return config.has("mamba_d_state", "mamba_num_heads", "mamba_n_heads", "mamba_state_size")


def has_linear_attention(config: Fields) -> bool:
    """Whether the config has the fields of linear attention."""
    return config.has("linear_num_value_heads", "linear_attn_config", "linear_num_heads")


def _is_state_space_alone(config: Fields) -> bool:
    has_state = config.has("state_size", "ssm_state_size", "d_state")
    return has_state and not config.has("num_attention_heads", "n_head", "n_heads")


def _windows(config: Fields, family: Family, layer_count: int) -> tuple[Kind, ...]:
    lettered = config.values.get("sliding_window_pattern")
    if isinstance(lettered, str) and lettered:
        # One letter for each layer, repeated: L for a window, anything else for all tokens.
        config.use("sliding_window_pattern")
        return tuple(Kind.WINDOW if lettered[i % len(lettered)] in "Ll" else Kind.FULL for i in range(layer_count))
    pattern = config.whole(*_WINDOW_PERIOD_KEYS, maximum=10**5) or family.window_pattern
    first_full = (
        config.whole("max_window_layers", minimum=0, maximum=10**5) if config.flag("use_sliding_window") else None
    )
    if pattern:
        return tuple(Kind.FULL if (i + 1) % pattern == 0 else Kind.WINDOW for i in range(layer_count))
    if first_full is not None:
        return tuple(Kind.FULL if i < first_full else Kind.WINDOW for i in range(layer_count))
    return (Kind.WINDOW,) * layer_count


def _chunks(config: Fields, layer_count: int) -> tuple[Kind, ...] | None:
    """Llama 4: chunks but in each fourth layer, or in those without rotary positions."""
    if config.whole("attention_chunk_size", maximum=10**9) is None:
        return None
    with_positions = config.wholes("no_rope_layers")
    if not with_positions or len(with_positions) < layer_count:
        step = config.whole("no_rope_layer_interval", maximum=10**5) or 4
        with_positions = tuple(int((i + 1) % step != 0) for i in range(layer_count))
    return tuple(Kind.CHUNK if flag else Kind.FULL for flag in with_positions[:layer_count])
