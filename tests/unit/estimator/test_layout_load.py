"""What layouts send, counted by hand from the table of collectives."""

from typing import Any

import pytest

from estimator_service.core.layouts.load import (
    PassTokens,
    RowCounts,
    all_reduce_count,
    busiest_kind,
    fabric_load,
    logits_bytes,
    prefill_rows,
    stage_bytes,
    traffic_rows,
)
from estimator_service.core.layouts.rows import stage_kinds
from linkbound.domain.catalog import Model
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.layout import ExpertParallelism, ParallelLayout, RankGroup
from linkbound.domain.workload import PrefillWorkload
from tests.unit.estimator.layout_models import ROW, cut, decoder, mixture

TOKENS = 1000
ONE_PASS = RowCounts(group_tokens=TOKENS, any_tokens=TOKENS, logits_rows=0)


def ring(rank_count: int, rounds: int = 2) -> float:
    return rounds * (rank_count - 1) / rank_count


def sent(model: Model, layout: ParallelLayout, counts: RowCounts = ONE_PASS) -> tuple[float, float]:
    """Of the busiest stage, and of all stages."""
    load = fabric_load(stage_kinds(model, layout), counts).outer
    return load.busiest_bytes, load.sequential_bytes


def test_a_tensor_parallel_group_sends_its_inventory() -> None:
    assert sent(decoder(7), cut(4)) == pytest.approx((15 * ring(4) * TOKENS * ROW,) * 2)


def test_two_stages_send_half_each_and_a_boundary() -> None:
    # 8 layers: embedding and 8 sums before the boundary, 8 sums behind it.
    boundary, gathered = 2 * TOKENS * ROW / 4, 2 * ring(4, 1) * TOKENS * ROW
    first = 9 * ring(4) * TOKENS * ROW + boundary
    second = 8 * ring(4) * TOKENS * ROW + gathered
    assert sent(decoder(8), cut(4, 2)) == pytest.approx((max(first, second), first + second))


def test_single_ranks_in_a_pipeline_send_two_rows_a_boundary() -> None:
    assert sent(decoder(8), cut(1, 8)) == pytest.approx((2 * TOKENS * ROW, 7 * 2 * TOKENS * ROW))


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_sequence_parallelism_sends_the_same(size: int, stages: int) -> None:
    plain, swapped = cut(size, stages), cut(size, stages, sequence_parallel=True)
    assert sent(decoder(8), swapped) == pytest.approx(sent(decoder(8), plain))
    assert all_reduce_count(stage_kinds(decoder(8), cut(8, sequence_parallel=True))) == 0


def test_tp8_sends_seven_sixths_of_tp4_in_every_stage() -> None:
    for_8, for_4 = (stage_kinds(decoder(8), cut(size)) for size in (8, 4))
    assert fabric_load(for_8, ONE_PASS).outer.busiest_bytes * 6 == fabric_load(for_4, ONE_PASS).outer.busiest_bytes * 7


def test_whole_experts_in_one_group_keep_the_one_all_reduce() -> None:
    experts = cut(8, expert_parallelism=ExpertParallelism.ALL_REDUCE)
    assert sent(mixture(), experts) == sent(mixture(), cut(8))


def test_experts_by_all_gather() -> None:
    # Six MoE blocks: tokens and 32 router logits of 2 bytes out, results back; no other rank sums anything.
    layout = cut(1, 1, 8, expert_parallelism=ExpertParallelism.ALL_GATHER)
    assert sent(mixture(), layout)[0] == pytest.approx(6 * ring(8, 1) * TOKENS * (ROW + 64 + ROW))


def test_experts_by_all_to_all() -> None:
    # Each rank has an eighth of the tokens and sends each to four experts, there and back.
    counts = RowCounts(group_tokens=TOKENS / 8, any_tokens=TOKENS, logits_rows=0)
    layout = cut(1, 1, 8, expert_parallelism=ExpertParallelism.ALL_TO_ALL)
    assert sent(mixture(), layout, counts)[0] == pytest.approx(6 * 2 * (TOKENS / 8) * 4 * ROW * 7 / 8)


def test_a_token_whose_experts_share_a_rank_is_sent_there_once() -> None:
    layout = cut(1, 1, 8, expert_parallelism=ExpertParallelism.ALL_TO_ALL)
    load = fabric_load(stage_kinds(mixture(), layout), ONE_PASS)
    assert load.outer.pipelined_bytes == pytest.approx(load.outer.sequential_bytes / 4)
    gathered = cut(1, 1, 8, expert_parallelism=ExpertParallelism.ALL_GATHER)
    whole = fabric_load(stage_kinds(mixture(), gathered), ONE_PASS)
    assert whole.outer.pipelined_bytes == whole.outer.sequential_bytes


def test_attention_groups_of_several_ranks_sum_attention_and_gather_what_they_dispatched() -> None:
    layout = cut(2, 1, 4, expert_parallelism=ExpertParallelism.ALL_GATHER)
    counts = RowCounts(group_tokens=TOKENS / 4, any_tokens=TOKENS, logits_rows=0)
    sums = (1 + 8 + 2) * ring(2) * (TOKENS / 4) * ROW
    exchange = 6 * ring(8, 1) * TOKENS * (ROW + 64 + ROW)
    gathered = 6 * ring(2, 1) * (TOKENS / 4) * ROW
    assert sent(mixture(), layout, counts)[0] == pytest.approx(sums + exchange + gathered)


def test_a_node_of_four_ranks_sends_a_ring_once() -> None:
    load = fabric_load(stage_kinds(decoder(7), cut(8, ranks_per_node=4)), ONE_PASS)
    alone = sent(decoder(7), cut(8))[0]
    assert load.outer.busiest_bytes == load.inner.busiest_bytes == alone
    within = fabric_load(stage_kinds(decoder(7), cut(8, ranks_per_node=8)), ONE_PASS)
    assert (within.outer.busiest_bytes, within.inner.busiest_bytes) == (0, alone)


def test_tensor_parallel_within_nodes_and_stages_across_them() -> None:
    load = fabric_load(stage_kinds(decoder(8), cut(4, 2, ranks_per_node=4)), ONE_PASS)
    # The four ranks of the first node send their shares of both streams over the link that they have in common.
    assert load.outer.busiest_bytes == load.outer.sequential_bytes == 2 * TOKENS * ROW
    assert load.inner.sequential_bytes == pytest.approx((17 * ring(4) + 2 * ring(4, 1)) * TOKENS * ROW)


@pytest.mark.parametrize(
    "layout",
    [cut(8), cut(4, 2), cut(1, 4), cut(2, 2, 2), cut(8, ranks_per_node=2), cut(2, 4, ranks_per_node=8)],
    ids=lambda layout: str((layout.tensor_parallel_size, layout.pipeline_parallel_size, layout.ranks_per_node)),
)
def test_the_rows_of_an_answer_add_up(layout: ParallelLayout) -> None:
    kinds, counts = stage_kinds(mixture(), layout), RowCounts(group_tokens=TOKENS, any_tokens=TOKENS, logits_rows=7)
    load, rows = fabric_load(kinds, counts), traffic_rows(busiest_kind(kinds, counts).rows, counts)
    assert sum(row.sent_bytes_per_rank for row in rows) == pytest.approx(load.outer.busiest_bytes, abs=len(rows))
    assert all(row.sent_bytes_per_rank or row.inner_sent_bytes_per_rank for row in rows)


def test_the_rows_of_a_middle_stage_say_who_sends_what_to_whom() -> None:
    kinds = stage_kinds(decoder(8), cut(2, 4))
    middle = next(kind for kind in kinds if kind.stage_count == 2)
    rows = [(row.collective.kind, row.collective.rank_group, row.count) for row in middle.rows]
    assert rows == [
        (CollectiveKind.ALL_GATHER, RankGroup.TENSOR, 2),
        (CollectiveKind.ALL_REDUCE, RankGroup.TENSOR, 2),
        (CollectiveKind.ALL_REDUCE, RankGroup.TENSOR, 2),
        (CollectiveKind.SEND_RECEIVE, RankGroup.PIPELINE, 2),
    ]


def test_one_rank_sends_nothing() -> None:
    kinds = stage_kinds(decoder(8), cut(1))
    load = fabric_load(kinds, RowCounts(group_tokens=TOKENS, any_tokens=TOKENS, logits_rows=TOKENS))
    assert load.outer.sequential_bytes == load.inner.sequential_bytes == 0
    assert traffic_rows(kinds[0].rows, ONE_PASS) == ()


def test_all_reduces_are_those_that_run() -> None:
    assert all_reduce_count(stage_kinds(decoder(8), cut(4, 2))) == 17
    assert all_reduce_count(stage_kinds(decoder(8), cut(1, 8))) == 0
    exchange = cut(1, 1, 8, expert_parallelism=ExpertParallelism.ALL_GATHER)
    assert all_reduce_count(stage_kinds(mixture(), exchange)) == 0


def test_logits_are_gathered_by_the_last_stage() -> None:
    assert logits_bytes(stage_kinds(decoder(8), cut(2, 2)), 3) == 3 * 6400 * 2 / 2
    assert logits_bytes(stage_kinds(decoder(8), cut(1, 2)), 3) == 0


def prompts(tokens: int, requests: int, pass_tokens: int | None, **rest: Any) -> RowCounts:
    workload = PrefillWorkload(
        model="decoder",
        tensor_parallel_size=1,
        prompt_tokens=tokens,
        request_count=requests,
        max_num_batched_tokens=pass_tokens,
        **{"pipeline_parallel_size": 2, **rest},
    )
    return prefill_rows(workload, logits_rows=0)


def flow_shop_tokens(tokens: int, requests: int, pass_tokens: int, stage_costs: list[float]) -> float:
    """When the last pass leaves the last stage, pass by pass and stage by stage."""
    total = tokens * requests
    sizes = [min(pass_tokens, total - start) for start in range(0, total, pass_tokens)]
    free = [0.0] * len(stage_costs)
    for size in sizes:
        ready = 0.0
        for stage, cost in enumerate(stage_costs):
            ready = free[stage] = max(free[stage], ready) + cost * size
    return free[-1]


@pytest.mark.parametrize(
    ("tokens", "requests", "pass_tokens"), [(1000, 1, 1000), (1000, 4, 1000), (1000, 1, 300), (700, 3, 512), (5, 2, 64)]
)
@pytest.mark.parametrize("layout", [cut(1, 2), cut(1, 4), cut(2, 2), cut(2, 4)], ids=["1x2", "1x4", "2x2", "2x4"])
def test_no_pipeline_is_faster_than_what_is_called_its_least(
    tokens: int, requests: int, pass_tokens: int, layout: ParallelLayout
) -> None:
    kinds = stage_kinds(decoder(8), layout)
    load = fabric_load(kinds, prompts(tokens, requests, pass_tokens)).outer
    one_token = RowCounts(group_tokens=1, any_tokens=1, logits_rows=0)
    # Stages of one kind stand side by side, the last one at the end.
    costs = [
        stage_bytes(kind.rows, one_token, lambda row: row.outer_bytes)
        for kind in kinds
        for _ in range(kind.stage_count)
    ]
    makespan = flow_shop_tokens(tokens, requests, pass_tokens, costs)
    assert load.pipelined_bytes <= makespan * (1 + 1e-12)
    assert makespan <= load.sequential_bytes * (1 + 1e-12)
    if pass_tokens >= tokens * requests:
        assert load.pipelined_bytes == pytest.approx(makespan)


def test_passes_are_of_a_prompt_each_where_the_budget_is_not_known() -> None:
    alone, together = prompts(1000, 1, None), prompts(1000, 4, None)
    assert alone.passes == (PassTokens(group_tokens=1000, any_tokens=1000, repeat_count=1),)
    assert together.passes == (PassTokens(group_tokens=1000, any_tokens=1000, repeat_count=4),)


def test_a_group_that_is_done_sooner_has_no_part_in_the_last_passes() -> None:
    # Nine and ten requests of one token; one of the groups is alone in the tenth pass.
    counts = prompts(1, 19, 1, data_parallel_size=2)
    assert counts.passes == (
        PassTokens(group_tokens=1, any_tokens=2, repeat_count=9),
        PassTokens(group_tokens=1, any_tokens=1, repeat_count=1),
    )
    # One group ends with 100 tokens in its fourth pass, the other with 150 in its second.
    uneven = prompts(350, 3, 200, data_parallel_size=2)
    assert uneven.passes == (
        PassTokens(group_tokens=200, any_tokens=400, repeat_count=1),
        PassTokens(group_tokens=200, any_tokens=350, repeat_count=1),
        PassTokens(group_tokens=200, any_tokens=200, repeat_count=1),
        PassTokens(group_tokens=100, any_tokens=100, repeat_count=1),
    )


def test_one_stage_needs_no_order_of_passes() -> None:
    assert prompts(1000, 5, 4096, data_parallel_size=4, pipeline_parallel_size=1).passes == ()


def test_the_fullest_attention_group_counts() -> None:
    counts = prompts(1000, 5, 4096, data_parallel_size=4)
    assert (counts.group_tokens, counts.any_tokens) == (2000, 5000)
