"""A whole config as an `Architecture`, with what was not understood, what was assumed and what stays open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from estimator_service.architecture.class_defaults import class_defaults
from estimator_service.architecture.facts import (
    LARGEST_LAYER_COUNT,
    Architecture,
    HyperConnections,
    LayerGroup,
    Reading,
)
from estimator_service.architecture.families import family_of
from estimator_service.architecture.family import UNKNOWN, Family
from estimator_service.architecture.fields import Fields, Ledger
from estimator_service.architecture.json_text import parse_config
from estimator_service.architecture.known_keys import unused_keys
from estimator_service.architecture.layer_kinds import COUNT_KEYS, layer_count_of
from estimator_service.architecture.quantisation import read_quantisation
from estimator_service.architecture.ranges import ranges_of
from estimator_service.architecture.read_draft import read_draft
from estimator_service.architecture.read_encoder_decoder import is_encoder_decoder, note_encoder, with_cross_attention
from estimator_service.architecture.read_heads import read_heads
from estimator_service.architecture.read_layers import Layer, read_layers
from estimator_service.architecture.read_streams import stream_projections
from estimator_service.architecture.read_towers import read_tower
from estimator_service.architecture.read_value_type import read_value_type
from linkbound.domain.catalog import WeightFormatSource
from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.quantisation_file import ONLY_A_QUANTISATION, is_quantisation
from linkbound.domain.rules import violations_of

_HIDDEN_KEYS = ("hidden_size", "n_embd", "n_embed", "d_model", "model_dim", "dim", "hidden_dim", "embed_dim")
_TEXT_KEYS = ("text_config", "language_config", "llm_config", "language_model_config", "thinker_config")
_TIED_KEYS = ("tie_word_embeddings", "tie_embeddings", "tie_embedding", "weight_tying", "share_input_output_layers")
_SIGNS_OF_A_MODEL = ("model_type", "architectures", "num_attention_heads", "vocab_size", *_HIDDEN_KEYS, *COUNT_KEYS)
_NO_MODEL = "is no config of a language model: it gives no sizes or layers"
_LARGEST_NOTE_COUNT = 100
_LARGEST_NOTE_LENGTH = 1024
_SHOWN_UNUSED_KEY_COUNT = 99


def read_architecture(config_json: str, field: str = "config_json") -> Reading:
    """The architecture in the contents of a Hugging Face `config.json`.

    Raises InvalidArgumentError with every violation, paths below `field`. Time and memory are bounded by those of a
    text of 4 MiB (`docs/formulas.md`, Parameters).
    """
    return read_values(parse_config(config_json, field), field)


def read_values(values: Mapping[str, Any], field: str) -> Reading:
    """The same of the object in a config (`docs/formulas.md`, Parameters)."""
    ledger = Ledger()
    root = Fields(values, ledger, field=field)
    text = _text_fields(root)
    if not text.states(*_SIGNS_OF_A_MODEL):
        described = ONLY_A_QUANTISATION if is_quantisation(values) else _NO_MODEL
        raise InvalidArgumentError([Violation(field, described)])
    text.use("model_type")
    own_type, root_type = text.values.get("model_type"), root.values.get("model_type")
    family = family_of(*(name for name in (own_type, root_type) if isinstance(name, str)))
    sizes = {} if text is root else class_defaults(own_type)
    config = text.with_defaults({**sizes, **family.defaults})
    _note_family(root, config, family, own_type or root_type)
    architecture = _read(root, config, family)
    if ledger.violations or architecture is None:
        raise InvalidArgumentError(list(ledger.violations.values()) or [_nothing(field)])
    problems = [Violation(f"{field}: {v.field}", v.description) for v in violations_of(architecture)]
    if problems:
        raise InvalidArgumentError(problems[:_LARGEST_NOTE_COUNT])
    return _reading(architecture, values, ledger, own_type or root_type)


def _text_fields(root: Fields) -> Fields:
    """The fields of the language model: those of the config, or of the part of a multimodal one that has them."""
    for key in _TEXT_KEYS:
        section = root.section(key)
        if section is not None:
            inner = section.section(*_TEXT_KEYS)
            return inner if inner is not None and inner.has(*_HIDDEN_KEYS) else section
    return root


def _note_family(root: Fields, config: Fields, family: Family, model_type: object) -> None:
    # A part that is no object was not read.
    root.use("model_type", *(key for key in _TEXT_KEYS if isinstance(root.values.get(key), Mapping)))
    note_encoder(root, config)
    if family is not UNKNOWN:
        return
    called = f"model_type {model_type[:64]}" if isinstance(model_type, str) else "a config without a model_type"
    config.ledger.assume(
        f"There is no rule for {called}: blocks, norms, biases and gates that no key gives are taken as"
        " Llama has them, and the total is as good as that."
    )


def _read(root: Fields, config: Fields, family: Family) -> Architecture | None:
    # Beside `dim`, `hidden_dim` is the inner width (Mistral's own files).
    hidden_keys = tuple(key for key in _HIDDEN_KEYS if key != "hidden_dim" or not config.states("dim"))
    config.note_conflicts(*hidden_keys)
    known_size, known_count = config.whole(*hidden_keys), layer_count_of(config, LARGEST_LAYER_COUNT)
    if known_size is None:
        _missing(config, "hidden_size")
    if known_count is None:
        _missing(config, "num_hidden_layers")
    # Without these there is no model, but what else is wrong is told with them.
    hidden_size, layer_count = known_size or 0, known_count or 1
    heads = read_heads(config, family, hidden_size)
    _use_what_others_decide(config)
    layers = read_layers(config, family, heads, hidden_size, layer_count)
    if is_encoder_decoder(root, config):
        layers = with_cross_attention(layers, config)
    vocabulary_size = config.whole("vocab_size", "padded_vocab_size", "n_vocab", maximum=10**8) or 0
    if not vocabulary_size:
        config.ledger.leave_open("the vocabulary: embedding, LM head and the gather of the logits are not counted")
    draft = read_draft(config, family, layers)
    tied = _tied(root, config, family)
    tower = read_tower(root, family, hidden_size)
    missing = any(layer.missing for layer in layers)
    streams = config.whole("hc_mult", "num_hyper_connections", minimum=0, maximum=64) or 0
    values = read_value_type(root, config)
    if config.ledger.violations or len(layers) != layer_count:
        return None
    architecture = Architecture(
        hidden_size=hidden_size,
        vocabulary_size=vocabulary_size,
        embedding_rows=_stored_rows(config, family, vocabulary_size),
        head_count=heads.count,
        key_value_head_count=heads.key_value_count,
        layers=grouped(layers),
        tied_embeddings=tied,
        head_bias=config.flag("lm_head_bias") or family.head_bias,
        position_rows=_position_rows(config, family),
        embedding_width=config.whole("word_embed_proj_dim") or 0,
        final_norm_vectors=family.norm_values * (2 if family.embedding_norm else 1),
        layer_embedding_parameters=_layer_embedding_parameters(config, layer_count),
        other_replicated_parameters=_layer_embedding_projection(config, hidden_size, layer_count)
        + stream_projections(config, hidden_size),
        vision_audio_parameters=tower.parameter_count,
        projection_parameters=tower.projection_parameter_count,
        hyper_connections=HyperConnections(stream_count=streams, head=config.has("o_groups")) if streams > 1 else None,
        draft=draft,
        value_bytes=values.value_bytes,
        weight_format_source=WeightFormatSource.STATED if values.is_known else WeightFormatSource.UNSPECIFIED,
        is_complete=not missing and bool(vocabulary_size),
    )
    stored = read_quantisation(root, config, architecture)
    return None if config.ledger.violations else stored


def _use_what_others_decide(config: Fields) -> None:
    """Keys that say again, or for no layer of this model, what other keys decide."""
    config.use("intermediate_size", "intermediate_size_mlp", "mlp_only_layers", "attention_bias", "mlp_bias")
    config.use("enable_moe_block", "linear_to_full_ratio")
    if config.items("cross_attention_layers"):
        config.ledger.assume(
            "Layers that attend to an image (cross_attention_layers) are counted as if they attended to the text."
        )


def grouped(layers: Sequence[Layer]) -> tuple[LayerGroup, ...]:
    """Layers that are made alike, together, in the order of their first."""
    groups: dict[Layer, list[int]] = {}
    for index, layer in enumerate(layers):
        groups.setdefault(layer, []).append(index)
    return tuple(
        LayerGroup(
            layers=ranges_of(indexes),
            mixers=layer.mixers,
            feed_forwards=layer.feed_forwards,
            norm_vectors=layer.norm_vectors,
            all_reduce_count=layer.all_reduce_count,
            other_parameters=layer.other_parameters,
            reuses_weights=layer.reuses_weights,
        )
        for layer, indexes in groups.items()
    )


def _tied(root: Fields, config: Fields, family: Family) -> bool:
    own, outer = config.flag(*_TIED_KEYS), root.flag("tie_word_embeddings")
    stated = outer if outer is not None else own
    if stated is not None or family is not UNKNOWN:
        return family.tied if stated is None else stated
    by_default = root.has("transformers_version")
    words = "one matrix: Transformers leaves the key out where they are" if by_default else "two matrices"
    config.ledger.assume(f"No key says whether embedding and LM head are one matrix; they are counted as {words}.")
    return by_default


def _stored_rows(config: Fields, family: Family, vocabulary_size: int) -> int:
    """Rows of the embedding as stored, where the config gives them padded to a multiple of 128."""
    rows = family.embedding_rows
    if rows and vocabulary_size != rows and -(-rows // 128) * 128 == vocabulary_size:
        config.ledger.assume(
            f"The embedding has {rows} rows, as in the class of the model_type; {vocabulary_size} is that, padded."
        )
        return rows
    return 0


def _position_rows(config: Fields, family: Family) -> int:
    if family.position_offset is None:
        return 0
    rows = config.whole("n_positions", "max_position_embeddings", maximum=10**8) or 0
    return rows + family.position_offset


def _layer_embedding_parameters(config: Fields, layer_count: int) -> int:
    width = config.whole("hidden_size_per_layer_input", minimum=0) or 0
    rows = config.whole("vocab_size_per_layer_input", maximum=10**8) or 0
    return rows * width * layer_count


def _layer_embedding_projection(config: Fields, hidden_size: int, layer_count: int) -> int:
    width = config.whole("hidden_size_per_layer_input", minimum=0) or 0
    return hidden_size * width * layer_count + width


def _missing(config: Fields, name: str) -> None:
    path = config.path_of(name)
    if not any(violation.endswith(name) for violation in config.ledger.violations):
        config.refuse(name, "is missing, or has no value")
    config.ledger.used.add(path)


def _nothing(field: str) -> Violation:
    return Violation(field, "does not describe a language model")


def _reading(architecture: Architecture, values: Mapping[str, Any], ledger: Ledger, model_type: object) -> Reading:
    unused = list(unused_keys(values, ledger))
    assumptions = list(ledger.assumptions)
    if ledger.assumed_defaults:
        listed = ", ".join(f"{key} {value}" for key, value in ledger.assumed_defaults.items())
        assumptions.append(_cut(f"Not in the config and taken as in the class of {model_type}: {listed}."))
    undetermined = list(ledger.undetermined)
    if not architecture.is_complete:
        undetermined.append("total and active parameters: what is counted is not all of the model")
    return Reading(
        architecture=evolve(architecture),
        unused_keys=_limited(unused),
        assumptions=_limited(assumptions),
        undetermined=_limited(undetermined),
    )


def _limited(notes: Sequence[str]) -> tuple[str, ...]:
    cut = tuple(_cut(note) for note in notes)
    if len(cut) <= _LARGEST_NOTE_COUNT:
        return cut
    return (*cut[:_SHOWN_UNUSED_KEY_COUNT], f"... and {len(cut) - _SHOWN_UNUSED_KEY_COUNT} more")


def _cut(note: str) -> str:
    """A note on one line, whatever a config names its parts, and not too long."""
    note = note if note.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in note)
    return note if len(note) <= _LARGEST_NOTE_LENGTH else f"{note[: _LARGEST_NOTE_LENGTH - 3]}..."
