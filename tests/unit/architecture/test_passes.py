"""The collectives of a pass: which blocks end in a sum over the ranks, by the engine's habits."""

from typing import Any

import pytest

from linkbound.domain.catalog import ModelPart, RowScope
from linkbound.domain.collective import CollectiveKind
from tests.unit.architecture.configs import PUBLISHED, SMALL, SMALL_MOE, model


def sums(config: dict[str, Any]) -> dict[tuple[ModelPart, int], int]:
    rows = [row for row in model(config).collectives if row.kind is CollectiveKind.ALL_REDUCE]
    return {(row.part, row.width): row.count for row in rows}


def test_a_mixed_decoder_sums_once_per_block_and_once_for_the_embedding() -> None:
    rows = model(SMALL_MOE).collectives
    assert [row.count for row in rows] == [1, 4, 1, 3, 1]
    assert [row.part.name for row in rows] == ["EMBEDDING", "ATTENTION", "DENSE_MLP", "ROUTED_EXPERTS", "LM_HEAD"]
    assert {row.row_scope for row in rows[:-1]} == {RowScope.TOKEN}
    gather = rows[-1]
    assert (gather.kind, gather.width, gather.row_scope) == (CollectiveKind.ALL_GATHER, 1024, RowScope.LOGITS)
    assert len({row.reason for row in rows}) == len(rows)


@pytest.mark.parametrize(("name", "layers"), [("falcon-7b", 32), ("falcon-40b", 60)])
def test_parallel_blocks_that_vllm_sums_once(name: str, layers: int) -> None:
    (embedding, merged) = sums(PUBLISHED[name]["config"]).values()
    assert (embedding, merged) == (1, layers)
    assert any("parallel block" in row.reason for row in model(PUBLISHED[name]["config"]).collectives)


@pytest.mark.parametrize("name", ["gpt-j-6b", "gpt-neox-20b", "phi-2", "command-r", "command-r-plus"])
def test_parallel_blocks_that_it_sums_twice(name: str) -> None:
    read = model(PUBLISHED[name]["config"])
    assert read.all_reduce_count == 2 * read.layer_count + 1


def test_a_parallel_block_is_known_by_its_field_without_a_name() -> None:
    assert model({"hidden_size": 8192, "num_hidden_layers": 60, "parallel_attn": True}).all_reduce_count == 61


def test_a_dense_block_beside_experts_is_summed_apart() -> None:
    config = {
        **SMALL,
        "model_type": "gemma4_text",
        "num_experts": 8,
        "top_k_experts": 2,
        "moe_intermediate_size": 32,
        "enable_moe_block": True,
    }
    assert model(config).all_reduce_count == 3 * 4 + 1


def listed(pattern: str, **more: Any) -> dict[str, Any]:
    return {
        **SMALL,
        "model_type": "nemotron_h",
        "num_hidden_layers": len(pattern),
        "hybrid_override_pattern": pattern,
        "mamba_num_heads": 8,
        "mamba_head_dim": 16,
        "ssm_state_size": 16,
        "n_groups": 2,
        "conv_kernel": 4,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "n_shared_experts": 1,
        **more,
    }


def test_one_mixer_per_listed_layer_is_one_sum_each() -> None:
    assert sums(listed("M-M*ME")) == {
        (ModelPart.EMBEDDING, 64): 1,
        (ModelPart.LINEAR_MIXER, 64): 3,
        (ModelPart.ATTENTION, 64): 1,
        (ModelPart.DENSE_MLP, 64): 1,
        (ModelPart.ROUTED_EXPERTS, 64): 1,
    }


def test_a_latent_whose_way_back_is_linear_needs_no_sum_of_its_own() -> None:
    assert (ModelPart.ROUTED_EXPERTS, 16) not in sums(listed("ME", moe_latent_size=16))


def test_a_norm_or_a_quantised_matrix_on_the_way_back_does() -> None:
    normed = listed("MEE", moe_latent_size=16, latent_moe_use_norm=True)
    assert sums(normed)[ModelPart.ROUTED_EXPERTS, 16] == 2
    quantised = {**listed("MEE", moe_latent_size=16), "quantization_config": {"quant_method": "fp8"}}
    assert sums(quantised)[ModelPart.ROUTED_EXPERTS, 16] == 2
    kept = {"quant_method": "fp8", "ignore": ["*fc2_latent_proj"]}
    assert (ModelPart.ROUTED_EXPERTS, 16) not in sums({**quantised, "quantization_config": kept})


def test_two_attentions_two_dense_blocks_and_experts_in_a_layer() -> None:
    config = {
        **SMALL_MOE,
        "model_type": "longcat_flash",
        "ffn_hidden_size": 128,
        "expert_ffn_hidden_size": 32,
        "zero_expert_num": 4,
        "moe_topk": 2,
    }
    assert model(config).all_reduce_count == 5 * 4 + 1
