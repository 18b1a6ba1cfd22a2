"""The heads of attention: how many, how wide, and on how many keys and values, for a model or layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from estimator_service.architecture.family import Family
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.mixers import Attention

HEAD_KEYS = (
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "attention_heads",
    "decoder_attention_heads",
    "num_query_heads",
)
KEY_VALUE_KEYS = (
    "num_key_value_heads",
    "num_kv_heads",
    "n_head_kv",
    "n_kv_heads",
    "kv_n_heads",
    "num_attention_groups",
    "multi_query_group_num",
    "num_key_value_heads_per_layer",
)
LATENT_RANK_KEYS = ("kv_lora_rank", "attention_kv_lora_dim")
_HEADS_BY_LAYER = (HEAD_KEYS, KEY_VALUE_KEYS)
HEAD_DIM_KEYS = ("head_dim", "attention_head_dim", "kv_channels", "d_kv", "head_size", "qk_head_dim")


@frozen(kw_only=True)
class Heads:
    """The heads of a model; 0 where the config does not say."""

    count: int
    key_value_count: int
    head_dim: int


def read_heads(config: Fields, family: Family, hidden_size: int) -> Heads:
    """Heads and their width: the width is hidden size over heads where no key says. A hidden size of 0: not known."""
    nested = config.section("attn_config") or config
    config.note_conflicts(*HEAD_KEYS)
    nested.note_conflicts(*KEY_VALUE_KEYS)
    if config.is_array(*HEAD_KEYS) or config.is_array(*KEY_VALUE_KEYS):
        return _largest_heads(config, hidden_size)
    count = config.whole(*HEAD_KEYS, maximum=10**5) or 0
    # The heads of latent attention have widths of their own, and no keys and values to share.
    is_plain = bool(count) and not config.has(*LATENT_RANK_KEYS)
    head_dim = config.whole(*HEAD_DIM_KEYS) or (hidden_size // count if count else 0)
    if is_plain and hidden_size % count and not config.has(*HEAD_DIM_KEYS):
        told = f"{count} heads do not divide the hidden size {hidden_size}, and no key gives their width"
        if family.model_types:
            config.refuse(config.stated_name(*HEAD_KEYS), told)
        else:
            # The class of a model_type that is not known may give the width.
            config.ledger.leave_open(f"attention: {told}")
            head_dim = 0
    if _is_multi_query(config):
        config.use(*KEY_VALUE_KEYS)
        return Heads(count=count, key_value_count=1, head_dim=head_dim)
    key_value_count = nested.whole(*KEY_VALUE_KEYS, maximum=10**5) or config.whole(*KEY_VALUE_KEYS, maximum=10**5)
    if is_plain and key_value_count and count % key_value_count:
        stated = nested if nested.states(*KEY_VALUE_KEYS) else config
        told = f"{count} heads cannot share {key_value_count} key-value heads"
        stated.refuse(stated.stated_name(*KEY_VALUE_KEYS), told)
    return Heads(count=count, key_value_count=key_value_count or count, head_dim=head_dim)


def _largest_heads(config: Fields, hidden_size: int) -> Heads:
    """The most heads that a layer has, where they differ by layer: these stand for the model."""
    counts = [config.wholes(*keys, minimum=1) if config.is_array(*keys) else None for keys in _HEADS_BY_LAYER]
    single = [None if config.is_array(*keys) else config.whole(*keys, maximum=10**5) for keys in _HEADS_BY_LAYER]
    count, key_value_count = (max(many) if many else one for many, one in zip(counts, single, strict=True))
    config.ledger.assume("Heads differ by layer; where one count stands for the model, it is the largest.")
    head_dim = config.whole(*HEAD_DIM_KEYS) or (hidden_size // count if count else 0)
    count = min(count or 0, 10**5)
    return Heads(count=count, key_value_count=min(key_value_count or count, 10**5), head_dim=head_dim)


def with_heads_of_layers(attention: Sequence[Attention], config: Fields) -> tuple[Attention, ...]:
    """The attention of each layer with its own heads, where a key gives counts by layer."""
    layers = tuple(attention)
    queries, keys = (
        config.per_layer(*names, length=len(layers), maximum=10**5) if config.is_array(*names) else None
        for names in _HEADS_BY_LAYER
    )
    if queries is not None:
        layers = tuple(evolve(a, head_count=n) for a, n in zip(layers, queries, strict=True))
    if keys is not None:
        layers = tuple(evolve(a, key_value_head_count=n) for a, n in zip(layers, keys, strict=True))
    for index, own in enumerate(layers):
        if own.head_count % own.key_value_head_count:
            told = f"layer {index}: {own.head_count} heads cannot share {own.key_value_head_count} key-value heads"
            config.refuse(config.stated_name(*KEY_VALUE_KEYS), told)
            break
    return layers


def _is_multi_query(config: Fields) -> bool:
    """One key-value head for all: what Falcon's and StarCoder's configs call multi-query."""
    config.use("multi_query_attention")
    new_decoder = config.flag("new_decoder_architecture")
    return bool(config.flag("multi_query")) and not new_decoder
