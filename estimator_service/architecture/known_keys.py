"""Keys that do not matter here: how a model is trained, sampled, rotated, scaled or called, not what it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from estimator_service.architecture.fields import Ledger, shown_key

_NAMING = """
    _name_or_path _commit_hash _note architectures auto_map custom_pipelines license model_version mode
    tokenizer_class
    tokenizer_type transformers_version transformers.js_config _attn_implementation _attn_implementation_internal
    attn_implementation _flash_attn_2_enabled ffn_act_fn attention_method normalization_function
    normalization_layer_name applied_layernorm layer_norm_type block_type use_rmsnorm use_gated_activation
    use_parallel_block use_parallel_embedding use_embedding_sharing order_of_interleaved_layers layer_switch
"""
_GENERATION = """
    add_cross_attention bad_words_ids begin_suppress_tokens chunk_size_feed_forward cross_attention_hidden_size
    diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size exponential_decay_length_penalty
    finetuning_task id2label is_composition is_decoder is_encoder_decoder label2id length_penalty max_length
    max_new_tokens min_length min_new_tokens no_repeat_ngram_size num_beam_groups num_beams num_labels
    num_logits_to_keep num_return_sequences output_attentions output_hidden_states output_router_logits output_scores
    padding_side pooler_hidden_act prefix problem_type pruned_heads remove_invalid_values repetition_penalty
    return_dict return_dict_in_generate seq_length suppress_tokens task_specific_params temperature tf_legacy_loss
    tie_encoder_decoder top_k top_p torchscript typical_p use_bfloat16 use_cache summary_activation
    summary_proj_to_labels summary_type summary_use_proj image_placeholder video_placeholder ignore_index
    downsample_ratio select_layer force_image_size use_thumbnail num_image_tokens projection_dim
    audio_soft_tokens_per_image
    image_seq_length image_grid_pinpoints process_image_mode vision_feature_layer vision_feature_select_strategy
    vision_soft_tokens_per_image use_unified_vision_chunk mm_tokens_per_image classifier_activation
"""
_POSITIONS = """
    alibi alibi_bias_max max_position_embeddings max_seq_len max_sequence_length model_max_length mrope_section
    n_ctx n_positions nope_layer_interval original_max_position_embeddings partial_rotary_factor
    position_embedding_type rotary rotary_base rotary_dim rotary_emb_base rotary_emb_fraction
    rotary_emb_interleaved rotary_emb_scale_base rotary_pct
    time_step_rank use_mrope use_rope use_rotary mla_use_nope indexer_rope_interleave interleaved_mrope context_length
"""
_SCALES = """
    attention_in_multiplier attention_multiplier attention_out_multiplier attention_value_scale attn_logit_softcapping
    attn_temperature_tuning clip_qkv embedding_multiplier final_logit_softcapping floor_scale gate_lower_bound
    key_multiplier lm_head_multiplier logit_scale logits_scaling mlp_multipliers mup_enabled mup_base_width
    query_pre_attn_scalar residual_multiplier scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx
    scale_attn_weights scale_depth scale_emb scale_embedding softmax_scale ssm_multipliers swiglu_alpha swiglu_limit
    attn_output_multiplier embedding_multiplier_scale output_multiplier_scale max_attn_value dim_model_base
    mla_scale_q_lora mla_scale_kv_lora mup_attn_multiplier mup_width_multiplier mup_use_scaling gegelu_limit
    gegelu_pad_to_256 norm_before_gate logits_soft_cap embeddings_scale_by_sqrt_dim
    activation_situ_beta activation_situ_linear_beta attn_scale full_attn_alpha_factor full_attn_beta_factor
    linear_attn_alpha_factor linear_attn_beta_factor mlp_alpha_factor mlp_beta_factor postnorm shared_moe_mode
"""
_ROUTING = """
    aux_loss_alpha aux_loss_coeff ep_size expert_capacity input_jitter_noise moe_aux_loss_coeff moe_renormalize
    moe_router_activation_func moe_router_dtype moe_router_enable_expert_bias moe_router_scaling_factor
    moe_shared_expert_overlap moe_z_loss_coefficient n_group norm_topk_prob normalize_router num_expert_group
    num_hash_layers router_aux_loss_coef router_jitter_noise router_z_loss_coef router_scaling_factor
    routed_scaling_factor routing_type score_func score_function scoring_func seq_aux topk_group topk_method
    use_grouped_topk use_moe_router_bias use_routing_bias zero_expert_type route_scale z_loss_coefficient
    enable_moe_fp32_combine moe_norm_min capacity_factor moe_drop_tokens moe_random_routing_dropped_token
    moe_use_aux_free moe_eval_capacity_factor moe_train_capacity_factor moe_min_capacity moe_token_dropping route_norm
    load_balance_coeff num_limited_groups num_expert_groups use_expert_bias
"""
_NUMERICS = """
    apply_residual_connection_post_layernorm fp32_layer_norm gradient_checkpointing init_device pretraining_tp
    pretrain_tp reorder_and_upcast_attn rescale_prenorm_residual residual_in_fp32 slow_but_exact use_flash_attention
    use_flash_attn use_gemma_norm use_mamba_kernels use_mem_eff_path use_sdpa use_kv_cache use_cache_quantization
    mamba_chunk_size mamba_hidden_act chunk_size time_step_scale output_gate_type index_share_for_mtp_iteration
    hc_sinkhorn_iters language_model_only mtp_use_dedicated_embeddings use_bidirectional_attention attn_type
    use_parallel_residual do_layer_norm_before rmsnorm use_mixed_mlp_moe initial_context_length layerdrop
    full_attn_mod interpolate_factor attn_rotary_emb pad_sequence_to_multiple_of_64 hidden_mamba_act rescale_every
    quantization_status onnx_safe use_dynamic_ntk use_logn_attn
"""
_EXACT = frozenset(f"{_NAMING} {_GENERATION} {_POSITIONS} {_SCALES} {_ROUTING} {_NUMERICS}".split())
_PATTERN = re.compile(
    r".*_token_(id|ids|index)|.*dropout.*|.*pdrop|rope_.*|.*_rope_.*|.*_(eps|epsilon|std|initializer_range"
    r"|initializer_factor|init_floor|init_scale|loss|loss_coef|loss_weight|theta|softcapping|softcap)|initializer_.*|init_.*"
    r"|ssm_.*_multiplier|time_step_(min|max|floor|limit)|generation_.*|(mamba_|linear_)?dt_(min|max)|bo[ai]_token_.*"
)
_LONGEST_NAME = 80


def unused_keys(values: Mapping[str, Any], ledger: Ledger, path: str = "") -> Iterator[str]:
    """Paths of the keys that nothing used and that could matter; of an object that nothing used, its own path alone.

    What is off, empty or null adds nothing to a model, whatever it is.
    """
    for name, value in values.items():
        own_path = f"{path}{name}"
        if own_path in ledger.closed:
            continue
        if own_path in ledger.used:
            if isinstance(value, Mapping):
                yield from unused_keys(value, ledger, f"{own_path}.")
        elif value and not does_not_matter(name):
            yield shown_key(own_path)


def does_not_matter(name: str) -> bool:
    """Whether a key says nothing about sizes, layers or storage, whatever its value."""
    return name in _EXACT or (len(name) <= _LONGEST_NAME and _PATTERN.fullmatch(name) is not None)
