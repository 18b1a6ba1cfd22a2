"""Which layers of a model with experts have them, from whichever of the many keys says so."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from estimator_service.architecture.fields import Fields

LAYER_KEYS = (
    "moe_layer_freq",
    "moe_layer_frequency",
    "moe_layer_interval",
    "moe_layer_start_index",
    "moe_layer_end_index",
    "moe_layers_enum",
    "moe_layers",
    "is_moe_layer",
    "expert_layer_period",
    "expert_layer_offset",
    "decoder_sparse_step",
    "first_k_dense_replace",
)
"""Keys that say which layers have experts, for nothing in a model without any."""


class Block(Enum):
    """What a layer has as feed-forward block."""

    DENSE = "dense"
    EXPERTS = "experts"
    NONE = "none"


def blocks_of_layers(config: Fields, layer_count: int) -> tuple[Block, ...]:
    """Which layers have experts and which are dense, in a model that has experts."""
    for reader in (_by_name, _by_flag, _by_list_of_layers, _by_period, _by_first_dense):
        blocks = reader(config, layer_count)
        if blocks is not None:
            config.use("mlp_only_layers", *LAYER_KEYS)
            return tuple(blocks)
    return (Block.EXPERTS,) * layer_count


def _by_name(config: Fields, layer_count: int) -> Sequence[Block] | None:
    names = config.items("mlp_layer_types", length=layer_count)
    return None if names is None else [Block.DENSE if name == "dense" else Block.EXPERTS for name in names]


def _by_flag(config: Fields, layer_count: int) -> Sequence[Block] | None:
    marks = config.items("is_moe_layer", length=layer_count)
    if marks is not None:
        return [Block.EXPERTS if mark else Block.DENSE for mark in marks]
    if not isinstance(config.values.get("moe_layer_freq"), list):
        return None
    flags = config.wholes("moe_layer_freq", length=layer_count)
    return None if flags is None else [Block.EXPERTS if flag else Block.DENSE for flag in flags]


def _by_list_of_layers(config: Fields, layer_count: int) -> Sequence[Block] | None:
    listed = config.values.get("moe_layers_enum")
    if isinstance(listed, str):
        config.use("moe_layers_enum")
        sparse = {int(part) for part in listed.split(",")[:layer_count] if part.strip().isdecimal() and len(part) < 7}
    else:
        numbers = config.wholes("moe_layers_enum", "moe_layers")
        if numbers is None:
            return None
        config.use("interleave_moe_layer_step")
        sparse = set(numbers)
    return [Block.EXPERTS if i in sparse else Block.DENSE for i in range(layer_count)]


def _by_period(config: Fields, layer_count: int) -> Sequence[Block] | None:
    """Experts in each n-th layer: by Llama 4's, Arctic's, Jamba's, Ernie's and Qwen's names."""
    step = config.whole("interleave_moe_layer_step", maximum=layer_count)
    if step is not None:
        return [Block.EXPERTS if (i + 1) % step == 0 else Block.DENSE for i in range(layer_count)]
    frequency = config.whole("moe_layer_frequency", maximum=layer_count)
    if frequency is not None:
        return [Block.EXPERTS if (i + 1) % frequency == 0 else Block.DENSE for i in range(layer_count)]
    period = config.whole("expert_layer_period", maximum=layer_count)
    if period is not None:
        offset = config.whole("expert_layer_offset", minimum=0) or 0
        return [Block.EXPERTS if i % period == offset else Block.DENSE for i in range(layer_count)]
    start = _number_or_first(config, "moe_layer_start_index")
    if start is not None:
        last = _number_or_first(config, "moe_layer_end_index")
        last = layer_count - 1 if last is None or last < 0 else last
        interval = config.whole("moe_layer_interval", maximum=layer_count) or 1
        return [
            Block.EXPERTS if start <= i <= last and (i + 1) % interval == 0 else Block.DENSE for i in range(layer_count)
        ]
    return _by_sparse_step(config, layer_count)


def _by_sparse_step(config: Fields, layer_count: int) -> Sequence[Block] | None:
    if not config.has("decoder_sparse_step", "mlp_only_layers"):
        return None
    step = config.whole("decoder_sparse_step", maximum=10**5) or 1
    dense = set(config.wholes("mlp_only_layers") or ())
    return [Block.EXPERTS if i not in dense and (i + 1) % step == 0 else Block.DENSE for i in range(layer_count)]


def _by_first_dense(config: Fields, layer_count: int) -> Sequence[Block] | None:
    dense = config.whole(
        "first_k_dense_replace", "num_dense_layers", "first_k_dense", "n_dense_first", minimum=0, maximum=10**5
    )
    every = config.whole("moe_layer_freq", "moe_layer_interval", maximum=layer_count) or 1
    if dense is None and every == 1:
        return None
    first = dense or 0
    return [Block.EXPERTS if i >= first and i % every == 0 else Block.DENSE for i in range(layer_count)]


def _number_or_first(config: Fields, name: str) -> int | None:
    value = config.values.get(name)
    if isinstance(value, list):
        config.use(name)
        return next((entry for entry in value if isinstance(entry, int) and not isinstance(entry, bool)), None)
    return config.whole(name, minimum=-1)
