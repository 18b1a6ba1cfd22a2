"""The table of families: one row for what the configs of one or more `model_type`s leave unsaid.

Source of every row: the configuration and model classes of Transformers 5.24 with that `model_type`, as facts; what the
engine makes of them: the model files of vLLM 0.33. A config that says something itself always wins.
"""

from __future__ import annotations

from estimator_service.architecture.family import UNKNOWN, Family
from estimator_service.architecture.mixers import OutputGate, QueryKeyNorm

_HEAD, _LAYER = QueryKeyNorm.HEAD, QueryKeyNorm.LAYER

_LATENT_MOE = {"first_k_dense_replace": 0, "moe_layer_freq": 1}

_GLM5_NEXT = {
    "num_attention_heads": 64,
    "linear_num_heads": 64,
    "linear_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "linear_gate_rank": 128,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 256,
    "qk_rope_head_dim": 0,
    "v_head_dim": 256,
    "index_n_heads": 32,
    "index_head_dim": 128,
    "index_topk": 2048,
    "index_kpool_size": 16,
    "first_k_dense_replace": 3,
    "full_attention_interval": 4,
}

_FAMILIES = (
    # Llama and what is built like it: RMS norms, gated, no biases unless a key says so.
    Family(model_types=("llama", "mistral", "mixtral", "ministral", "ministral3", "mistral3", "aquila", "yi", "cwm")),
    Family(model_types=("llama4", "llama4_text"), query_key_norm_follows_key=False, defaults={"n_shared_experts": 1}),
    Family(
        model_types=("internlm2", "baichuan", "smollm3", "granite", "olmo_dense", "helium", "youtu", "xverse", "orion")
    ),
    Family(model_types=("internlm3", "seed_oss"), output_bias=False),
    Family(model_types=("internlm",), projection_bias=True, output_bias=True),
    Family(model_types=("nemotron-nas", "deci")),
    Family(model_types=("arcee",), gated=False),
    Family(model_types=("phi3", "phi4", "solar_open", "hyperclovax")),
    Family(model_types=("phimoe",), norm_values=2, defaults={"attention_bias": False}),
    Family(model_types=("stablelm", "stablelm_epoch"), norm_values=2, output_bias=False),
    Family(model_types=("minicpm", "minicpm3", "apertus_base"), tied=True),
    Family(
        model_types=("phi3small",),
        gated=True,
        norm_values=2,
        tied=True,
        projection_bias=True,
        output_bias=True,
        feed_forward_bias=True,
    ),
    Family(model_types=("jetmoe",), unread_mixers="attention of this model_type has experts of its own"),
    Family(model_types=("openelm",), query_key_norm=_HEAD, query_key_norm_follows_key=False, gated=True, tied=True),
    Family(model_types=("apertus",), gated=False, query_key_norm=_HEAD),
    Family(model_types=("nanochat",), gated=False, norm_values=0),
    Family(model_types=("exaone4", "exaone4_5_text"), query_key_norm=_HEAD),
    # Qwen
    Family(model_types=("qwen",), projection_bias=True, output_bias=False, defaults={"qwen_halves_inner_width": True}),
    Family(model_types=("qwen2", "mimo", "qwen2_vl_text", "qwen2_5_vl_text"), projection_bias=True, output_bias=False),
    Family(model_types=("qwen2_vl", "qwen2_5_vl"), projection_bias=True, output_bias=False),
    Family(model_types=("qwen2_moe",), projection_bias=True, output_bias=False, shared_gate=True),
    Family(model_types=("qwen3", "qwen3_moe", "hy_v3", "mellum", "exaone_moe"), query_key_norm=_HEAD),
    Family(
        model_types=("qwen3_vl", "qwen3_vl_text", "qwen3_vl_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text"),
        query_key_norm=_HEAD,
    ),
    Family(model_types=("qwen3_next",), query_key_norm=_HEAD, output_gate=OutputGate.VALUE, shared_gate=True),
    Family(
        model_types=("qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"),
        query_key_norm=_HEAD,
        output_gate=OutputGate.VALUE,
        shared_gate=True,
        tower_counts=False,
    ),
    # DeepSeek, Kimi and GLM
    Family(model_types=("deepseek",), defaults=_LATENT_MOE),
    Family(model_types=("deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25"), defaults=_LATENT_MOE),
    Family(model_types=("deepseek_v32", "glm_moe_dsa"), defaults=_LATENT_MOE),
    Family(model_types=("deepseek_v4",), sinks=True),
    Family(model_types=("kimi_linear", "kimi_k3"), defaults=_LATENT_MOE),
    Family(
        model_types=("bailing_moe", "bailing_moe_v2", "bailing_moe_linear", "bailing_hybrid", "bailing_moe_v2_5"),
        output_bias=False,
    ),
    Family(model_types=("step3_vl", "step3_text"), shared_apart=True),
    Family(model_types=("afmoe",), query_key_norm=_HEAD, output_gate=OutputGate.VALUE, layer_norms=4, router_bias=True),
    Family(model_types=("arctic",), defaults={"moe_layer_frequency": 2, "use_residual": False}),
    Family(model_types=("dots1",), query_key_norm=_HEAD, defaults={"first_k_dense_replace": 0}),
    Family(model_types=("longcat_flash",), doubled_layers=True, layer_norms=4),
    Family(model_types=("glm", "chatglm"), output_bias=False),
    Family(model_types=("glm4", "glm4v_text"), layer_norms=4, output_bias=False),
    Family(model_types=("glm4_moe", "glm4v_moe_text"), output_bias=False),
    Family(model_types=("glm4_moe_lite",), defaults=_LATENT_MOE),
    Family(model_types=("glm5_next", "glm5_next_text"), defaults=_GLM5_NEXT),
    Family(model_types=("mimo_v2_flash",), sinks=True),
    Family(
        model_types=("step3p5", "step3p7", "step3p7_text"),
        query_key_norm=_HEAD,
        output_gate=OutputGate.HEAD,
        embedding_rows=128_815,
        dense_draft=True,
    ),
    # MiniMax
    Family(model_types=("minimax", "minimax_text_01", "minimax_m1")),
    Family(model_types=("minimax_m2",), query_key_norm=_LAYER),
    Family(model_types=("minimax_m3", "minimax_m3_vl", "minimax_m3_vl_text"), query_key_norm=_HEAD),
    # Google
    Family(model_types=("gemma",), tied=True, gated=True, defaults={"head_dim": 256}),
    Family(model_types=("gemma2",), tied=True, gated=True, layer_norms=4, window_pattern=2, defaults={"head_dim": 256}),
    Family(
        model_types=("gemma3", "gemma3_text"),
        tied=True,
        gated=True,
        layer_norms=4,
        window_pattern=6,
        query_key_norm=_HEAD,
        defaults={
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "vocab_size": 262_208,
            "sliding_window": 4096,
        },
    ),
    Family(
        model_types=("gemma3n", "gemma3n_text"),
        tied=True,
        gated=True,
        layer_norms=4,
        query_key_norm=_HEAD,
        unused_projections=True,
    ),
    Family(
        model_types=("gemma4", "gemma4_text"),
        tied=True,
        gated=True,
        layer_norms=4,
        query_key_norm=_HEAD,
        separate_feed_forwards=True,
    ),
    # Cohere, AI21, IBM, NVIDIA, Technology Innovation Institute, Allen Institute and others. Cohere's block is parallel
    # and yet summed twice: in vLLM's commandr.py (commits 1f7c5555, 00db0119) and cohere2_moe.py (055e47c2) o_proj and
    # down_proj are row-parallel layers that each reduce. Falcon's do not: falcon.py (00620f91) reduces their sum once.
    Family(model_types=("cohere",), tied=True, layer_norms=1),
    Family(
        model_types=("cohere2", "cohere2_text", "cohere2_vision", "cohere2_moe"),
        tied=True,
        layer_norms=1,
        window_pattern=4,
    ),
    Family(model_types=("jamba",), inner_norm=True),
    Family(model_types=("granitemoe", "granitemoeshared", "granitemoehybrid"), tied=True, inner_norm=True),
    Family(model_types=("bamba",), inner_norm=True),
    Family(model_types=("falcon_h1",), parallel_mixers=True),
    Family(model_types=("zamba2",), tied=True, layer_norms=1, inner_norm=True, bare_state_layers=True),
    Family(model_types=("nemotron",), gated=False, norm_values=2),
    Family(model_types=("nemotron_h",), gated=False, inner_norm=True, layer_norms=1),
    Family(
        model_types=("falcon", "RefinedWeb", "RefinedWebModel"),
        gated=False,
        norm_values=2,
        tied=True,
        merged_blocks=True,
        defaults={"bias": False, "parallel_attn": True, "multi_query": True},
    ),
    Family(model_types=("olmo",), norm_values=0),
    Family(model_types=("olmo2", "olmo3", "olmoe"), query_key_norm=_LAYER),
    Family(model_types=("flex_olmo",), query_key_norm=_LAYER),
    Family(model_types=("dbrx",), gated=True, defaults={"ffn_hidden_size": 3584}),
    Family(model_types=("grok-1", "grok"), gated=True, layer_norms=4, tied=True),
    Family(
        model_types=("gpt_oss",), projection_bias=True, output_bias=True, expert_bias=True, router_bias=True, sinks=True
    ),
    Family(model_types=("ernie4_5", "ernie4_5_moe"), tied=True),
    Family(model_types=("hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan"), query_key_norm=_HEAD, tied=True),
    Family(model_types=("lfm2", "lfm2_moe"), query_key_norm=_HEAD, tied=True),
    Family(model_types=("starcoder2",), gated=False, norm_values=2, tied=True, defaults={"use_bias": True}),
    Family(model_types=("mamba", "mamba2", "falcon_mamba"), layer_norms=1, tied=True, inner_norm=True),
    # The generation of GPT-2: layer norms, two matrices in a feed-forward block.
    Family(
        model_types=("gpt2", "gpt_bigcode"),
        gated=False,
        norm_values=2,
        tied=True,
        projection_bias=True,
        output_bias=True,
        feed_forward_bias=True,
        position_offset=0,
        defaults={"n_positions": 1024},
    ),
    Family(
        model_types=("gpt_neox",),
        gated=False,
        norm_values=2,
        projection_bias=True,
        output_bias=True,
        feed_forward_bias=True,
    ),
    Family(
        model_types=("gptj",),
        gated=False,
        norm_values=2,
        layer_norms=1,
        feed_forward_bias=True,
        head_bias=True,
    ),
    Family(
        model_types=("gpt_neo",),
        gated=False,
        norm_values=2,
        tied=True,
        output_bias=True,
        feed_forward_bias=True,
        position_offset=0,
    ),
    Family(
        model_types=("opt",),
        gated=False,
        norm_values=2,
        tied=True,
        projection_bias=True,
        output_bias=True,
        feed_forward_bias=True,
        position_offset=2,
        defaults={"enable_bias": True},
    ),
    Family(
        model_types=("bloom",),
        gated=False,
        norm_values=2,
        tied=True,
        projection_bias=True,
        output_bias=True,
        feed_forward_bias=True,
        embedding_norm=True,
    ),
    Family(model_types=("mpt",), gated=False, norm_values=1, tied=True),
    # Encoder-decoders: of these, what is known is the sums of a pass through the decoder.
    Family(
        model_types=("t5", "longt5"),
        tied=True,
        layer_norms=3,
        defaults={"is_encoder_decoder": True, "feed_forward_proj": "relu"},
    ),
    Family(
        model_types=("mt5", "umt5"),
        layer_norms=3,
        defaults={"is_encoder_decoder": True, "feed_forward_proj": "gated-gelu"},
    ),
    Family(
        model_types=("bart", "mbart", "marian", "pegasus", "blenderbot", "m2m_100", "whisper"),
        gated=False,
        norm_values=2,
        layer_norms=3,
        tied=True,
        projection_bias=True,
        output_bias=True,
        feed_forward_bias=True,
        defaults={"is_encoder_decoder": True},
    ),
    Family(
        model_types=("phi",),
        gated=False,
        norm_values=2,
        layer_norms=1,
        projection_bias=True,
        output_bias=True,
        feed_forward_bias=True,
        head_bias=True,
        query_key_norm_bias=True,
    ),
    Family(
        model_types=("persimmon",),
        gated=False,
        norm_values=2,
        projection_bias=True,
        output_bias=True,
        feed_forward_bias=True,
        query_key_norm_bias=True,
    ),
)

_BY_TYPE = {model_type: family for family in _FAMILIES for model_type in family.model_types}


def family_of(*model_types: str | None) -> Family:
    """The family of the first `model_types` that has one; UNKNOWN where none has."""
    for model_type in model_types:
        if model_type in _BY_TYPE:
            return _BY_TYPE[model_type]
    return UNKNOWN
