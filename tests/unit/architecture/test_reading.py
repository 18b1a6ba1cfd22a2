"""What is wrong with a config is told, each violation with its path; what was not understood is listed."""

import json
from typing import Any

import pytest

from estimator_service.architecture.mixers import Attention
from estimator_service.architecture.read_architecture import read_architecture
from tests.unit.architecture.configs import SMALL, SMALL_MOE, model, read, refusals


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("not json", "is not JSON"),
        ('{"hidden_size": 4096', "is not JSON"),
        ("[1, 2]", "not a JSON object but an array"),
        ("7", "not a JSON object but a number"),
        ("null", "not a JSON object but null"),
        ("{}", "is an empty object"),
        ("GGUF\x03\x00\x00\x00", "is a GGUF file"),
        ('\x10\x27\x00\x00\x00\x00\x00\x00{"__metadata__":{}}', "is a safetensors file"),
        ('{"a.weight": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}', "is a safetensors file"),
        ('{"metadata": {}, "weight_map": {"a": "b"}}', "is the index of a checkpoint"),
        ("PK\x03\x04abc", "is a zip archive"),
        ("<!DOCTYPE html><html>", "is HTML"),
        ("[" * 100_000, "is nested 65 deep"),
        ('{"a":' * 100_000, "is nested 65 deep"),
        ('{"a": [' + "{}," * 250_000 + "{}]}", "objects and arrays, above 200000"),
        ("x" * 50_000_000, "50000000 bytes are above 4194304"),
        ('{"hidden_size": 1e999, "num_hidden_layers": 2}', "1e999 is not a whole number"),
        ('{"hidden_size": 1' + "0" * 30 + ', "num_hidden_layers": 2}', "1" + "0" * 30 + " is not a whole number"),
        ('{"hidden_size": -1' + "0" * 30 + ', "num_hidden_layers": 2}', "-1" + "0" * 30 + " is not a whole number"),
        ('{"__metadata__": {"format": "pt"}, "w": {"data_offsets": [0, 2]}}', "is a safetensors file"),
        ('{"a": "b"}', "is no config of a language model"),
        ('{"hidden_size": NaN, "num_hidden_layers": 2}', "nan is not a whole number"),
        ('{"hidden_size": ' + "9" * 5000 + ', "num_hidden_layers": 2}', "9... (5000 characters) is not a whole number"),
    ],
)
def test_what_is_no_config_is_one_clear_violation(text: str, told: str) -> None:
    (violation,) = refusals(text)
    assert violation.field.startswith("config_json")
    assert told in violation.description


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"num_hidden_layers": -3}, "num_hidden_layers", "-3 is not a whole number from 1 to 1024"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers", "1000000000 is not a whole number from 1 to 1024"),
        ({"hidden_size": "4096"}, "hidden_size", "'4096' is not a whole number"),
        ({"hidden_size": True}, "hidden_size", "True is not a whole number"),
        ({"hidden_size": 64.5}, "hidden_size", "64.5 is not a whole number"),
        ({"hidden_size": None}, "hidden_size", "is missing"),
        ({"num_attention_heads": 0}, "num_attention_heads", "0 is not a whole number"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings", "'no' is not true or false"),
        ({"layer_types": ["full_attention"]}, "layer_types", "1 entries are fewer than the 4 layers"),
        ({"layer_types": "full_attention"}, "layer_types", "is not an array"),
        ({"hybrid_override_pattern": "M*"}, "hybrid_override_pattern", "2 characters are fewer than the 4 layers"),
        ({"block_configs": [1, 2, 3, 4]}, "block_configs[0]", "is not an object"),
        ({"vocab_size": 10**12}, "vocab_size", "is not a whole number"),
        ({"num_attention_heads": 7, "num_key_value_heads": 7}, "num_attention_heads", "7 heads do not divide"),
        ({"num_key_value_heads": 16}, "num_key_value_heads", "8 heads cannot share 16 key-value heads"),
        ({"num_key_value_heads": 3}, "num_key_value_heads", "8 heads cannot share 3 key-value heads"),
        (
            {"num_local_experts": 8, "num_experts_per_tok": 9},
            "num_experts_per_tok",
            "9 experts for a token are more than 8",
        ),
    ],
)
def test_a_value_that_cannot_be_is_told_with_its_path(changes: dict[str, Any], field: str, told: str) -> None:
    violations = refusals(json.dumps({**SMALL, **changes}))
    assert [violation.field for violation in violations] == [f"config_json.{field}"]
    assert told in violations[0].description


def test_every_violation_comes_at_once() -> None:
    broken = {**SMALL, "hidden_size": "64", "num_hidden_layers": -1}
    assert [v.field for v in refusals(json.dumps(broken))] == [
        "config_json.hidden_size",
        "config_json.num_hidden_layers",
    ]


def test_sizes_that_are_wrong_hide_nothing_else() -> None:
    keys = ["hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size"]
    broken = {**SMALL, **dict.fromkeys([*keys, "vocab_size"], "wide")}
    assert {v.field for v in refusals(json.dumps(broken))} == {f"config_json.{key}" for key in [*keys, "vocab_size"]}


def test_heads_with_a_width_of_their_own_need_not_divide_the_hidden_size() -> None:
    (group,) = read({**SMALL, "num_attention_heads": 7, "num_key_value_heads": 7, "head_dim": 16}).architecture.layers
    (attention,) = group.mixers
    assert isinstance(attention, Attention)
    assert (attention.head_count, attention.head_dim) == (7, 16)


def test_heads_of_an_unknown_class_that_do_not_divide_the_hidden_size_leave_attention_open() -> None:
    """The class may have a width of its own; the sums over the ranks are known all the same."""
    counted = model({**SMALL, "model_type": "never_heard_of", "num_attention_heads": 7, "num_key_value_heads": 7})
    assert counted.total_parameters is None
    assert any("7 heads do not divide the hidden size 64" in sentence for sentence in counted.undetermined)
    assert counted.all_reduce_count == 9


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"n_layer": 12}, "n_layer 12 differs from num_hidden_layers 4, which is taken."),
        ({"n_embd": 96}, "n_embd 96 differs from hidden_size 64, which is taken."),
        ({"n_inner": 96}, "n_inner 96 differs from intermediate_size 128, which is taken."),
        ({"n_head": 4}, "n_head 4 differs from num_attention_heads 8, which is taken."),
    ],
)
def test_keys_that_disagree_are_told_with_the_one_that_is_taken(changes: dict[str, Any], told: str) -> None:
    conflicting = read({**SMALL, **changes})
    assert told in conflicting.assumptions
    assert conflicting.architecture == read(SMALL).architecture
    assert not any("differs from" in sentence for sentence in read({**SMALL, "n_layer": 4}).assumptions)


def test_paths_lead_into_nested_configs() -> None:
    nested = {"model_type": "wrapper", "text_config": {**SMALL, "intermediate_size": "wide"}}
    assert [v.field for v in refusals(json.dumps(nested))] == ["config_json.text_config.intermediate_size"]


def test_whole_numbers_may_be_written_as_fractions_and_infinity_may_stand_where_it_does_not_matter() -> None:
    plain = model(SMALL)
    written = read_architecture(json.dumps({**SMALL, "hidden_size": 64.0, "time_step_limit": [0.0, float("inf")]}))
    assert written.architecture == read(SMALL).architecture
    assert plain.hidden_size == 64


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert read_architecture("\ufeff" + json.dumps(SMALL)) == read(SMALL)


def test_the_text_model_of_a_multimodal_config_is_the_model() -> None:
    nested = read({"model_type": "wrapper", "text_config": SMALL, "vision_config": {"hidden_size": 32, "depth": 2}})
    assert nested.architecture.layers == read(SMALL).architecture.layers
    assert nested.architecture.vision_audio_parameters > 0
    assert any("vision tower" in sentence for sentence in nested.assumptions)


def test_keys_that_were_not_understood_are_listed_with_their_paths() -> None:
    config = {**SMALL, "frobnicator_width": 77, "extra": {"depth": 3}, "rope_scaling": {"factor": 8.0, "odd": 1}}
    assert read(config).unused_keys == ("frobnicator_width", "extra")
    nested = {"text_config": {**SMALL, "frobnicator_width": 77}}
    assert read(nested).unused_keys == ("text_config.frobnicator_width",)


def test_what_is_off_or_does_not_matter_is_no_false_alarm() -> None:
    silent = {
        **SMALL,
        "frobnicate": False,
        "frobnicators": [],
        "frobnicator_width": 0,
        "bos_token_id": 1,
        "attention_dropout": 0.1,
        "rope_theta": 1e6,
        "rms_norm_eps": 1e-6,
        "transformers_version": "4.57.0",
        "max_position_embeddings": 131072,
        "architectures": ["LlamaForCausalLM"],
    }
    assert read(silent).unused_keys == ()


def test_more_unused_keys_than_are_told_are_counted() -> None:
    many = {**SMALL, **{f"frobnicator_{i}_width": 1 for i in range(300)}}
    unused = read(many).unused_keys
    assert len(unused) == 100
    assert unused[-1] == "... and 201 more"


def test_a_key_that_cannot_be_printed_is_shown_in_a_form_that_can() -> None:
    (shown,) = read({**SMALL, "a\nb": 1}).unused_keys
    assert shown == "'a\\nb'"


@pytest.mark.parametrize("model_type", ["lla\u202ema", "a\x07b", "\ud800", "x\ny"])
def test_a_type_that_cannot_be_printed_is_told_in_a_form_that_can(model_type: str) -> None:
    """Nothing is wrong with the model; what is said of it goes onto a terminal."""
    reading = read({**SMALL, "model_type": model_type})
    (said,) = [sentence for sentence in reading.assumptions if sentence.startswith("There is no rule for model_type")]
    assert said.isprintable()
    assert ascii(model_type)[1:-1] in said
    assert model({**SMALL, "model_type": model_type}).hidden_size == 64


@pytest.mark.parametrize("key", ["text_config", "llm_config", "vision_config", "audio_config", "quantization_config"])
@pytest.mark.parametrize("value", ["x", ["x"], 7, True])
def test_a_part_that_is_no_object_is_not_passed_over(key: str, value: object) -> None:
    reading = read({**SMALL, key: value})
    assert any(key in told for told in (*reading.unused_keys, *reading.undetermined))


def test_a_default_of_the_class_is_told() -> None:
    config = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    (sentence,) = [s for s in read(config).assumptions if "taken as in the class of gemma3_text" in s]
    assert "num_attention_heads 8" in sentence
    assert "vocab_size 262208" in sentence


def test_a_long_list_of_ignored_modules_is_read() -> None:
    ignored = [f"model.layers.{i % 1024}.self_attn.other_{i}" for i in range(60_000)]
    config = {**SMALL_MOE, "num_hidden_layers": 1024, "quantization_config": {"quant_method": "fp8", "ignore": ignored}}
    assert read(config).architecture.layer_count == 1024
