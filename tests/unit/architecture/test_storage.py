"""Bytes of stored weights by quantisation, counted by hand, scales included."""

from typing import Any

import pytest

from linkbound.domain.catalog import ModelPart
from tests.unit.architecture.configs import SMALL, SMALL_MOE, model

# Matrices of SMALL, four layers: queries and output 64 x 64, keys and values 16 x 64, three of 128 x 64.
ATTENTION = 2 * 64 * 64 + 2 * 16 * 64
DENSE = 3 * 128 * 64
LINEAR = 4 * (ATTENTION + DENSE)
LINEAR_MATRICES = 4 * 7
REST = 2 * 1000 * 64 + 9 * 64
"""Embedding, head and norms."""


def stored(quantisation: dict[str, Any], config: dict[str, Any] = SMALL) -> int:
    groups = model({**config, "quantization_config": quantisation}).parameter_groups
    assert all(group.weight_bytes is not None for group in groups)
    return sum(group.weight_bytes or 0 for group in groups)


def part_bytes(quantisation: dict[str, Any], part: ModelPart, config: dict[str, Any] = SMALL) -> int:
    groups = model({**config, "quantization_config": quantisation}).parameter_groups
    return sum(group.weight_bytes or 0 for group in groups if group.part is part)


def compressed(weights: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, **more}


def test_without_quantisation_weights_take_what_the_model_runs_in() -> None:
    groups = model({**SMALL, "torch_dtype": "float32"}).parameter_groups
    assert sum(group.weight_bytes or 0 for group in groups) == 4 * (LINEAR + REST)


@pytest.mark.parametrize(
    ("quantisation", "linear_bytes"),
    [
        # A byte for a weight and a float32 for each matrix.
        ({"quant_method": "fp8"}, LINEAR + 4 * LINEAR_MATRICES),
        # A float32 for each block of 32 x 32: 4 for queries and output, 2 for keys and values, 8 for the rest.
        ({"quant_method": "fp8", "weight_block_size": [32, 32]}, LINEAR + 4 * 4 * (2 * 4 + 2 * 2 + 3 * 8)),
        # Half a byte, a byte for 16 weights, a float32 for each matrix.
        ({"quant_algo": "NVFP4", "quant_method": "modelopt"}, LINEAR * 9 // 16 + 4 * LINEAR_MATRICES),
        (compressed({"num_bits": 4, "type": "float", "group_size": 16}), LINEAR * 9 // 16 + 4 * LINEAR_MATRICES),
        # Half a byte and a half-precision scale for 32 weights.
        (compressed({"num_bits": 4, "type": "int", "group_size": 32}), LINEAR // 2 + LINEAR // 32 * 2),
        # A float32 for each output: rows of all matrices.
        (
            compressed({"num_bits": 8, "type": "float", "strategy": "channel"}),
            LINEAR + 4 * 4 * (64 + 64 + 16 + 16 + 128 + 128 + 64),
        ),
        # AWQ: half a byte, 16 bits of scale and 4 of zero point for 64 weights.
        (
            {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True},
            LINEAR // 2 + LINEAR // 64 * 20 // 8,
        ),
    ],
)
def test_linear_layers_by_hand(quantisation: dict[str, Any], linear_bytes: int) -> None:
    assert stored(quantisation) == linear_bytes + 2 * REST


def test_gptq_keeps_the_group_of_each_input() -> None:
    """As AWQ, and 32 bits for each input: six matrices of 64 inputs, one of 128, in each layer."""
    quantisation = {"quant_method": "gptq", "bits": 4, "group_size": 64, "desc_act": True}
    columns = 4 * (6 * 64 + 128)
    assert stored(quantisation) == LINEAR // 2 + LINEAR // 64 * 20 // 8 + 4 * columns + 2 * REST


@pytest.mark.parametrize(
    ("quantisation", "linear_bytes"),
    [
        # bitsandbytes: half a byte and a float32 for 64 weights; or a byte, of which 256 share a float32.
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, LINEAR // 2 + LINEAR // 64 * 4),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            LINEAR // 2 + LINEAR // 64 + LINEAR // 64 // 256 * 4 + LINEAR // 64 % 256 * 4 / 256,
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, LINEAR + 4 * 4 * (64 + 64 + 16 + 16 + 128 + 128 + 64)),
        # A byte for 32 weights, whether the format is named or given as a block.
        ({"quant_method": "fp8", "weight_block_size": [1, 32], "scale_fmt": "ue8m0"}, LINEAR + LINEAR // 32),
        # ModelOpt's own file has it one level down.
        (
            {"quant_method": "modelopt", "producer": {"name": "x"}, "quantization": {"quant_algo": "NVFP4"}},
            LINEAR * 9 // 16 + 4 * LINEAR_MATRICES,
        ),
        # Blocks in words.
        (
            compressed({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": "32x32"}),
            LINEAR + 4 * 4 * (2 * 4 + 2 * 2 + 3 * 8),
        ),
        (
            {"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4", "group_size": 32}}},
            LINEAR * 17 // 32,
        ),
        (
            {
                "quant_method": "quark",
                "global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor"}},
            },
            LINEAR + 4 * LINEAR_MATRICES,
        ),
        ({"quant_method": "auto-round", "bits": 4, "group_size": 32, "data_type": "mx_fp"}, LINEAR * 17 // 32),
        (
            {"quant_method": "auto-round", "bits": 4, "group_size": 16, "data_type": "nv_fp"},
            LINEAR * 9 // 16 + 4 * LINEAR_MATRICES,
        ),
        # What is said is of activations or caches alone.
        ({"quant_method": "compressed-tensors", "config_groups": {}, "kv_cache_scheme": {"num_bits": 8}}, 2 * LINEAR),
        (compressed(None), 2 * LINEAR),
    ],
)
def test_tools_by_hand(quantisation: dict[str, Any], linear_bytes: float) -> None:
    assert stored(quantisation) == pytest.approx(linear_bytes + 2 * REST, abs=4)


@pytest.mark.parametrize(
    ("quantisation", "differs"),
    [
        ({"quant_method": "auto-round"}, {"extra_config": {"model.layers.0.mlp.up_proj": {}}}),
        ({"quant_method": "gptq"}, {"dynamic": {"+:.*up_proj": {}}}),
    ],
)
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_module_of_which_nothing_is_said_has_the_bits_of_the_rest(
    quantisation: dict[str, Any], differs: dict[str, Any], bits: int
) -> None:
    rest = {**quantisation, "bits": bits, "group_size": 64}
    assert stored({**rest, **differs}) == stored(rest)


@pytest.mark.parametrize(
    ("quantisation", "told"),
    [
        (compressed({"num_bits": 4}, sparsity_config={"format": "sparse-24-bitmask"}), "stored without their zeros"),
        (compressed({"num_bits": 4}, format="marlin-24"), "stored without their zeros"),
        ({"quant_method": "compressed-tensors", "config_groups": [1]}, "config_groups is not an object"),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "int3"}}}, "quantisation quark"),
        ({"quant_method": "auto-round", "bits": 4, "data_type": "wishful"}, "quantisation auto-round"),
        *(
            ({"quant_method": method}, "the quantisation names no bits")
            for method in ("gptq", "awq", "auto-round", "gptq_marlin")
        ),
        ({"quant_method": "auto-round", "extra_config": {"a": {"group_size": 32}}}, "the quantisation names no bits"),
        (
            {"quant_method": "modelopt", "quantized_layers": {"lm_head": {"quant_algo": "WISHFUL"}}},
            "modules with quantisation WISHFUL",
        ),
        (
            {"quant_method": "gptq", "bits": 4, "dynamic": {f"+:a{i}": {"group_size": i} for i in range(1, 99)}},
            "quantisation gptq",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {f"g{i}": {"weights": {"num_bits": 4}, "targets": [f"a{i}"]} for i in range(99)},
            },
            "16 formats or more",
        ),
    ],
)
def test_what_cannot_be_counted_is_left_open(quantisation: dict[str, Any], told: str) -> None:
    read = model({**SMALL, "quantization_config": quantisation})
    assert all(group.weight_bytes is None for group in read.parameter_groups)
    assert any(told in sentence for sentence in read.undetermined)


def test_gptq_treats_some_modules_in_their_own_way() -> None:
    """Attention is left alone, the way down has 8 bits: half a byte or one, and 20 or 24 bits for 64 weights."""
    dynamic = {"-:.*self_attn.*": {}, "+:.*down_proj.*": {"bits": 8}}
    quantisation = {"quant_method": "gptq", "bits": 4, "group_size": 64, "dynamic": dynamic}
    assert part_bytes(quantisation, ModelPart.ATTENTION) == 2 * 4 * ATTENTION
    matrix = 128 * 64
    down = matrix + matrix // 64 * 24 // 8 + 4 * 128
    others = 2 * (matrix // 2 + matrix // 64 * 20 // 8 + 4 * 64)
    assert part_bytes(quantisation, ModelPart.DENSE_MLP) == 4 * (down + others)


def test_auto_round_treats_some_modules_in_their_own_way() -> None:
    extra = {"model.layers.1.self_attn.q_proj": {"bits": 16}, "lm_head": {"bits": 8, "group_size": 32}}
    quantisation = {"quant_method": "auto-round", "bits": 4, "group_size": 64, "extra_config": extra}
    plain = part_bytes({"quant_method": "auto-round", "bits": 4, "group_size": 64}, ModelPart.ATTENTION)
    query_bytes = 64 * 64 // 2 + 64 * 20 // 8
    assert part_bytes(quantisation, ModelPart.ATTENTION) == plain - query_bytes + 2 * 64 * 64
    assert part_bytes(quantisation, ModelPart.LM_HEAD) == 64_000 + 64_000 // 32 * 24 // 8


def test_a_head_that_is_quantised_with_the_rest() -> None:
    assert part_bytes({"quant_method": "gptq", "bits": 4, "lm_head": True}, ModelPart.LM_HEAD) < 2 * 64_000 / 3
    assert part_bytes({"quant_method": "gptq", "bits": 4, "lm_head": False}, ModelPart.LM_HEAD) == 2 * 64_000


def test_formats_that_differ_in_their_groups_alone_are_kept_apart() -> None:
    """Integers of 4 bits in groups of 32 and of 16: half a byte and 2 bytes for each group."""
    groups = {
        "group_0": {"targets": ["re:.*self_attn.*"], "weights": {"num_bits": 4, "group_size": 32}},
        "group_1": {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 4, "group_size": 16}},
    }
    quantisation = {"quant_method": "compressed-tensors", "config_groups": groups}
    assert part_bytes(quantisation, ModelPart.ATTENTION) == 4 * (ATTENTION // 2 + ATTENTION // 32 * 2)
    assert part_bytes(quantisation, ModelPart.DENSE_MLP) == 4 * (DENSE // 2 + DENSE // 16 * 2)


def test_what_is_ignored_is_so_although_a_target_names_it() -> None:
    groups = {"group_0": {"targets": ["re:.*mlp.*"], "weights": {"num_bits": 8, "type": "float"}}}
    quantisation = {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": ["re:.*mlp.gate$"]}
    assert part_bytes(quantisation, ModelPart.ROUTER, SMALL_MOE) == 2 * 3 * 16 * 64
    assert part_bytes(quantisation, ModelPart.SHARED_EXPERTS, SMALL_MOE) == 3 * 3 * (32 * 64 + 4)


@pytest.mark.parametrize(
    "ignored",
    [
        ["model.layers.1.self_attn*"],
        ["model.layers.1.self_attn.q_proj", "layers.1.self_attn.k_proj", "model.layers.1.self_attn.[vo]_proj"],
        ["re:.*layers\\.1\\.self_attn.*"],
        ["model.language_model.layers.1.self_attn"],
    ],
)
def test_ignored_modules_of_one_layer(ignored: list[str]) -> None:
    quantisation = {"quant_method": "fp8", "ignore": ignored}
    whole = part_bytes({"quant_method": "fp8"}, ModelPart.ATTENTION)
    # A class of characters in a name is no wildcard, so that value and output stay quantised there.
    plain = 64 * 64 + 16 * 64 if len(ignored) == 3 else ATTENTION
    scales = 4 * (2 if len(ignored) == 3 else 4)
    assert part_bytes(quantisation, ModelPart.ATTENTION) == whole + plain - scales


@pytest.mark.parametrize(
    "ignored", [["self_attn"], ["re:.*self_attn.*"], ["model.layers.*.self_attn"], ["*.self_attn.*"]]
)
def test_ignored_modules_of_every_layer(ignored: list[str]) -> None:
    assert part_bytes({"quant_method": "fp8", "ignore": ignored}, ModelPart.ATTENTION) == 2 * 4 * ATTENTION
    assert part_bytes({"quant_method": "fp8", "ignore": ignored}, ModelPart.DENSE_MLP) == 4 * (DENSE + 3 * 4)


def test_words_in_an_expression() -> None:
    ignored = ["re:.*mlp\\.(gate|up|gate_up|down)_proj.*"]
    assert part_bytes({"quant_method": "fp8", "ignore": ignored}, ModelPart.DENSE_MLP) == 2 * 4 * DENSE


def test_an_expression_that_is_not_understood_is_told() -> None:
    read = model({**SMALL, "quantization_config": {"quant_method": "fp8", "ignore": ["re:(a*)*$", "re:(?<=x)y"]}})
    assert sum("which modules" in sentence for sentence in read.undetermined) == 2


def test_embedding_head_and_router_are_quantised_only_where_they_are_named() -> None:
    plain = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    assert part_bytes(plain, ModelPart.ROUTER, SMALL_MOE) == 2 * 3 * 16 * 64
    named = {
        "quant_method": "modelopt",
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {"lm_head": {"quant_algo": "FP8"}, "model.layers.2.mlp.down_proj": {"quant_algo": "NVFP4"}},
    }
    assert part_bytes(named, ModelPart.LM_HEAD) == 1000 * 64 + 4
    assert part_bytes(named, ModelPart.EMBEDDING) == 2 * 1000 * 64
    assert part_bytes(named, ModelPart.DENSE_MLP) == 2 * (4 * DENSE - 128 * 64) + 128 * 64 * 9 // 16 + 4


def test_mixed_precision_by_layer_names_experts_by_their_first() -> None:
    listed = {
        f"model.layers.{layer}.mlp.experts.{expert}.{name}": {"quant_algo": "NVFP4", "group_size": 16}
        for layer in (1, 2)
        for expert in range(16)
        for name in ("gate_proj", "up_proj", "down_proj")
    }
    quantisation = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": listed}
    matrix = 32 * 64
    quantised = 2 * 16 * 3 * (matrix * 9 // 16 + 4)
    assert part_bytes(quantisation, ModelPart.ROUTED_EXPERTS, SMALL_MOE) == quantised + 2 * 16 * 3 * matrix


def test_mxfp4_is_for_experts_alone() -> None:
    quantisation = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    assert part_bytes(quantisation, ModelPart.ROUTED_EXPERTS, SMALL_MOE) == 3 * 16 * 3 * 32 * 64 * 17 // 32
    assert part_bytes(quantisation, ModelPart.SHARED_EXPERTS, SMALL_MOE) == 2 * 3 * 3 * 32 * 64


def test_experts_in_fp4_beside_fp8() -> None:
    config = {**SMALL_MOE, "expert_dtype": "fp4"}
    quantisation = {"quant_method": "fp8"}
    assert part_bytes(quantisation, ModelPart.ROUTED_EXPERTS, config) == 3 * 16 * 3 * 32 * 64 * 17 // 32
    assert part_bytes(quantisation, ModelPart.SHARED_EXPERTS, config) == 3 * 3 * (32 * 64 + 4)


def test_a_quantisation_that_is_not_understood_leaves_bytes_out_and_says_so() -> None:
    read = model({**SMALL, "quantization_config": {"quant_method": "wishful"}})
    assert all(group.weight_bytes is None for group in read.parameter_groups)
    assert read.weight_bits_per_parameter is None
    assert read.total_parameters is not None
    assert any("quantisation wishful" in sentence for sentence in read.undetermined)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"quantization_config": "int4"}, "quantization_config 'int4' is not an object"),
        ({"quantization_config": {"quant_method": "mxfp4"}}, "for routed experts, and there are none"),
        ({"torch_dtype": "wombat"}, "dtype 'wombat' is not one that models run in"),
        ({"torch_dtype": "float8_e4m3fn"}, "dtype 'float8_e4m3fn' is not one that models run in"),
        (
            {"torch_dtype": "wombat", "quantization_config": {"quant_method": "fp8"}},
            "dtype 'wombat' is not one that models run in",
        ),
    ],
)
def test_what_does_not_say_how_weights_are_stored_leaves_bytes_out(changes: dict[str, Any], told: str) -> None:
    read = model({**SMALL, **changes})
    assert read.weight_bits_per_parameter is None
    assert all(group.weight_bytes is None for group in read.parameter_groups)
    assert read.total_parameters == model(SMALL).total_parameters
    assert any(told in sentence for sentence in read.undetermined)
    assert read.unused_keys == ()


def test_a_type_left_to_the_engine_is_the_usual_one() -> None:
    assert model({**SMALL, "torch_dtype": "auto"}).parameter_groups == model(SMALL).parameter_groups
    assert model({**SMALL, "torch_dtype": "torch.float32"}).activation_value_bytes == 4


def test_mean_bits_follow_from_bytes() -> None:
    read = model({**SMALL, "quantization_config": {"quant_method": "fp8"}})
    total_bytes = sum(group.weight_bytes or 0 for group in read.parameter_groups)
    assert read.weight_bits_per_parameter == 8 * total_bytes / (read.total_parameters or 1)
