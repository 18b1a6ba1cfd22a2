"""Multi-token prediction: the modules that draft, as the config gives them."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_service.architecture.facts import DenseFeedForward, DraftModule, FeedForward, LayerGroup
from estimator_service.architecture.family import Family
from estimator_service.architecture.fields import Fields
from estimator_service.architecture.layer_kinds import Kind, kind_of_name
from estimator_service.architecture.mixers import Attention, LatentAttention, Mixer
from estimator_service.architecture.read_layers import Layer

_COUNT_KEYS = (
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_modules",
    "num_mtp_layers",
    "mtp_num_layers",
)


def read_draft(config: Fields, family: Family, layers: Sequence[Layer]) -> DraftModule | None:
    """The draft modules: each a layer like the last one that has attention, unless keys list what is in it.

    Source: the classes of DeepSeek-V3, GLM-5, Qwen3.5 and Nemotron-3 in vLLM. A module projects the norms of a hidden
    state and of an embedding to one hidden size and has a norm before the head; embedding and head are the model's.
    """
    count = config.whole(*_COUNT_KEYS, minimum=0, maximum=64) or 0
    if config.flag("use_mtp") is False:
        return None
    named = config.items("mtp_layers_block_type")
    pattern = config.text("mtp_hybrid_override_pattern")
    layer_count = config.whole("mtp_transformer_layers", minimum=0, maximum=64) or 1
    if not count:
        return None
    kinds = [kind_of_name(name) for name in named or pattern or ()]
    groups = _from_kinds(kinds[:16], family, layers) if kinds else _from_last_layer(family, layers, layer_count)
    if not groups:
        config.ledger.leave_open("what the MTP layers are made of: their parameters are not counted")
        return None
    return DraftModule(count=count, layers=groups)


def _from_kinds(kinds: Sequence[Kind], family: Family, layers: Sequence[Layer]) -> tuple[LayerGroup, ...]:
    groups = []
    for index, kind in enumerate(kinds):
        mixers: tuple[Mixer, ...] = ()
        feed_forwards: tuple[FeedForward, ...] = ()
        if kind in (Kind.DENSE_ONLY, Kind.EXPERTS_ONLY):
            feed_forwards = next((layer.feed_forwards for layer in reversed(layers) if layer.feed_forwards), ())
        else:
            mixers = _last_attention(layers)
        if not mixers and not feed_forwards:
            return ()
        groups.append(
            LayerGroup(
                layers=str(index),
                mixers=mixers,
                feed_forwards=feed_forwards,
                norm_vectors=family.norm_values,
            )
        )
    return tuple(groups)


def _from_last_layer(family: Family, layers: Sequence[Layer], layer_count: int) -> tuple[LayerGroup, ...]:
    mixers = _last_attention(layers)
    last = next((layer for layer in reversed(layers) if layer.feed_forwards), None)
    if not mixers or last is None:
        return ()
    feed_forwards = last.feed_forwards
    if family.dense_draft:
        blocks = (layer.feed_forwards for layer in layers)
        feed_forwards = next((b for b in blocks if b and isinstance(b[0], DenseFeedForward)), feed_forwards)
    group = LayerGroup(
        layers="0" if layer_count == 1 else f"0-{layer_count - 1}",
        mixers=mixers,
        feed_forwards=feed_forwards,
        norm_vectors=last.norm_vectors,
    )
    return (group,)


def _last_attention(layers: Sequence[Layer]) -> tuple[Mixer, ...]:
    """The last attention, with the indexer that some layer has: a draft module selects its tokens by its own."""
    attentions = (Attention, LatentAttention)
    found: list[Mixer] = [mixer for layer in layers for mixer in layer.mixers if isinstance(mixer, attentions)]
    found = found or [mixer for layer in layers[-1:] for mixer in layer.mixers]
    if not found:
        return ()
    with_indexer = [mixer for mixer in found if getattr(mixer, "indexer", None) is not None]
    return ((with_indexer or found)[-1],)
