"""Architectures that differ from each other in every way that configs do: parameters and sums over the ranks."""

import pytest

from linkbound.domain.catalog import ModelPart
from tests.unit.architecture.configs import PUBLISHED, SMALL, model


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_exact(name: str) -> None:
    counted = model(PUBLISHED[name]["config"])
    assert counted.total_parameters == PUBLISHED[name]["total_parameters"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_sums_over_the_ranks_are_those_of_vllm(name: str) -> None:
    assert model(PUBLISHED[name]["config"]).all_reduce_count == PUBLISHED[name]["all_reduces"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_nothing_is_left_over_or_open(name: str) -> None:
    read = model(PUBLISHED[name]["config"])
    assert (read.unused_keys, read.undetermined) == ((), ())


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_parts_add_up_to_the_whole(name: str) -> None:
    counted = model(PUBLISHED[name]["config"])
    groups = [group for group in counted.parameter_groups if group.part is not ModelPart.MTP]
    assert sum(group.parameter_count for group in groups) == counted.total_parameters
    assert sum(group.active_parameter_count for group in groups) == counted.active_parameters
    assert sum(group.weight_bytes or 0 for group in groups) == 2 * (counted.total_parameters or 0)
    assert max(group.layer_count for group in groups) == counted.layer_count


def test_an_architecture_without_a_rule_is_read_by_fields_and_says_so() -> None:
    known, unknown = model(SMALL), model({**SMALL, "model_type": "never_heard_of"})
    assert unknown.total_parameters == known.total_parameters
    assert unknown.collectives == known.collectives
    assert any("no rule for model_type never_heard_of" in sentence for sentence in unknown.assumptions)
    assert not any("no rule" in sentence for sentence in known.assumptions)


def test_aliases_of_gpt_2_are_read_without_its_name() -> None:
    """n_embd, n_layer and n_head are enough; without an activation that says otherwise blocks have two matrices."""
    config = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100, "activation_function": "gelu_new"}
    counted = model(config)
    layers = 2 * (4 * 64 * 64 + 2 * 64 * 256 + 2 * 64)
    assert counted.total_parameters == 2 * 100 * 64 + layers + 64
    assert any("4 hidden sizes" in sentence for sentence in counted.assumptions)


def test_facts_alone_give_the_collectives_and_say_what_is_missing() -> None:
    counted = model({"hidden_size": 5376, "num_hidden_layers": 62})
    assert counted.all_reduce_count == 125
    assert counted.total_parameters is None
    assert counted.parameter_groups == ()
    assert (counted.attention_head_count, counted.vocabulary_size) == (0, 0)
    assert any("vocabulary" in sentence for sentence in counted.undetermined)
    assert any("attention" in sentence for sentence in counted.undetermined)
    assert all(row.part is not ModelPart.LM_HEAD for row in counted.collectives)


def test_a_layer_of_an_unknown_kind_is_left_open() -> None:
    counted = model({**SMALL, "layer_types": ["full_attention", "telepathy", "telepathy", "full_attention"]})
    assert counted.total_parameters is None
    assert any("'telepathy'" in sentence for sentence in counted.undetermined)
    # It still ends in a sum.
    assert counted.all_reduce_count == 9
