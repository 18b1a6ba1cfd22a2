"""The feed-forward blocks of a config: dense ones, experts, and which layers have which."""

from __future__ import annotations

from estimator_service.architecture.facts import DenseFeedForward, Experts, FeedForward
from estimator_service.architecture.family import Family
from estimator_service.architecture.feed_forward_layers import LAYER_KEYS, Block
from estimator_service.architecture.fields import Fields

_COUNT_KEYS = (
    "n_routed_experts",
    "num_experts",
    "num_local_experts",
    "moe_num_experts",
    "num_routed_experts",
    "n_experts",
    "num_moe_experts",
)
_ACTIVE_KEYS = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "num_selected_experts",
    "experts_per_token",
    "experts_per_tok",
    "top_k_experts",
    "moe_top_k",
    "moe_topk",
    "moe_k",
    "num_activated_experts",
    "topk",
)
_EXPERT_WIDTH_KEYS = (
    "moe_intermediate_size",
    "expert_intermediate_size",
    "moe_ffn_hidden_size",
    "expert_ffn_hidden_size",
    "moe_inner_size",
)
_SHARED_COUNT_KEYS = (
    "n_shared_experts",
    "num_shared_experts",
    "num_shared_expert",
    "moe_num_shared_experts",
    "shared_expert_num",
)
_SHARED_WIDTH_KEYS = (
    "moe_shared_expert_intermediate_size",
    "shared_expert_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
    "share_expert_dims",
)
_WIDTH_KEYS = (
    "intermediate_size",
    "n_inner",
    "decoder_ffn_dim",
    "ffn_dim",
    "ffn_hidden_size",
    "inner_dim",
    "d_ff",
    "mlp_hidden_size",
    "ffn_width",
    "ff_intermediate_size",
)
_DENSE_WIDTH_KEYS = ("dense_intermediate_size", "intermediate_size_mlp", "mlp_intermediate_size")
_ACTIVATION_KEYS = (
    "hidden_act",
    "activation_function",
    "hidden_activation",
    "mlp_hidden_act",
    "activation",
    "activation_type",
    "activation_fn_name",
    "ffn_act_fn",
    "hidden_activation_fn",
    "feed_forward_proj",
)
_BIAS_KEYS = ("mlp_bias", "use_mlp_bias", "use_bias", "bias", "add_bias_linear", "enable_bias")
_GATED_WORDS = ("silu", "swish", "glu", "situ", "gated")
_RATIO_KEYS = ("expansion_ratio", "mlp_ratio", "ffn_mult")
_LARGEST_RATIO = 100
_PLAIN_WORDS = ("relu", "xielu")
_PLAIN_GELU = ("gelu", "gelu_new", "gelu_fast", "quick_gelu")
"""Exact and early forms, which the models with two matrices have; those with three name gelu_pytorch_tanh."""


def read_dense(
    config: Fields, family: Family, hidden_size: int, layer_count: int
) -> tuple[DenseFeedForward, ...] | None:
    """The dense block of each layer; None: not known.

    Four hidden sizes wide where a config of the generation of GPT-2 does not say.
    """
    nested = config.section("ffn_config")
    keys = _width_keys(config)
    (nested or config).note_conflicts(*keys)
    gated = is_gated(config, family)
    config.use(*_RATIO_KEYS)
    widths = _stated_widths(config, nested, keys, layer_count) or _widths_by_ratio(config, hidden_size, layer_count)
    if widths is None:
        if gated:
            return None
        widths = (4 * hidden_size,) * layer_count
        config.ledger.assume("The inner width of a feed-forward block is 4 hidden sizes, since no key says.")
    if config.flag("qwen_halves_inner_width"):
        widths = tuple(max(1, width // 2) for width in widths)
    if config.flag("block_auto_adjust_ff_dim"):
        widths = tuple(_adjusted_width(config, width) for width in widths)
    bias = _bias(config, family)
    return tuple(DenseFeedForward(inner_width=width, gated=gated, bias=bias) for width in widths)


def _width_keys(config: Fields) -> tuple[str, ...]:
    """Names of the inner width; in Mistral's own files the hidden size is `dim` and this is `hidden_dim`."""
    return (*_WIDTH_KEYS, "hidden_dim") if config.states("dim") else _WIDTH_KEYS


def _stated_widths(
    config: Fields, nested: Fields | None, keys: tuple[str, ...], layer_count: int
) -> tuple[int, ...] | None:
    single = config.whole(*_DENSE_WIDTH_KEYS)
    if single is not None:
        return (single,) * layer_count
    widths = None if nested is None else nested.per_layer(*keys, length=layer_count)
    return widths or config.per_layer(*keys, length=layer_count)


def _widths_by_ratio(config: Fields, hidden_size: int, layer_count: int) -> tuple[int, ...] | None:
    """Inner widths as multiples of the hidden size; by layer and rounded to a multiple in OpenELM."""
    ratios = config.items("ffn_multipliers", length=layer_count)
    if ratios is not None:
        config.use("ffn_with_glu")
        divisor = config.whole("ffn_dim_divisor") or 256
        if all(isinstance(r, int | float) and not isinstance(r, bool) and 0 < r <= _LARGEST_RATIO for r in ratios):
            return tuple(_divisible(ratio * hidden_size, divisor) for ratio in ratios)
        config.refuse("ffn_multipliers", f"an entry is not a number above 0 and at most {_LARGEST_RATIO}")
        return None
    ratio = config.number(*_RATIO_KEYS, maximum=_LARGEST_RATIO)
    return None if ratio is None else (round(ratio * hidden_size),) * layer_count


def _divisible(width: float, divisor: int) -> int:
    """The nearest multiple, not below nine tenths of `width`."""
    nearest = max(divisor, int(width + divisor / 2) // divisor * divisor)
    return nearest + divisor if nearest < 0.9 * width else nearest


def block_beside_experts(
    config: Fields, family: Family, hidden_size: int, dense: DenseFeedForward | None
) -> DenseFeedForward | None:
    """The dense block that stands beside the experts of a layer (Gemma 4, Grok 2, Arctic); None: there is none."""
    if family.separate_feed_forwards or config.flag("residual_moe"):
        return dense
    if config.flag("use_residual") and config.flag("parallel_attn_mlp_res") is not False:
        return DenseFeedForward(inner_width=hidden_size, gated=is_gated(config, family))
    return None


def _adjusted_width(config: Fields, width: int) -> int:
    """Two thirds of the width that is given, times a factor, rounded up to a multiple (LFM2)."""
    multiple = config.whole("block_multiple_of") or 1
    factor = config.number("block_ffn_dim_multiplier", maximum=100) or 1.0
    adjusted = int(factor * int(2 * width / 3))
    return max(1, -(-adjusted // multiple) * multiple)


def is_gated(config: Fields, family: Family) -> bool:
    """Whether one of the matrices gates: by family, else by the activation."""
    nested = config.section("ffn_config")
    activation = config.values.get("ffn_act_fn")
    config.use("ffn_act_fn")
    name = None if isinstance(activation, dict) else config.text(*_ACTIVATION_KEYS)
    if name is None and nested is not None:
        nested.close("ffn_act_fn")
        nested.use("ffn_type")
    if family.gated is not None:
        return family.gated
    folded = (name or "").casefold()
    if any(word in folded for word in _GATED_WORDS):
        return True
    if any(word in folded for word in _PLAIN_WORDS):
        return False
    if not folded and not family.model_types:
        config.ledger.assume("Feed-forward blocks are gated: three matrices each; no activation is named.")
    elif not family.model_types:
        # Experts have two matrices with plain words alone (NLLB); Grok's name gelu and have three.
        plain = folded in _PLAIN_GELU and not config.states(*_COUNT_KEYS)
        kind = "two matrices each" if plain else "gated, three matrices each"
        config.ledger.assume(f"Feed-forward blocks are {kind}; the activation {folded[:40]} is usual with that.")
        return not plain
    return True


def _bias(config: Fields, family: Family) -> bool:
    stated = config.flag(*_BIAS_KEYS)
    if stated is None and config.flag("no_bias") is not None:
        stated = not config.flag("no_bias")
    return family.feed_forward_bias if stated is None else stated


def read_experts(config: Fields, family: Family, hidden_size: int) -> Experts | None:
    """Routed and shared experts; None where the config has none."""
    nested = config.section("ffn_config", "moe") or config
    count = _count_of_experts(config, nested)
    if count is None or count < 2 or config.flag("is_moe", "enable_moe_block") is False:
        config.use(*_ACTIVE_KEYS, *_EXPERT_WIDTH_KEYS, *LAYER_KEYS)
        return None
    active = nested.values.get("moe_topk")
    if isinstance(active, list):
        nested.use("moe_topk")
        active_count = next((entry for entry in active if isinstance(entry, int) and entry > 0), 1)
    else:
        nested.note_conflicts(*_ACTIVE_KEYS)
        active_count = nested.whole(*_ACTIVE_KEYS, maximum=10**5) or config.whole(*_ACTIVE_KEYS, maximum=10**5) or 0
    if not active_count:
        config.ledger.assume("Every token uses one routed expert of each layer, since no key says how many.")
        active_count = 1
    identity_count = config.whole("zero_expert_num", minimum=0, maximum=10**5) or 0
    if active_count > count + identity_count:
        stated = nested if nested.states(*_ACTIVE_KEYS) else config
        stated.refuse(stated.stated_name(*_ACTIVE_KEYS), f"{active_count} experts for a token are more than {count}")
    keys = _width_keys(config)
    width = _first_of(nested, _EXPERT_WIDTH_KEYS) or nested.whole(*keys) or config.whole(*keys)
    if width is None:
        return None
    latent_width = config.whole("moe_latent_size", "routed_expert_hidden_size", minimum=0) or 0
    return Experts(
        count=count,
        active_count=min(active_count, count),
        inner_width=width,
        gated=is_gated(config, family),
        bias=family.expert_bias,
        shared_inner_width=_shared_width(config, width),
        shared_gate=family.shared_gate,
        shared_apart=family.shared_apart,
        latent_width=latent_width,
        latent_norm=bool(config.flag("latent_moe_use_norm")),
        identity_count=identity_count,
        router_bias=family.router_bias or bool(config.flag("router_bias")),
        router_values=hidden_size + count if family.separate_feed_forwards else 0,
    )


def _count_of_experts(config: Fields, nested: Fields) -> int | None:
    name = config.stated_name(*_COUNT_KEYS)
    listed = config.values.get(name)
    if isinstance(listed, list):
        config.use(name)
        if any(entry != listed[0] for entry in listed):
            config.ledger.leave_open(f"{name} gives several counts: experts are counted by the first")
        return next((entry for entry in listed if isinstance(entry, int) and 0 < entry <= 10**5), None)
    nested.note_conflicts(*_COUNT_KEYS)
    return nested.whole(*_COUNT_KEYS, minimum=0, maximum=10**5) or config.whole(*_COUNT_KEYS, minimum=0, maximum=10**5)


def _first_of(config: Fields, names: tuple[str, ...]) -> int | None:
    """A width, also where a key gives one for each layer and all are alike."""
    for name in names:
        value = config.values.get(name)
        if isinstance(value, list):
            numbers = config.wholes(name)
            if numbers:
                if len(set(numbers)) > 1:
                    config.ledger.leave_open(
                        f"{config.path_of(name)} differs by layer: the first value is taken for all"
                    )
                return numbers[0] or None
    return config.whole(*names, minimum=0) or None


def _shared_width(config: Fields, expert_width: int) -> int:
    """Inner width of all shared experts together."""
    stated = _first_of(config, _SHARED_WIDTH_KEYS)
    count = _first_of(config, _SHARED_COUNT_KEYS)
    if stated is not None:
        # One expert of that width, or as many of the routed width as it holds.
        per_expert = config.states("share_expert_dim", "shared_intermediate_size") and (count or 1) > 1
        return stated * (count or 1) if per_expert else stated
    if count is None:
        config.use(*_SHARED_WIDTH_KEYS)
        return expert_width if config.flag("use_shared_expert") else 0
    return count * expert_width


def feed_forwards_of(block: Block, dense: DenseFeedForward | None, experts: Experts | None) -> tuple[FeedForward, ...]:
    """The block of a layer; nothing where the config does not say what it is."""
    if block is Block.NONE:
        return ()
    if block is Block.EXPERTS and experts is not None:
        return (experts,)
    return () if dense is None else (dense,)
