"""Parameters by part, counted by hand."""

import pytest

from linkbound.domain.catalog import ModelPart, WeightSplit
from tests.unit.architecture.configs import PUBLISHED, SMALL, SMALL_MOE, model, parameters

H = 64


def test_a_dense_model_by_hand() -> None:
    """Heads of 8: queries and output 64 x 64, keys and values 16 x 64 each."""
    assert parameters(SMALL, ModelPart.ATTENTION) == 4 * (2 * H * H + 2 * 16 * H)
    assert parameters(SMALL, ModelPart.DENSE_MLP) == 4 * 3 * H * 128
    assert parameters(SMALL, ModelPart.NORM) == (2 * 4 + 1) * H
    assert parameters(SMALL, ModelPart.EMBEDDING) == parameters(SMALL, ModelPart.LM_HEAD) == 1000 * H


def test_how_ranks_share_a_dense_model() -> None:
    by_split = {
        (group.part, group.split): group.parameter_count
        for group in model(SMALL).parameter_groups
        if group.part is ModelPart.ATTENTION
    }
    assert by_split == {
        (ModelPart.ATTENTION, WeightSplit.SLICED): 4 * 2 * H * H,
        (ModelPart.ATTENTION, WeightSplit.KEY_VALUE_HEADS): 4 * 2 * 16 * H,
    }


def test_latent_attention_with_an_indexer_by_hand() -> None:
    sliced = 8 * 24 * 48 + 8 * 32 * 32 + H * 8 * 16
    whole = 48 * H + (32 + 8) * H
    indexer = 4 * 128 * 48 + 128 * H + 2 * 128 + 4 * H
    assert parameters(SMALL_MOE, ModelPart.ATTENTION) == 4 * (sliced + whole)
    assert parameters(SMALL_MOE, ModelPart.SPARSE_INDEXER) == 4 * indexer


def test_experts_by_hand() -> None:
    """Three of four layers have 16 experts of width 32, of which a token uses 2, and a shared one."""
    counted = model(SMALL_MOE)
    (routed,) = [group for group in counted.parameter_groups if group.part is ModelPart.ROUTED_EXPERTS]
    assert routed.parameter_count == 3 * 16 * 3 * H * 32
    assert routed.active_parameter_count == 3 * 2 * 3 * H * 32
    assert routed.layer_count == 3
    assert parameters(SMALL_MOE, ModelPart.SHARED_EXPERTS) == 3 * 3 * H * 32
    assert parameters(SMALL_MOE, ModelPart.ROUTER) == 3 * 16 * H
    assert parameters(SMALL_MOE, ModelPart.DENSE_MLP) == 3 * H * 128


def test_a_draft_module_is_one_more_moe_layer_a_projection_and_three_norms() -> None:
    one_deeper = model({**SMALL_MOE, "num_hidden_layers": 5})
    layer = (one_deeper.total_parameters or 0) - (model(SMALL_MOE).total_parameters or 0)
    assert model(SMALL_MOE).mtp_parameters == layer + 2 * H * H + 3 * H
    assert model(SMALL_MOE).mtp_layer_count == 1
    assert model({**SMALL_MOE, "num_nextn_predict_layers": 0}).mtp_parameters == 0


def test_one_matrix_for_embedding_and_head_is_counted_once_and_used_in_full() -> None:
    tied = model({**SMALL, "tie_word_embeddings": True})
    assert tied.total_parameters == (model(SMALL).total_parameters or 0) - 1000 * H
    assert tied.active_parameters == tied.total_parameters
    assert model(SMALL).active_parameters == (model(SMALL).total_parameters or 0) - 1000 * H


@pytest.mark.parametrize(
    ("name", "billions"),
    [("deepseek-v2", 21.4), ("phi-3.5-moe", 6.6), ("qwen3-next-80b-a3b", 3.0), ("jamba-v0.1", 12.0), ("dbrx", 36.0)],
)
def test_active_parameters_are_near_what_their_makers_print(name: str, billions: float) -> None:
    """Makers round, and some count the embedding."""
    counted = model(PUBLISHED[name]["config"]).active_parameters
    assert counted is not None
    assert abs(counted / 1e9 - billions) < 0.06 * billions + 0.5


def test_experts_that_hold_nothing_make_active_parameters_the_most() -> None:
    with_identity = model({**SMALL_MOE, "zero_expert_num": 8, "num_experts_per_tok": 20})
    assert any("the most that a token uses: 8 experts" in sentence for sentence in with_identity.assumptions)
    assert with_identity.active_expert_count == 16
    assert not any("the most that a token uses" in sentence for sentence in model(SMALL_MOE).assumptions)


def test_pruned_blocks_have_the_widths_that_their_factor_gives() -> None:
    """2/3 of 5.25 x 64 is 224, up to 256; a no-op has neither weights nor a norm."""
    block = {"attention": {"n_heads_in_group": 4}, "ffn": {"ffn_mult": 5.25}}
    no_op = {"attention": {"no_op": True}, "ffn": {"no_op": True}}
    pruned = {**SMALL, "model_type": "nemotron-nas", "num_hidden_layers": 3, "block_configs": [block, no_op, block]}
    assert parameters(pruned, ModelPart.DENSE_MLP) == 2 * 3 * H * 256
    assert parameters(pruned, ModelPart.ATTENTION) == 2 * (2 * H * H + 2 * 16 * H)
    assert parameters(pruned, ModelPart.NORM) == (2 * 2 + 1) * H
    assert model(pruned).all_reduce_count == 5
