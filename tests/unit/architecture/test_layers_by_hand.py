"""Layers that are made in their own way, counted by hand from the shapes of their classes."""

from typing import Any

import pytest

from estimator_service.architecture.mixers import Attention, LatentAttention
from linkbound.domain.catalog import CacheGroup, Model, ModelPart, WeightSplit
from tests.unit.architecture.configs import SMALL, SMALL_MOE, model, parameters, read, refusals_of

# SMALL: hidden size 64, four layers of 8 heads of 8 on 2 key-value heads, inner width 128, vocabulary 1000.
QUERIES = OUTPUT = 64 * 64
KEYS = VALUES = 16 * 64
ATTENTION = QUERIES + KEYS + VALUES + OUTPUT
DENSE = 3 * 128 * 64
EXPERT = 3 * 32 * 64
EXPERTS: dict[str, Any] = {
    **SMALL,
    "model_type": "never_heard_of",
    "num_local_experts": 16,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}


def token_caches(config: dict[str, Any]) -> list[CacheGroup]:
    return [group for group in model(config).cache_groups if group.values_per_token]


def reasons(counted: Model) -> dict[str, int]:
    return {row.reason.split(":")[0].split(",")[0]: row.count for row in counted.collectives}


def test_inner_widths_may_differ_by_layer() -> None:
    widths = [128, 64, 128, 32]
    assert parameters({**SMALL, "intermediate_size": widths}, ModelPart.DENSE_MLP) == 3 * 64 * sum(widths)
    alike = model({**SMALL, "intermediate_size": [128] * 4})
    assert alike.parameter_groups == model(SMALL).parameter_groups


@pytest.mark.parametrize("key", ["num_key_value_heads", "num_key_value_heads_per_layer"])
def test_key_value_heads_may_differ_by_layer(key: str) -> None:
    config = {**{k: v for k, v in SMALL.items() if k != "num_key_value_heads"}, key: [4, 2, 2, 1]}
    counted = model(config)
    keys_and_values = 2 * (4 + 2 + 2 + 1) * 8 * 64
    assert parameters(config, ModelPart.ATTENTION) == 4 * (QUERIES + OUTPUT) + keys_and_values
    assert sorted((g.split_head_count, g.layer_count) for g in counted.cache_groups) == [(1, 1), (2, 2), (4, 1)]
    assert counted.key_value_head_count == 4
    assert any("differ by layer" in sentence for sentence in counted.assumptions)


def test_query_heads_may_differ_by_layer() -> None:
    config = {**SMALL, "head_dim": 8, "num_attention_heads": [8, 4, 4, 8], "num_key_value_heads": [2, 1, 1, 2]}
    assert parameters(config, ModelPart.ATTENTION) == 2 * ATTENTION + 2 * ATTENTION // 2
    assert model(config).attention_head_count == 8


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"intermediate_size": [128, 64]}, "intermediate_size", "2 entries are fewer than the 4 layers"),
        ({"intermediate_size": [128, 64, 0, 1]}, "intermediate_size", "is not an array of whole numbers from 1"),
        ({"num_key_value_heads": [2, 2, 3, 2]}, "num_key_value_heads", "layer 2: 8 heads cannot share 3"),
        ({"num_attention_heads": [8, "x", 8, 8]}, "num_attention_heads", "is not an array of whole numbers from 1"),
    ],
)
def test_what_is_wrong_with_an_array_is_told(changes: dict[str, Any], field: str, told: str) -> None:
    (violation,) = refusals_of({**SMALL, **changes})
    assert violation.field == f"config_json.{field}"
    assert told in violation.description


def test_openelm_gives_layers_names_and_ratios_of_its_own() -> None:
    """Ratio times 64, to the nearest multiple of 16, no less than nine tenths of it: 33.3, 76.8, 44.8 to 32, 80, 48."""
    config = {
        "model_type": "openelm",
        "model_dim": 64,
        "num_transformer_layers": 3,
        "head_dim": 8,
        "num_query_heads": [4, 8, 8],
        "num_kv_heads": [1, 2, 2],
        "ffn_multipliers": [0.52, 1.2, 0.7],
        "ffn_dim_divisor": 16,
        "ffn_with_glu": True,
        "share_input_output_layers": True,
        "activation_fn_name": "swish",
        "vocab_size": 1000,
    }
    attention = (2 * 32 + 2 * 8) * 64 + 2 * (2 * 64 + 2 * 16) * 64
    dense = 3 * 64 * (32 + 80 + 48)
    norms = 3 * (2 * 64 + 2 * 8) + 64
    assert model(config).total_parameters == 1000 * 64 + attention + dense + norms


def test_queries_through_a_rank_that_all_heads_share() -> None:
    """Step-3: the way down to the rank, and its norm, are whole on every rank; shared experts are summed apart."""
    config = {
        **EXPERTS,
        "model_type": "step3_text",
        "share_q_dim": 24,
        "share_expert_dim": 32,
        "moe_layers_enum": "2,3",
    }
    counted = model(config)
    queries = 24 * 64 + 64 * 24
    assert parameters(config, ModelPart.ATTENTION) == 4 * (queries + KEYS + VALUES + OUTPUT)
    assert parameters(config, ModelPart.NORM) == 4 * (2 * 64 + 24) + 64
    (whole,) = [
        g for g in counted.parameter_groups if g.part is ModelPart.ATTENTION and g.split is WeightSplit.REPLICATED
    ]
    assert whole.parameter_count == 4 * 24 * 64
    # Attention, then a dense block in two layers, and two sums beside attention in the other two.
    assert counted.all_reduce_count == 1 + 4 + 2 + 2 * 2
    assert parameters(config, ModelPart.SHARED_EXPERTS) == 2 * EXPERT


def test_layers_that_read_the_keys_of_the_one_before() -> None:
    """Hunyuan-Large: the first of each two layers has keys and values."""
    config = {**SMALL, "model_type": "hunyuan", "use_qk_norm": False, "use_cla": True, "cla_share_factor": 2}
    assert parameters(config, ModelPart.ATTENTION) == 4 * (QUERIES + OUTPUT) + 2 * (KEYS + VALUES)
    (cache,) = token_caches(config)
    assert cache.layer_count == 2
    assert token_caches({**config, "use_cla": False})[0].layer_count == 4


def test_a_dense_block_beside_the_experts() -> None:
    """Grok 2: both are added before one sum; an exact gelu gates there."""
    config = {**EXPERTS, "residual_moe": True, "hidden_act": "gelu"}
    counted = model(config)
    assert parameters(config, ModelPart.DENSE_MLP) == 4 * DENSE
    assert parameters(config, ModelPart.ROUTED_EXPERTS) == 4 * 16 * EXPERT
    assert counted.all_reduce_count == 9
    assert reasons(counted)["mixture of experts and a dense MLP side by side"] == 4


def test_a_dense_block_as_wide_as_the_hidden_size_beside_the_experts() -> None:
    """Arctic: in layers with experts, which are each second one; it has a norm of its own."""
    config = {
        **EXPERTS,
        "model_type": "arctic",
        "moe_layer_frequency": 2,
        "use_residual": True,
        "parallel_attn_mlp_res": True,
    }
    del config["moe_intermediate_size"]
    counted = model(config)
    assert parameters(config, ModelPart.DENSE_MLP) == 2 * DENSE + 2 * 3 * 64 * 64
    assert parameters(config, ModelPart.ROUTED_EXPERTS) == 2 * 16 * DENSE
    assert parameters(config, ModelPart.NORM) == (4 * 2 + 2 + 1) * 64
    assert counted.all_reduce_count == 9
    assert counted.unused_keys == ()


def test_streams_and_a_branch_of_low_rank() -> None:
    """Gemma 3n: AltUp over s streams and LAuReL of rank r; the last layers store projections that they do not use."""
    config = {
        **SMALL,
        "model_type": "gemma3n_text",
        "head_dim": 8,
        "tie_word_embeddings": True,
        "altup_num_inputs": 4,
        "laurel_rank": 8,
        "num_kv_shared_layers": 1,
        "hidden_size_per_layer_input": 16,
        "vocab_size_per_layer_input": 500,
        "hidden_activation": "gelu_pytorch_tanh",
    }
    counted = model(config)
    router, coefficients, norm, scale = 4 * 64, 4 * 16 + 4 * 4, 64, 64
    branch = 2 * 8 * 64 + 64
    own_input = 2 * 64 * 16
    layer = ATTENTION + DENSE + router + coefficients + norm + scale + branch + own_input + 5 * 64 + 2 * 8
    around = 1000 * 64 + 500 * 4 * 16 + 64 * 4 * 16 + 16 + 2 * 3 * 64 * 64 + 64
    assert counted.total_parameters == 4 * layer + around
    assert token_caches(config)[0].layer_count == 3


def test_linear_attention_but_in_the_last_layer_of_each_group() -> None:
    """Ring-linear: groups of 3 of 8 layers; those after the last whole group see all tokens as well."""
    config = {**SMALL, "model_type": "bailing_moe_linear", "num_hidden_layers": 8, "layer_group_size": 3}
    (cache,) = token_caches(config)
    assert cache.layer_count == 2 + 2
    # Queries, keys, values, gate and output of all heads, and a norm over them.
    assert parameters(config, ModelPart.LINEAR_MIXER) == 4 * 5 * 64 * 64
    assert model(config).all_reduce_count == 17


def test_attention_with_a_gate_and_four_norms() -> None:
    """Trinity: a gate for every value of the output, norms of queries and keys, one before and after each block."""
    config = {**SMALL, "model_type": "afmoe", "sliding_window": 16, "global_attn_every_n_layers": 2}
    assert parameters(config, ModelPart.ATTENTION) == 4 * (ATTENTION + QUERIES)
    assert parameters(config, ModelPart.NORM) == 4 * (4 * 64 + 2 * 8) + 64
    assert sorted((g.window_tokens or 0, g.layer_count) for g in token_caches(config)) == [(0, 2), (16, 2)]


def test_attention_is_named_layer_by_layer() -> None:
    """GPT-Neo: local layers see a window, global ones all tokens."""
    config = {
        "model_type": "gpt_neo",
        "hidden_size": 64,
        "num_layers": 4,
        "num_heads": 8,
        "vocab_size": 1000,
        "max_position_embeddings": 100,
        "window_size": 16,
        "attention_types": [[["global", "local"], 2]],
        "attention_layers": ["global", "local"] * 2,
        "activation_function": "gelu_new",
    }
    assert sorted((g.window_tokens or 0, g.layer_count) for g in token_caches(config)) == [(0, 2), (16, 2)]
    assert model(config).unused_keys == ()


def test_layers_with_experts_are_marked_one_by_one() -> None:
    config = {**EXPERTS, "is_moe_layer": [False, True, True, False]}
    assert parameters(config, ModelPart.ROUTED_EXPERTS) == 2 * 16 * EXPERT
    assert parameters(config, ModelPart.DENSE_MLP) == 2 * DENSE


def test_the_width_of_values_of_latent_attention_may_be_left_out() -> None:
    """MiniCPM3: the hidden size over the heads; said so."""
    config = {key: value for key, value in SMALL_MOE.items() if key != "v_head_dim"}
    (attention,) = {m for g in read(config).architecture.layers for m in g.mixers}
    assert isinstance(attention, LatentAttention)
    assert attention.value_head_dim == 64 // 8
    assert any("v_head_dim is 8" in sentence for sentence in read(config).assumptions)


@pytest.mark.parametrize("missing", ["qk_nope_head_dim", "qk_rope_head_dim"])
def test_latent_attention_of_unknown_size_is_not_taken_for_another(missing: str) -> None:
    counted = model({key: value for key, value in SMALL_MOE.items() if key != missing})
    assert counted.total_parameters is None
    assert counted.cache_groups == ()
    assert any("latent attention" in sentence for sentence in counted.undetermined)


def test_other_names_of_the_ranks_of_latent_attention() -> None:
    """Pangu Ultra."""
    names = {
        "kv_lora_rank": "attention_kv_lora_dim",
        "q_lora_rank": "attention_q_lora_dim",
        "qk_nope_head_dim": "attention_qk_dim",
        "qk_rope_head_dim": "attention_qk_rope_dim",
        "v_head_dim": "attention_v_dim",
    }
    renamed = {names.get(key, key): value for key, value in SMALL_MOE.items()}
    assert read(renamed).architecture == read(SMALL_MOE).architecture


@pytest.mark.parametrize(
    "changes",
    [{"model_type": "rwkv7", "attn_mode": "chunk", "num_heads": 8}, {"model_type": "jetmoe", "kv_channels": 8}],
)
def test_mixers_that_are_not_known_are_not_taken_for_attention(changes: dict[str, Any]) -> None:
    counted = model({**SMALL, **changes})
    assert counted.total_parameters is None
    assert counted.cache_groups == ()
    assert any("parameters and caches are not counted" in sentence for sentence in counted.undetermined)
    assert counted.all_reduce_count == 9


def test_a_nested_config_may_leave_out_what_its_class_has_by_default() -> None:
    """LLaVA 1.5 states no width; Pixtral no heads; a config of its own has to."""
    llava = {"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064, "hidden_act": "silu"}}
    assert model(llava).total_parameters == 6_738_415_616 + 2 * 64 * 4096
    text = {"model_type": "mistral", "hidden_size": 5120, "head_dim": 128, "intermediate_size": 14336}
    pixtral = {"model_type": "llava", "text_config": {**text, "num_hidden_layers": 40, "vocab_size": 131072}}
    (attention,) = {m for g in read(pixtral).architecture.layers for m in g.mixers}
    assert isinstance(attention, Attention)
    assert (attention.head_count, attention.key_value_head_count) == (32, 8)
    assert any("num_attention_heads 32" in sentence for sentence in read(pixtral).assumptions)
    assert refusals_of({"model_type": "llama", "vocab_size": 32064})


@pytest.mark.parametrize(
    "key", ["tie_word_embeddings", "tie_embeddings", "tie_embedding", "weight_tying", "share_input_output_layers"]
)
def test_every_name_of_a_shared_table_is_read(key: str) -> None:
    config = {k: v for k, v in SMALL.items() if k != "tie_word_embeddings"}
    tied, apart = model({**config, key: True}), model({**config, key: False})
    assert (apart.total_parameters or 0) - (tied.total_parameters or 0) == 1000 * 64
    assert tied.unused_keys == ()


def test_the_names_of_mistrals_own_files() -> None:
    own = {"dim": 64, "hidden_dim": 128, "n_layers": 4, "n_heads": 8, "n_kv_heads": 2, "head_dim": 8}
    counted = model({**own, "vocab_size": 1000, "tied_embeddings": False})
    by_name = {key: value for key, value in SMALL.items() if key not in ("model_type", "torch_dtype")}
    del by_name["tie_word_embeddings"]
    assert counted.parameter_groups == model(by_name).parameter_groups
    assert not any("differs from" in sentence for sentence in counted.assumptions)


def test_keys_of_what_a_model_does_not_have_are_no_false_alarm() -> None:
    """Granite 4 without state spaces, Jamba without experts."""
    idle = {"mamba_d_state": 128, "mamba_n_heads": 8, "mamba_expand": 2, "mamba_d_conv": 4, "layer_types": None}
    kinds = {"layer_types": ["attention"] * 4, "expert_layer_period": 2, "expert_layer_offset": 1}
    assert model({**SMALL, **idle, **kinds}).unused_keys == ()
