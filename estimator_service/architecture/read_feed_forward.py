"""The feed-forward blocks of a config: dense ones, experts, and which layers have which."""

from __future__ import annotations

from estimator_service.architecture.facts import DenseFeedForward, Experts, FeedForward
from estimator_service.architecture.family import Family
from estimator_service.architecture.feed_forward_layers import Block
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
)
_DENSE_WIDTH_KEYS = ("dense_intermediate_size", "intermediate_size_mlp", "mlp_intermediate_size")
_ACTIVATION_KEYS = (
    "hidden_act",
    "activation_function",
    "hidden_activation",
    "mlp_hidden_act",
    "activation",
    "ffn_act_fn",
    "hidden_activation_fn",
    "feed_forward_proj",
)
_BIAS_KEYS = ("mlp_bias", "use_mlp_bias", "use_bias", "bias", "add_bias_linear", "enable_bias")
_GATED_WORDS = ("silu", "swish", "glu", "situ", "gated")
_PLAIN_WORDS = ("relu", "xielu")
_PLAIN_GELU = ("gelu", "gelu_new", "gelu_fast", "quick_gelu")
"""Exact and early forms, which the models with two matrices have; those with three name gelu_pytorch_tanh."""


def read_dense(config: Fields, family: Family, hidden_size: int) -> DenseFeedForward | None:
    """A dense block; four hidden sizes wide where a config of the generation of GPT-2 does not say. None: not known."""
    nested = config.section("ffn_config")
    (nested or config).note_conflicts(*_WIDTH_KEYS)
    width = config.whole(*_DENSE_WIDTH_KEYS) or (nested or config).whole(*_WIDTH_KEYS) or config.whole(*_WIDTH_KEYS)
    ratio = config.number("expansion_ratio", "mlp_ratio", "ffn_mult", maximum=100)
    gated = is_gated(config, family)
    if width is None and ratio is not None:
        width = round(ratio * hidden_size)
    if width is None:
        if gated:
            return None
        width = 4 * hidden_size
        config.ledger.assume("The inner width of a feed-forward block is 4 hidden sizes, since no key says.")
    if config.flag("qwen_halves_inner_width"):
        width //= 2
    if config.flag("block_auto_adjust_ff_dim"):
        width = _adjusted_width(config, width)
    return DenseFeedForward(inner_width=width, gated=gated, bias=_bias(config, family))


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
        plain = folded in _PLAIN_GELU
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
    nested = config.section("ffn_config") or config
    count = _count_of_experts(config, nested)
    if count is None or count < 2 or config.flag("is_moe", "enable_moe_block") is False:
        config.use(*_ACTIVE_KEYS, *_EXPERT_WIDTH_KEYS)
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
    width = _first_of(nested, _EXPERT_WIDTH_KEYS) or nested.whole(*_WIDTH_KEYS) or config.whole(*_WIDTH_KEYS)
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
        latent_width=latent_width,
        latent_norm=bool(config.flag("latent_moe_use_norm")),
        identity_count=identity_count,
        router_bias=family.router_bias or bool(config.flag("router_bias")),
        router_values=hidden_size + count if family.separate_feed_forwards else 0,
    )


def _count_of_experts(config: Fields, nested: Fields) -> int | None:
    listed = config.values.get("moe_num_experts")
    if isinstance(listed, list):
        config.use("moe_num_experts")
        config.ledger.leave_open("moe_num_experts gives several counts: experts are counted by the first")
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
