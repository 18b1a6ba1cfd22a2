"""Linear attention, state spaces and convolutions of a config."""

from __future__ import annotations

from estimator_service.architecture.family import Family
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.mixers import LinearAttention, LinearKind, ShortConvolution, StateSpace

STATE_KEYS = (
    "mamba_d_state",
    "mamba_d_conv",
    "mamba_d_head",
    "mamba_expand",
    "mamba_n_groups",
    "mamba_n_heads",
    "mamba_conv_bias",
    "mamba_proj_bias",
    "mamba_dt_rank",
)
"""Keys of a state space, for nothing in a model that has no layer of it."""
_STATE_BYTES = {"float32": 4, "fp32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1}
_MAMBA_1_EXPANSION, _MAMBA_2_HEAD_DIM = 2, 64


def read_linear_attention(config: Fields) -> LinearAttention | None:
    """Linear attention, by the fields that only its kind has; None where there are none."""
    nested = config.section("linear_attn_config")
    if nested is not None or config.has("linear_num_heads"):
        return _kimi_delta(config if nested is None else nested)
    if config.has("linear_num_value_heads"):
        return _gated_delta(config)
    if config.has("attn_type_list", "layernorm_linear_attention_alpha", "linear_attn_alpha_factor", "mlp_alpha_factor"):
        return _lightning(config)
    if (config.whole("layer_group_size", maximum=10**5) or 1) > 1:
        config.use("group_norm_size")
        return _lightning(config)
    return None


def _gated_delta(config: Fields) -> LinearAttention | None:
    key_heads = config.whole("linear_num_key_heads", maximum=10**5)
    value_heads = config.whole("linear_num_value_heads", maximum=10**5)
    key_dim, value_dim = config.whole("linear_key_head_dim"), config.whole("linear_value_head_dim")
    if key_heads is None or value_heads is None or key_dim is None or value_dim is None:
        return None
    return LinearAttention(
        kind=LinearKind.GATED_DELTA,
        key_head_count=key_heads,
        value_head_count=value_heads,
        key_head_dim=key_dim,
        value_head_dim=value_dim,
        convolution_width=config.whole("linear_conv_kernel_dim", minimum=0, maximum=1024) or 0,
        state_value_bytes=_state_value_bytes(config, 4),
    )


def _kimi_delta(config: Fields) -> LinearAttention | None:
    heads = config.whole("num_heads", "linear_num_heads", maximum=10**5)
    head_dim = config.whole("linear_head_dim", "head_dim")
    if heads is None or head_dim is None:
        return None
    gate_rank = 0 if config.flag("use_full_rank_gate") else head_dim
    return LinearAttention(
        kind=LinearKind.KIMI_DELTA,
        key_head_count=heads,
        value_head_count=heads,
        key_head_dim=head_dim,
        value_head_dim=head_dim,
        convolution_width=config.whole("short_conv_kernel_size", "linear_conv_kernel_dim", maximum=1024) or 4,
        gate_rank=config.whole("linear_gate_rank") or gate_rank,
    )


def _lightning(config: Fields) -> LinearAttention | None:
    heads, hidden_size = config.whole("num_attention_heads", maximum=10**5), config.whole("hidden_size")
    if heads is None or hidden_size is None:
        return None
    head_dim = config.whole("head_dim") or max(1, hidden_size // heads)
    return LinearAttention(
        kind=LinearKind.LIGHTNING,
        key_head_count=heads,
        value_head_count=heads,
        key_head_dim=head_dim,
        value_head_dim=head_dim,
    )


def read_state_space(config: Fields, family: Family, hidden_size: int) -> StateSpace | None:
    """A state space: Mamba-2 where it has heads, Mamba-1 where it has a step rank or none of both."""
    state_width = config.whole("ssm_state_size", "mamba_d_state", "state_size", "d_state", "mamba_state_size")
    if state_width is None:
        return None
    stated_head_dim = config.whole("mamba_head_dim", "mamba_d_head", "mamba_headdim")
    head_count = config.whole("mamba_num_heads", "mamba_n_heads", "n_mamba_heads", maximum=10**5) or 0
    if not config.has("num_attention_heads") and not head_count:
        head_count = config.whole("num_heads", maximum=10**5) or 0
        stated_head_dim = stated_head_dim or config.whole("head_dim")
    inner_width = config.whole("mamba_d_ssm", "intermediate_size" if not config.has("num_attention_heads") else "")
    expansion = config.number("expand", "mamba_expand", maximum=64) or _MAMBA_1_EXPANSION
    if head_count and stated_head_dim and not config.has("mamba_d_ssm"):
        inner_width = head_count * stated_head_dim
    inner_width = inner_width or round(expansion * hidden_size)
    step_rank = 0
    if not head_count and stated_head_dim:
        head_count = inner_width // stated_head_dim
    if not head_count:
        stated_rank = config.values.get("mamba_dt_rank", config.values.get("time_step_rank"))
        config.use("mamba_dt_rank", "time_step_rank")
        step_rank = stated_rank if isinstance(stated_rank, int) and stated_rank > 0 else -(-hidden_size // 16)
    inner_norm = config.flag("mamba_rms_norm", "rms_norm")
    if inner_norm is None:
        inner_norm = bool(family.inner_norm)
    return StateSpace(
        inner_width=inner_width,
        state_width=state_width,
        convolution_width=config.whole("conv_kernel", "mamba_d_conv", "d_conv", maximum=1024) or 4,
        head_count=head_count,
        group_count=config.whole("n_groups", "mamba_n_groups", "mamba_ngroups", maximum=10**5) or 1,
        step_rank=min(step_rank, 10**6),
        convolution_bias=config.flag("use_conv_bias", "mamba_conv_bias") is not False,
        projection_bias=bool(config.flag("mamba_proj_bias", "use_bias", "add_bias_linear")),
        inner_norm=inner_norm and (bool(head_count) or family.model_types[:1] == ("jamba",)),
        state_value_bytes=_state_value_bytes(config, 2),
    )


def read_short_convolution(config: Fields) -> ShortConvolution | None:
    """A gated convolution, where the config has one."""
    width = config.whole("conv_L_cache", "short_conv_kernel", maximum=1024)
    return None if width is None else ShortConvolution(width=width, bias=bool(config.flag("conv_bias")))


def _state_value_bytes(config: Fields, default: int) -> int:
    name = config.text("mamba_ssm_cache_dtype", "mamba_ssm_dtype", "linear_ssm_dtype")
    return _STATE_BYTES.get(name or "", default)
