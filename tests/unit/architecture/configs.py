"""Configs of the tests: keys with the sizes of published models, written for these tests, and how they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from estimator_service.architecture.facts import Reading
from estimator_service.architecture.model import model_of
from estimator_service.architecture.read_architecture import read_architecture
from linkbound.domain.catalog import Model, ModelPart
from linkbound.domain.errors import InvalidArgumentError, Violation

PUBLISHED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("published.json").read_text("utf-8"))
"""By model: config, parameters as counted by building the class of Transformers without weights, sums of a pass."""

RELEASED: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("released.json").read_text("utf-8"))
"""By model: sizes of its config, and billions of parameters as its card, paper or announcement rounds them.

Vision towers count where the makers count them. None of these is among PUBLISHED.
"""

SMALL: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
SMALL_MOE: dict[str, Any] = {
    **SMALL,
    "model_type": "deepseek_v32",
    "kv_lora_rank": 32,
    "q_lora_rank": 48,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "index_n_heads": 4,
    "index_head_dim": 128,
    "index_topk": 2048,
    "n_routed_experts": 16,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 1,
}


def read(config: dict[str, Any]) -> Reading:
    return read_architecture(json.dumps(config))


def model(config: dict[str, Any]) -> Model:
    return model_of(read(config), model_id="tested", display_name="Tested", sources=("a test",))


def parameters(config: dict[str, Any], part: ModelPart) -> int:
    return sum(group.parameter_count for group in model(config).parameter_groups if group.part is part)


def refusals_of(config: dict[str, Any]) -> list[Violation]:
    return refusals(json.dumps(config))


def refusals(text: str) -> list[Violation]:
    try:
        read_architecture(text)
    except InvalidArgumentError as error:
        return list(error.field_violations)
    raise AssertionError("the config is taken")
