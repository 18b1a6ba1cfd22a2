"""Encoders, alone or beside a decoder: what is read of them, and that it is said what is not."""

from __future__ import annotations

from attrs import evolve

from estimator_service.architecture.fields import Fields
from estimator_service.architecture.read_layers import Layer

NOT_COUNTED = (
    "encoder and cross-attention: the collectives are those of a pass through the decoder, one more in each layer for"
    " cross-attention; the encoder's own, and all parameters and caches, are not counted"
)
ENCODER = (
    "This seems to be an encoder, which reads a text at once and generates none: it has no cache, whatever is listed"
    " here, and nothing that is said of decode applies. Position and segment embeddings and a pooler are not counted."
)
_ENCODER_KEYS = (
    "encoder_layers",
    "encoder_ffn_dim",
    "encoder_attention_heads",
    "encoder_layerdrop",
    "decoder_layerdrop",
    "relative_attention_num_buckets",
    "relative_attention_max_distance",
)


def note_encoder(root: Fields, config: Fields) -> None:
    """Say of an encoder that it is one: a segment embedding or a masked LM head is a sign, `is_decoder` speaks against.

    What every question about decode and caches takes for granted does not hold of it.
    """
    names = root.values.get("architectures")
    is_masked = isinstance(names, list) and any(isinstance(n, str) and n.endswith("ForMaskedLM") for n in names)
    if (is_masked or config.states("type_vocab_size")) and not config.flag("is_decoder"):
        config.ledger.assume(ENCODER)


def is_encoder_decoder(root: Fields, config: Fields) -> bool:
    """Whether layers attend to the output of an encoder as well."""
    flags = [fields.flag(key) for fields in (root, config) for key in ("is_encoder_decoder", "add_cross_attention")]
    return any(flags) or (config.states("encoder_layers") and config.states("decoder_layers"))


def with_cross_attention(layers: tuple[Layer, ...], config: Fields) -> tuple[Layer, ...]:
    """`layers`, each with a block more that ends in a sum over the ranks and whose parameters are not known."""
    config.use(*_ENCODER_KEYS)
    config.ledger.leave_open(NOT_COUNTED)
    return tuple(evolve(layer, missing=layer.missing + 1, all_reduce_count=_sums_of(layer) + 1) for layer in layers)


def _sums_of(layer: Layer) -> int:
    if layer.all_reduce_count is not None:
        return layer.all_reduce_count
    return len(layer.mixers) + len(layer.feed_forwards)
