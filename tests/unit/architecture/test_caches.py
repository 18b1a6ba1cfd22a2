"""What layers keep for a request, counted by hand."""

from linkbound.domain.catalog import CacheGroup
from tests.unit.architecture.configs import PUBLISHED, SMALL, SMALL_MOE, model


def caches(config: dict[str, object]) -> list[CacheGroup]:
    return list(model(config).cache_groups)


def test_key_value_heads() -> None:
    (group,) = caches(SMALL)
    assert (group.layer_count, group.values_per_token, group.split_head_count) == (4, 2 * 2 * 8, 2)
    assert (group.window_tokens, group.read_tokens, group.fp8_bytes_per_token) == (None, None, 32)


def test_windows_bound_what_is_kept() -> None:
    kinds = ["sliding_attention", "full_attention"] * 2
    whole, window = sorted(
        caches({**SMALL, "layer_types": kinds, "sliding_window": 512}), key=lambda g: g.window_tokens or 0
    )
    assert (whole.window_tokens, window.window_tokens) == (None, 512)
    assert (whole.layer_count, window.layer_count) == (2, 2)


def test_sparse_latent_attention_in_fp8_has_scales_and_whole_positions() -> None:
    """512 values of a byte, 4 scales of 4 bytes, 64 positions of 2 bytes: 656; keys of 128 and a scale: 132."""
    config = {**SMALL_MOE, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    latent, keys = caches(config)
    assert (latent.values_per_token, latent.fp8_bytes_per_token, latent.read_tokens) == (576, 656, 2048)
    assert (latent.split_head_count, keys.split_head_count) == (0, 0)
    assert (keys.values_per_token, keys.fp8_bytes_per_token, keys.read_tokens) == (128, 132, None)
    # vLLM keeps the keys in FP8 beside a cache of any type.
    assert (latent.fixed_bytes_per_token, keys.fixed_bytes_per_token) == (0, 132)


def test_keys_of_blocks_are_kept_in_two_bytes() -> None:
    """MiniMax-M3 in vLLM: one key of 128 values in BF16 beside a cache of any type; FP8 without scales if told so."""
    sparse = {"sparse_num_index_heads": 4, "sparse_index_dim": 128, "sparse_attention_freq": [0, 1, 1, 1]}
    heads, keys = caches({**SMALL, "model_type": "minimax_m3", "sparse_attention_config": sparse})
    assert (heads.layer_count, keys.layer_count) == (4, 3)
    assert (keys.values_per_token, keys.fixed_bytes_per_token, keys.fp8_bytes_per_token) == (128, 256, 128)


def test_dense_latent_attention_in_fp8_is_a_byte_for_a_value() -> None:
    config = {key: value for key, value in SMALL_MOE.items() if not key.startswith("index_")}
    (latent,) = caches({**config, "model_type": "deepseek_v3"})
    assert (latent.values_per_token, latent.fp8_bytes_per_token, latent.read_tokens) == (40, 40, None)


def test_layers_that_share_an_indexer_keep_no_keys_of_their_own() -> None:
    config = {**SMALL_MOE, "indexer_types": ["full", "shared", "shared", "full"]}
    latent, keys = caches(config)
    assert (latent.layer_count, keys.layer_count) == (4, 2)


def test_the_last_layers_may_reuse_what_earlier_ones_keep() -> None:
    (group,) = caches({**SMALL, "num_kv_shared_layers": 3})
    assert group.layer_count == 1


def test_a_state_space_keeps_a_state_and_the_inputs_of_its_convolution() -> None:
    """Mamba-2 2.7B: 80 heads of 64 with 128 states, and 5120 + 2 x 128 channels over 3 tokens, all in 2 bytes."""
    (group,) = caches(PUBLISHED["mamba-2-2.7b"]["config"])
    assert group.state_bytes_per_request == 2 * (80 * 64 * 128 + (5120 + 256) * 3)
    assert (group.layer_count, group.values_per_token) == (64, 0)


def test_linear_attention_keeps_a_matrix_for_each_head() -> None:
    """Qwen3-Next: 32 value heads of 128 x 128 in 4 bytes, 8192 channels over 3 tokens in 2; 12 layers are full."""
    states = {group.state_bytes_per_request: group for group in caches(PUBLISHED["qwen3-next-80b-a3b"]["config"])}
    assert states[32 * 128 * 128 * 4 + 8192 * 3 * 2].layer_count == 36
    assert states[0].layer_count == 12
    assert states[0].values_per_token == 2 * 2 * 256


def test_compressed_attention_keeps_a_window_and_pooled_keys() -> None:
    """One key for all heads: 448 bytes, 64 positions of 2 bytes, 8 bytes of scales; 4 or 128 tokens share one."""
    config = {
        "model_type": "deepseek_v4",
        "hidden_size": 256,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 512,
        "qk_rope_head_dim": 64,
        "q_lora_rank": 64,
        "o_lora_rank": 32,
        "o_groups": 2,
        "sliding_window": 128,
        "compress_ratios": [0, 4, 128],
        "vocab_size": 1000,
        "hidden_act": "silu",
        "index_n_heads": 4,
        "index_head_dim": 128,
        "index_topk": 512,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "n_shared_experts": 1,
        "tie_word_embeddings": False,
    }
    window, by_four, keys, by_many = caches(config)
    assert (window.layer_count, window.window_tokens, window.fp8_bytes_per_token) == (3, 128, 584)
    assert (by_four.values_per_token, by_four.fp8_bytes_per_token, by_four.read_tokens) == (128, 146, 2048)
    assert (keys.values_per_token, keys.fp8_bytes_per_token, keys.fixed_bytes_per_token) == (32, 33, 33)
    assert {window.fixed_bytes_per_token, by_four.fixed_bytes_per_token, by_many.fixed_bytes_per_token} == {0}
    assert (by_many.values_per_token, by_many.read_tokens) == (4, None)
