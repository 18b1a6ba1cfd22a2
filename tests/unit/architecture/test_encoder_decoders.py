"""Encoder-decoders: a pass through the decoder is counted, and everything else is said to be open."""

from typing import Any

import pytest

from estimator_service.architecture.read_encoder_decoder import ENCODER
from tests.unit.architecture.configs import SMALL, model, read

T5: dict[str, Any] = {
    "model_type": "t5",
    "d_model": 1024,
    "d_ff": 4096,
    "num_layers": 24,
    "num_decoder_layers": 12,
    "num_heads": 16,
    "d_kv": 64,
    "vocab_size": 32128,
    "is_encoder_decoder": True,
    "relative_attention_num_buckets": 32,
}
BART: dict[str, Any] = {
    "model_type": "bart",
    "d_model": 1024,
    "encoder_layers": 10,
    "decoder_layers": 12,
    "num_hidden_layers": 10,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 16,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 4096,
    "vocab_size": 50265,
    "is_encoder_decoder": True,
    "activation_function": "gelu",
}


BERT: dict[str, Any] = {
    "architectures": ["BertForMaskedLM"],
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 768,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 2,
    "vocab_size": 30522,
    "transformers_version": "4.6.0",
}


@pytest.mark.parametrize("dropped", ["architectures", "type_vocab_size", ""])
def test_an_encoder_is_said_to_be_one(dropped: str) -> None:
    config = {key: value for key, value in BERT.items() if key != dropped}
    assert ENCODER in read(config).assumptions
    total = model(config).total_parameters
    # BERT base has 109.5 million parameters, its positions, segments, biases and pooler included.
    assert total == pytest.approx(109.5e6, rel=0.02)


@pytest.mark.parametrize("config", [{**BERT, "is_decoder": True}, SMALL, T5])
def test_a_decoder_is_not_said_to_be_an_encoder(config: dict[str, Any]) -> None:
    assert ENCODER not in read(config).assumptions


@pytest.mark.parametrize("config", [T5, BART], ids=["t5", "bart"])
def test_the_decoder_has_a_sum_more_in_each_layer_and_the_rest_is_open(config: dict[str, Any]) -> None:
    counted = model(config)
    assert (counted.layer_count, counted.attention_head_count) == (12, 16)
    assert counted.all_reduce_count == 3 * 12 + 1
    assert (counted.total_parameters, counted.active_parameters) == (None, None)
    assert (counted.parameter_groups, counted.cache_groups) == ((), ())
    assert any("encoder and cross-attention" in sentence for sentence in counted.undetermined)
    assert counted.unused_keys == ()


@pytest.mark.parametrize("key", ["is_encoder_decoder", "add_cross_attention"])
def test_one_flag_is_enough_and_off_means_nothing(key: str) -> None:
    assert model({**SMALL, key: True}).total_parameters is None
    assert model({**SMALL, key: True}).all_reduce_count == 13
    assert model({**SMALL, key: False}) == model(SMALL)


@pytest.mark.parametrize(
    ("stated", "matrices"),
    [({}, 2), ({"feed_forward_proj": "relu"}, 2), ({"feed_forward_proj": "gated-gelu"}, 3)],
)
def test_the_projection_says_whether_blocks_are_gated(stated: dict[str, Any], matrices: int) -> None:
    (group,) = read({**T5, **stated}).architecture.layers
    (block,) = group.feed_forwards
    assert block.gated == (matrices == 3)


def test_layers_of_the_decoder_are_those_of_the_encoder_where_no_key_says() -> None:
    assert model({**T5, "num_decoder_layers": None}).layer_count == 24
