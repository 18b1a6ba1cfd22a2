"""Weights that a rank holds, and those that a pass reads."""

import pytest
from attrs import evolve

from estimator_service.core.memory import ReadBytes, stored_at, weight_bytes_read, weights_of_rank
from estimator_service.core.memory.shares import fullest_stages, layers_on_stage
from linkbound.domain.catalog import ModelPart, ParameterGroup
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from tests.unit.estimator.memory_models import (
    DENSE,
    DRAFTS,
    EMBEDDING,
    EXPERTS,
    HEAD,
    KEYS,
    NORMS,
    QUERIES,
    group,
    parts_model,
    spread,
    tp,
)
from tests.unit.estimator.models import small_model

PAIR_OF_STAGES = ParallelLayout(tensor_parallel_size=1, pipeline_parallel_size=2)


def held(*parts: ParameterGroup, layout: ParallelLayout, drafts: int = 0) -> tuple[int, int]:
    weights = weights_of_rank(parts_model(parts), layout, draft_token_count=drafts)
    assert weights is not None
    assert weights.total_bytes == weights.sliced_bytes + weights.replicated_bytes
    return weights.sliced_bytes, weights.replicated_bytes


def read(*parts: ParameterGroup, layout: ParallelLayout, rows: int = 1) -> tuple[int, int]:
    answer = weight_bytes_read(parts_model(parts), layout, rows)
    assert answer is not None
    return answer.lower_bytes, answer.upper_bytes


def test_a_rank_alone_holds_everything_but_the_draft_layers() -> None:
    weights = weights_of_rank(parts_model(), tp(1))
    assert weights is not None
    assert weights.total_bytes == 640 + 320 + 800 + 160 + 9600 + 240 + 80


@pytest.mark.parametrize(
    ("size", "sliced", "replicated"),
    # Key-value heads: 4 of 40 bytes, at least one of them on every rank.
    [
        (2, 320 + 160 + 400 + 80 + 4800 + 120, 80),
        (4, 160 + 80 + 200 + 40 + 2400 + 60, 80),
        (8, 80 + 40 + 100 + 40 + 1200 + 30, 80),
    ],
)
def test_parts_are_sliced_and_what_is_replicated_stays_whole(size: int, sliced: int, replicated: int) -> None:
    parts = (EMBEDDING, HEAD, QUERIES, KEYS, EXPERTS, DENSE, NORMS)
    assert held(*parts, layout=tp(size)) == (sliced, replicated)


def test_a_single_key_value_head_is_replicated() -> None:
    model = evolve(parts_model((KEYS,)), key_value_head_count=1)
    weights = weights_of_rank(model, tp(4))
    assert weights is not None
    assert (weights.sliced_bytes, weights.replicated_bytes) == (0, 160)


@pytest.mark.parametrize(
    ("layout", "experts"),
    [
        (spread(4, 1, ExpertParallelism.UNSPECIFIED), 2400),
        (spread(4, 2, ExpertParallelism.UNSPECIFIED), 1200),
        # Whole experts of 1,200 bytes: 8 over 4 ranks, over 8, and one rank of three with three of them.
        (spread(4, 1, ExpertParallelism.ALL_REDUCE), 2400),
        (spread(2, 4, ExpertParallelism.ALL_TO_ALL), 1200),
        (spread(1, 3, ExpertParallelism.ALL_GATHER), 3600),
    ],
)
def test_experts_are_shared_by_all_attention_groups(layout: ParallelLayout, experts: int) -> None:
    assert held(EXPERTS, layout=layout) == (experts, 0)


def test_attention_is_repeated_in_every_attention_group() -> None:
    layout = spread(2, 4, ExpertParallelism.ALL_GATHER)
    assert held(QUERIES, DENSE, HEAD, layout=layout) == (400 + 120 + 160, 0)


def test_stages_take_their_layers_and_the_ends_what_belongs_there() -> None:
    # First: embedding and 4 of 8 layers; last: head and as many.
    assert held(EMBEDDING, HEAD, QUERIES, layout=PAIR_OF_STAGES) == (640 + 400, 0)
    assert held(HEAD, QUERIES, layout=PAIR_OF_STAGES) == (320 + 400, 0)


def test_a_table_that_is_embedding_and_head_stands_at_both_ends() -> None:
    big_draft = evolve(DRAFTS, weight_bytes=5000)
    assert held(EMBEDDING, big_draft, layout=PAIR_OF_STAGES, drafts=1) == (640, 5000)
    assert held(EMBEDDING, HEAD, big_draft, layout=PAIR_OF_STAGES, drafts=1) == (320, 5000)
    # As the head alone it is read on the last stage, and held on the first one too.
    first_is_longer = evolve(parts_model((HEAD, QUERIES)), layer_count=9)
    layout = ParallelLayout(tensor_parallel_size=1, pipeline_parallel_size=2)
    weights = weights_of_rank(first_is_longer, layout)
    read_at_most = weight_bytes_read(first_is_longer, layout, 1)
    assert weights is not None
    assert read_at_most is not None
    assert weights.total_bytes == 320 + 500
    assert read_at_most.upper_bytes == 320 + 400


def test_where_the_first_layers_are_dense_the_last_stages_hold_the_experts() -> None:
    # Two dense layers of 120 bytes, then 6 with experts of 1,600: 2 and 4 of these on stages of 4.
    assert held(DENSE, EXPERTS, layout=PAIR_OF_STAGES) == (4 * 1600, 0)
    assert held(evolve(DENSE, weight_bytes=24_000), EXPERTS, layout=PAIR_OF_STAGES) == (24_000 + 2 * 1600, 0)


def test_kinds_of_layers_that_alternate_are_spread_in_whole_layers() -> None:
    # 6 layers of 8: 3 on a stage of 4, and 3 on one of 3 where 8 are cut in three.
    mixers = group(ModelPart.LINEAR_MIXER, 9600, layers=6)
    assert held(mixers, layout=PAIR_OF_STAGES) == (4800, 0)
    assert held(mixers, layout=ParallelLayout(tensor_parallel_size=1, pipeline_parallel_size=3)) == (4800, 0)


def test_a_part_of_unknown_layers_is_in_all_of_them() -> None:
    assert held(group(ModelPart.OTHER, 800), layout=PAIR_OF_STAGES) == (400, 0)


@pytest.mark.parametrize(
    ("layers", "stages", "counts"),
    [
        (61, 2, [31, 30]),
        (61, 4, [15, 15, 16, 15]),
        (22, 4, [5, 6, 6, 5]),
        (32, 4, [8, 8, 8, 8]),
        (7, 3, [2, 3, 2]),
        (5, 3, [2, 2, 1]),
        (9, 1, [9]),
        (2, 4, [0, 1, 1, 0]),
        # The first, the second, the first and the last of the longer ones, the last: 10 and 11 layers of 103.
        (103, 10, [10, 10, 11, 11, 10]),
    ],
)
def test_left_over_layers_go_before_the_last_stage(layers: int, stages: int, counts: list[int]) -> None:
    fullest = fullest_stages(layers, stages)
    assert [stage.layer_count for stage in fullest] == counts
    assert [stage.is_first for stage in fullest] == [True, *([False] * (len(counts) - 1))]
    assert [stage.is_last for stage in fullest] == [*([False] * (len(counts) - 1)), True]
    assert (fullest[0].start, fullest[-1].end) == (0, layers)


def test_layers_of_a_kind_are_rounded_up() -> None:
    (first, _) = fullest_stages(8, 2)
    assert [layers_on_stage(count, 8, first) for count in (8, 7, 1)] == [4, 4, 1]


def test_draft_layers_are_loaded_whole_for_drafts_alone() -> None:
    assert held(HEAD, DRAFTS, layout=tp(4)) == (80, 0)
    assert held(HEAD, DRAFTS, layout=tp(4), drafts=4) == (80, 1000)


def test_bytes_that_no_source_states_come_from_the_mean_bits() -> None:
    unknown = group(ModelPart.DENSE_MLP, None, parameters=1000, layers=8)
    model = parts_model((unknown, NORMS))
    assert weights_of_rank(model, tp(2)) is None
    assert weight_bytes_read(model, tp(2), 1) is None
    weights = weights_of_rank(evolve(model, weight_bits_per_parameter=4.0), tp(2))
    assert weights is not None
    assert (weights.sliced_bytes, weights.replicated_bytes) == (250, 80)


def test_given_bits_replace_the_stored_bytes() -> None:
    weights = weights_of_rank(stored_at(parts_model((QUERIES,)), 4.0), tp(2))
    assert weights is not None
    assert weights.sliced_bytes == 200
    assert stored_at(parts_model(), None) == parts_model()


def test_a_model_of_which_only_totals_are_known_is_cut_evenly() -> None:
    model = evolve(small_model(), total_parameters=4001)
    layout = ParallelLayout(tensor_parallel_size=2, pipeline_parallel_size=2)
    weights = weights_of_rank(model, layout)
    assert weights is not None
    assert (weights.sliced_bytes, weights.replicated_bytes) == (1001, 0)
    assert weight_bytes_read(model, layout, 3) == ReadBytes(lower_bytes=250, upper_bytes=1001)
    assert weights_of_rank(small_model(), tp(1)) is None
    assert weight_bytes_read(evolve(small_model(), active_parameters=None), tp(1), 1) is None


def test_a_pass_reads_the_active_share_and_what_is_replicated_whole() -> None:
    # The one expert of a row is 1,200 of 9,600 bytes; of the embedding it reads one row of 64.
    assert read(QUERIES, NORMS, layout=tp(4)) == (280, 280)
    assert read(EXPERTS, layout=tp(4)) == (300, 300)
    assert read(EMBEDDING, layout=tp(1)) == (64, 64)
    assert read(DRAFTS, group(ModelPart.VISION_AUDIO, 500), HEAD, layout=tp(1)) == (320, 320)


def test_more_rows_may_use_other_experts_until_there_are_no_others() -> None:
    assert read(EXPERTS, layout=tp(4), rows=3) == (300, 900)
    assert read(EXPERTS, layout=tp(4), rows=1000) == (300, 2400)
    assert read(EMBEDDING, layout=tp(1), rows=3) == (64, 192)


def test_the_rank_of_the_expert_reads_it_whole() -> None:
    layout = spread(4, 1, ExpertParallelism.ALL_REDUCE)
    assert read(EXPERTS, layout=layout) == (1200, 1200)
    assert read(EXPERTS, layout=layout, rows=2) == (1200, 2400)
    assert read(EXPERTS, layout=layout, rows=50) == (1200, 2400)


def test_eight_experts_of_a_row_on_four_ranks_are_two_on_one_of_them() -> None:
    model = evolve(parts_model((evolve(EXPERTS, active_parameter_count=9600),)), active_expert_count=8)
    assert weight_bytes_read(model, spread(4, 1, ExpertParallelism.ALL_REDUCE), 1) == ReadBytes(
        lower_bytes=2400, upper_bytes=2400
    )


def test_experts_of_one_row_may_share_a_rank() -> None:
    model = evolve(parts_model((evolve(EXPERTS, active_parameter_count=2400),)), active_expert_count=2)
    assert weight_bytes_read(model, spread(4, 1, ExpertParallelism.ALL_REDUCE), 1) == ReadBytes(
        lower_bytes=1200, upper_bytes=2400
    )


def test_stages_read_their_own_layers() -> None:
    assert read(QUERIES, NORMS, layout=PAIR_OF_STAGES) == (440, 440)
