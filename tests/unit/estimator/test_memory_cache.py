"""What requests keep in memory, and what a pass reads of it."""

import pytest
from attrs import evolve

from estimator_service.core.memory import ReadBytes, cache_bytes_of_rank, cache_bytes_read
from linkbound.domain.catalog import CacheGroup
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from tests.unit.estimator.memory_models import (
    HEADS_CACHE,
    LATENT_CACHE,
    STATE_CACHE,
    WINDOW_CACHE,
    parts_model,
    spread,
    tp,
)


def kept(
    *caches: CacheGroup, layout: ParallelLayout, tokens: int = 100, requests: int = 1, value_bytes: int = 2
) -> int:
    answer = cache_bytes_of_rank(parts_model(caches=caches), layout, tokens, requests, value_bytes)
    assert answer is not None
    return answer


@pytest.mark.parametrize(("size", "values"), [(1, 40), (2, 20), (4, 10), (8, 10), (16, 10)])
def test_heads_are_cut_until_there_is_one_a_rank(size: int, values: int) -> None:
    assert kept(HEADS_CACHE, layout=tp(size)) == 8 * 100 * values * 2


def test_latents_are_kept_whole_on_every_rank() -> None:
    assert kept(LATENT_CACHE, layout=tp(8)) == kept(LATENT_CACHE, layout=tp(1)) == 8 * 100 * 80


def test_an_fp8_cache_takes_a_byte_a_value_or_what_the_engine_stores() -> None:
    assert kept(HEADS_CACHE, layout=tp(1), value_bytes=1) == 8 * 100 * 40
    assert kept(LATENT_CACHE, layout=tp(1), value_bytes=1) == 8 * 100 * 50


def test_what_the_engine_stores_in_a_type_of_its_own_is_the_same_for_every_cache() -> None:
    """Indexer keys of sparse MLA: 132 bytes beside a BF16 cache and beside an FP8 one."""
    keys = evolve(LATENT_CACHE, values_per_token=128, fp8_bytes_per_token=132, fixed_bytes_per_token=132)
    for value_bytes in (1, 2, 4):
        assert kept(keys, layout=tp(8), value_bytes=value_bytes) == 8 * 100 * 132
    model = parts_model(caches=(evolve(keys, read_tokens=None),))
    assert cache_bytes_read(model, tp(8), 100, 1, 1) == ReadBytes(lower_bytes=8 * 100 * 132, upper_bytes=8 * 100 * 132)


def test_what_a_pass_reads_is_the_least_that_the_engine_can_store() -> None:
    """Keys kept in 2 bytes unless the engine is told to keep them in one: a floor of reading counts one."""
    keys = evolve(LATENT_CACHE, values_per_token=128, fp8_bytes_per_token=128, fixed_bytes_per_token=256)
    assert kept(keys, layout=tp(1), value_bytes=1) == 8 * 100 * 256
    model = parts_model(caches=(evolve(keys, read_tokens=None),))
    assert cache_bytes_read(model, tp(1), 100, 1, 1) == ReadBytes(lower_bytes=8 * 100 * 128, upper_bytes=8 * 100 * 128)


def test_a_window_bounds_what_is_kept() -> None:
    assert kept(WINDOW_CACHE, layout=tp(1), tokens=5) == 2 * 5 * 80
    assert kept(WINDOW_CACHE, layout=tp(2), tokens=5000) == 2 * 10 * 40


def test_a_state_does_not_grow_with_the_context() -> None:
    assert kept(STATE_CACHE, layout=tp(1), tokens=1) == kept(STATE_CACHE, layout=tp(1), tokens=10**6) == 6 * 800
    assert kept(STATE_CACHE, layout=tp(4)) == 6 * 200


def test_kinds_of_layers_add_up() -> None:
    alone = [kept(cache, layout=tp(2)) for cache in (HEADS_CACHE, LATENT_CACHE, WINDOW_CACHE, STATE_CACHE)]
    assert kept(HEADS_CACHE, LATENT_CACHE, WINDOW_CACHE, STATE_CACHE, layout=tp(2)) == sum(alone)


def test_requests_are_spread_over_attention_groups_and_layers_over_stages() -> None:
    assert kept(HEADS_CACHE, layout=tp(1), requests=5) == 5 * 8 * 100 * 80
    assert kept(HEADS_CACHE, layout=spread(1, 4, ExpertParallelism.ALL_GATHER), requests=5) == 2 * 8 * 100 * 80
    stages = ParallelLayout(tensor_parallel_size=1, pipeline_parallel_size=3)
    assert kept(HEADS_CACHE, layout=stages) == 3 * 100 * 80
    assert kept(WINDOW_CACHE, layout=stages) == 10 * 80


def test_draft_layers_keep_as_much_as_the_largest_layer_and_whole() -> None:
    model = parts_model(caches=(HEADS_CACHE, WINDOW_CACHE))
    without = cache_bytes_of_rank(model, tp(4), 100, 1, 2)
    assert without is not None
    for count in (1, 3):
        drafting = evolve(model, mtp_layer_count=count)
        assert cache_bytes_of_rank(drafting, tp(4), 100, 1, 2, draft_token_count=4) == without + count * 100 * 80


def test_draft_layers_are_on_the_last_stage() -> None:
    # 8 layers in three stages are 3, 3 and 2: with one draft layer the last stage keeps no more than the others.
    stages = ParallelLayout(tensor_parallel_size=1, pipeline_parallel_size=3)
    assert cache_bytes_of_rank(parts_model(), stages, 100, 1, 2, draft_token_count=1) == 3 * 100 * 80


def test_what_no_source_states_is_not_guessed() -> None:
    model = parts_model(caches=())
    assert cache_bytes_of_rank(model, tp(1), 100, 1, 2) is None
    assert cache_bytes_read(model, tp(1), 100, 1, 1) is None


def test_a_pass_reads_what_is_kept_or_what_attention_selects() -> None:
    heads, sparse = parts_model(caches=(HEADS_CACHE,)), parts_model(caches=(LATENT_CACHE,))
    assert cache_bytes_read(heads, tp(2), 100, 3, 1, cache_value_bytes=2) == ReadBytes(
        lower_bytes=3 * 8 * 100 * 40, upper_bytes=3 * 8 * 100 * 40
    )
    assert cache_bytes_read(sparse, tp(8), 100, 1, 5, cache_value_bytes=2) == ReadBytes(
        lower_bytes=8 * 16 * 80, upper_bytes=5 * 8 * 16 * 80
    )
    assert cache_bytes_read(sparse, tp(8), 10, 1, 1) == ReadBytes(lower_bytes=8 * 10 * 50, upper_bytes=8 * 10 * 50)
    window = evolve(WINDOW_CACHE, read_tokens=4)
    assert cache_bytes_read(parts_model(caches=(window,)), tp(1), 100, 1, 1, cache_value_bytes=2) == ReadBytes(
        lower_bytes=2 * 4 * 80, upper_bytes=2 * 4 * 80
    )
