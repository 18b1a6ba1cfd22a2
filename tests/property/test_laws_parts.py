"""Law 5 of `docs/invariants.md`: what is answered of parts adds up to what is answered of the whole."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from estimator_service.core.collectives import sent_bytes
from estimator_service.core.inventory import sent_bytes_per_token
from estimator_service.core.layouts.load import decode_rows, fabric_load, prefill_rows
from estimator_service.core.layouts.rows import stage_kinds
from linkbound.domain.catalog import Model, RowScope
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import CollectiveTraffic, ExpertParallelism, ParallelLayout
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.link import LARGEST_RATE_BITS_PER_SECOND, Link
from linkbound.domain.planning import SlowestLinkRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.training import TrainingSharding, TrainingStepRequest
from linkbound.domain.workload import PrefillWorkload
from tests.property.estimator_strategies import ESTIMATOR, MODELS, TRAINING_REQUESTS
from tests.property.layout_strategies import (
    comparison_requests,
    cuts,
    decode_requests,
    fields_of,
    prefill_requests,
    prefill_workloads,
    recommendation_requests,
)

FLOAT = 1e-12
ANY_MODEL = st.sampled_from(MODELS)


def adds_up(rows: tuple[CollectiveTraffic, ...], logits_bytes: int, whole: int, *, with_logits: bool) -> None:
    """Rows are rounded to whole bytes each."""
    parts = sum(row.sent_bytes_per_rank for row in rows)
    without = 0 if with_logits else sum(row.sent_bytes_per_rank for row in rows if "LM head" in row.reason)
    assert without in (0, logits_bytes)
    assert parts - without == pytest.approx(whole, abs=len(rows) + 1, rel=FLOAT)


@given(prefill_requests())
def test_prompts_are_the_sum_of_their_collectives(request: PrefillRequest) -> None:
    answer = ESTIMATOR.estimate_prefill(request)
    adds_up(answer.traffic, answer.logits_gather_bytes_per_rank, answer.sent_bytes_per_rank, with_logits=False)
    layout, tokens = request.workload.layout, request.workload.total_prompt_tokens
    if layout.data_parallel_size == 1:
        of_tokens = answer.sent_bytes_per_prompt_token * tokens
        assert answer.sent_bytes_per_rank == pytest.approx(of_tokens, abs=tokens, rel=FLOAT)


@given(decode_requests())
def test_passes_are_the_sum_of_their_collectives(request: DecodeRequest) -> None:
    answer = ESTIMATOR.estimate_decode(request)
    adds_up(answer.traffic, answer.logits_gather_bytes_per_rank, answer.sent_bytes_per_pass, with_logits=True)


@given(prefill_requests())
def test_prompts_are_the_sum_of_single_ones(request: PrefillRequest) -> None:
    workload = request.workload
    asked = attrs.evolve(request, baseline_ttft_seconds=None, collective_table=None)
    together = ESTIMATOR.estimate_prefill(asked)
    single = ESTIMATOR.estimate_prefill(attrs.evolve(asked, workload=attrs.evolve(workload, request_count=1)))
    count = workload.request_count
    # Groups share the prompts, and the exchange between them carries those of all.
    if workload.data_parallel_size == 1:
        assert together.sent_bytes_per_rank == pytest.approx(count * single.sent_bytes_per_rank, abs=count, rel=FLOAT)
        assert together.network_seconds.upper == pytest.approx(count * (single.network_seconds.upper or 0), rel=FLOAT)
    assert together.sent_bytes_per_rank <= (count * single.sent_bytes_per_rank + count) * (1 + FLOAT)


@given(cuts(), st.integers(1, 10**6))
def test_stages_run_every_collective_once(cut: tuple[Model, ParallelLayout], tokens: int) -> None:
    """However layers are spread over stages, all stages together sum what one would, and hand on Q - 1 times."""
    model, layout = cut
    size, stages = layout.tensor_parallel_size, layout.pipeline_parallel_size
    if layout.data_parallel_size > 1 or layout.ranks_per_node > 1:
        layout = ParallelLayout(tensor_parallel_size=size, pipeline_parallel_size=stages)
    workload = PrefillWorkload(model=model.model_id, prompt_tokens=tokens, **fields_of(layout))
    load = fabric_load(stage_kinds(model, layout), prefill_rows(workload, logits_rows=0))
    hidden_bytes = model.hidden_size * model.activation_value_bytes
    boundary = 2 * hidden_bytes / size + 2 * sent_bytes(CollectiveKind.ALL_GATHER, size, hidden_bytes)
    whole = tokens * (sent_bytes_per_token(model, size) + (stages - 1) * boundary)
    assert load.outer.sequential_bytes == pytest.approx(whole, rel=FLOAT)
    assert load.outer.busiest_bytes <= load.outer.sequential_bytes <= stages * load.outer.busiest_bytes * (1 + FLOAT)


@given(cuts(), st.integers(1, 10**6))
def test_a_sum_is_a_reduce_scatter_and_an_all_gather(cut: tuple[Model, ParallelLayout], tokens: int) -> None:
    model, layout = cut
    loads = []
    for sequence_parallel in (False, True):
        one = attrs.evolve(layout, sequence_parallel=sequence_parallel)
        workload = PrefillWorkload(model=model.model_id, prompt_tokens=tokens, **fields_of(one))
        loads.append(fabric_load(stage_kinds(model, one), prefill_rows(workload, logits_rows=0)))
    for plain, split in zip(
        attrs.astuple(loads[0], recurse=False), attrs.astuple(loads[1], recurse=False), strict=True
    ):
        assert split.busiest_bytes == pytest.approx(plain.busiest_bytes, rel=FLOAT)
        assert split.sequential_bytes == pytest.approx(plain.sequential_bytes, rel=FLOAT)


@given(cuts(), st.integers(1, 10**6))
def test_one_rank_in_a_node_or_all_in_one_send_the_same(cut: tuple[Model, ParallelLayout], tokens: int) -> None:
    """Whole groups within nodes: what went over the link between nodes goes over those within."""
    model, layout = cut
    size = layout.tensor_parallel_size
    apart, together = (ParallelLayout(tensor_parallel_size=size, ranks_per_node=in_node) for in_node in (1, size))
    of_apart, of_together = (
        fabric_load(
            stage_kinds(model, one),
            prefill_rows(PrefillWorkload(model=model.model_id, prompt_tokens=tokens, **fields_of(one)), logits_rows=0),
        )
        for one in (apart, together)
    )
    assert of_apart.outer == of_together.inner
    assert of_apart.inner.sequential_bytes == of_together.outer.sequential_bytes == 0


@given(ANY_MODEL, st.sampled_from([2, 4, 8]))
def test_tokens_are_the_sum_of_the_inventory(model: Model, size: int) -> None:
    counted = sum(
        collective.count * sent_bytes(collective.kind, size, collective.width * model.activation_value_bytes)
        for collective in model.collectives
        if collective.row_scope is RowScope.TOKEN
    )
    assert sent_bytes_per_token(model, size) == counted
    kinds = [collective.count for collective in model.collectives if collective.kind is CollectiveKind.ALL_REDUCE]
    assert model.all_reduce_count == sum(kinds)


@given(decode_requests())
def test_a_pass_is_its_tokens_and_its_logits(request: DecodeRequest) -> None:
    """Over every stage: n rows of the inventory and n rows of logits, of one tensor-parallel group."""
    workload = request.workload
    layout = ParallelLayout(tensor_parallel_size=workload.tensor_parallel_size)
    alone = attrs.evolve(workload, **fields_of(layout))
    model = ESTIMATOR.get_model(workload.model)
    rows = decode_rows(alone).logits_rows
    assert rows == workload.request_count * (1 + workload.draft_token_count)
    load = fabric_load(stage_kinds(model, layout), decode_rows(alone))
    answer = ESTIMATOR.estimate_decode(DecodeRequest(workload=alone, link=request.link))
    assert answer.sent_bytes_per_pass == round(load.outer.busiest_bytes)
    of_tokens = rows * sent_bytes_per_token(model, layout.tensor_parallel_size)
    assert answer.sent_bytes_per_pass - answer.logits_gather_bytes_per_rank == pytest.approx(
        of_tokens, abs=2, rel=FLOAT
    )


@given(TRAINING_REQUESTS)
def test_a_sharded_step_is_the_sum_of_its_collectives(request: TrainingStepRequest) -> None:
    ddp, optimizer, full = (
        ESTIMATOR.estimate_training_step(attrs.evolve(request, sharding=sharding)).sent_bytes_per_rank
        for sharding in (TrainingSharding.UNSPECIFIED, TrainingSharding.OPTIMIZER, TrainingSharding.FULL)
    )
    once = sent_bytes(CollectiveKind.ALL_GATHER, request.rank_count, request.gradient_bytes or 0)
    assert ddp == pytest.approx(2 * once, abs=1, rel=FLOAT)
    assert optimizer == pytest.approx(2 * once, abs=1, rel=FLOAT)
    assert full == pytest.approx(3 * once, abs=1, rel=FLOAT)


@given(comparison_requests())
def test_a_comparison_of_layouts_answers_what_each_layout_does(request: LayoutComparisonRequest) -> None:
    for one in ESTIMATOR.compare_layouts(request).layouts:
        workload = PrefillWorkload(
            model=request.workload.model,
            prompt_tokens=request.workload.prompt_tokens,
            request_count=request.workload.request_count,
            max_num_batched_tokens=request.workload.max_num_batched_tokens,
            **fields_of(one.layout),
        )
        asked = PrefillRequest(
            workload=workload,
            link=request.link,
            inner_link=request.inner_link,
            collective_table=request.collective_table,
        )
        if one.feasible is not False:
            answer = ESTIMATOR.estimate_prefill(asked)
            assert one.sent_bytes_per_rank == answer.sent_bytes_per_rank
            assert one.network_seconds == answer.network_seconds
        if one.memory is not None:
            memory = one.memory
            assert memory.total_bytes == (
                memory.sliced_weight_bytes
                + memory.replicated_weight_bytes
                + memory.kv_cache_bytes
                + memory.activation_bytes
                + memory.communication_buffer_bytes
                + memory.runtime_bytes
            )


@given(recommendation_requests())
def test_a_recommendation_answers_what_each_instance_does(request: LayoutRecommendationRequest) -> None:
    for option in ESTIMATOR.recommend_layout(request).options:
        used = option.instance_count * option.layout.rank_count
        assert used + option.idle_node_count * request.workload.ranks_per_node == request.workload.rank_count
        if option.feasible is False:
            continue
        is_of_baseline = (
            option.layout.tensor_parallel_size == option.layout.rank_count == request.baseline_tensor_parallel_size
        )
        answer = ESTIMATOR.estimate_prefill(
            PrefillRequest(
                workload=PrefillWorkload(
                    model=request.workload.model,
                    prompt_tokens=request.workload.prompt_tokens,
                    max_num_batched_tokens=request.workload.max_num_batched_tokens,
                    **fields_of(option.layout),
                ),
                link=request.reference_link,
                to_link=request.link,
                inner_link=request.inner_link,
                collective_table=request.collective_table,
                baseline_ttft_seconds=request.baseline_ttft_seconds if is_of_baseline else None,
            )
        )
        assert answer.extra_ttft_seconds is not None
        assert option.sent_bytes_per_rank == answer.sent_bytes_per_rank
        assert option.extra_ttft_seconds.lower == answer.extra_ttft_seconds.lower
        assert option.extra_ttft_seconds.expected == answer.extra_ttft_seconds.expected
        assert option.extra_ttft_seconds.upper == answer.extra_ttft_seconds.upper
        if is_of_baseline and option.ttft_seconds is not None:
            assert option.ttft_seconds.lower == pytest.approx(answer.ttft_seconds.lower, rel=FLOAT)
            assert option.ttft_seconds.upper == pytest.approx(answer.ttft_seconds.upper, rel=FLOAT)


@given(prefill_workloads(), st.integers(10**9, 10**12), st.floats(1, 10), st.floats(0.3, 10))
def test_the_slowest_link_is_the_inverse_of_ttft(
    workload: PrefillWorkload, rate: int, factor: float, share: float
) -> None:
    """In every layout over one link: over the rate that is found, the end that it is found for is the target."""
    asked = PrefillRequest(workload=attrs.evolve(workload, ranks_per_node=1), link=Link(line_rate_bits_per_second=rate))
    baseline_seconds = max(ESTIMATOR.estimate_prefill(asked).network_seconds.upper or 0, 1e-3) * factor
    target_seconds = baseline_seconds * share
    assume(max(baseline_seconds, target_seconds) < 1e8)
    found = ESTIMATOR.find_slowest_link(
        SlowestLinkRequest(
            workload=asked.workload,
            target_ttft_seconds=target_seconds,
            baseline_link=asked.link,
            baseline_ttft_seconds=baseline_seconds,
        )
    ).slowest_bits_per_second

    def ttft_over(bits_per_second: float) -> Estimate:
        link = Link(line_rate_bits_per_second=round(bits_per_second))
        return ESTIMATOR.estimate_prefill(
            attrs.evolve(asked, to_link=link, baseline_ttft_seconds=baseline_seconds)
        ).ttft_seconds

    # A rate is a whole number of bits per second: the slower it is, the coarser.
    if found.upper is not None and found.upper >= 10**6:
        assert ttft_over(found.upper).upper == pytest.approx(target_seconds, rel=1 / found.upper + 1e-9)
    if 10**6 <= found.lower < LARGEST_RATE_BITS_PER_SECOND:
        assert ttft_over(found.lower).lower == pytest.approx(target_seconds, rel=1 / found.lower + 1e-9)


def test_experts_are_exchanged_or_summed_and_not_both() -> None:
    """Guards the sums above: an all-reduce of the experts beside an exchange would count them twice."""
    model = ESTIMATOR.get_model("glm-5.3")
    exchange = ParallelLayout(
        tensor_parallel_size=2, data_parallel_size=4, expert_parallelism=ExpertParallelism.ALL_GATHER
    )
    (kind,) = stage_kinds(model, exchange)
    summed = sum(row.count for row in kind.rows if row.collective.kind is CollectiveKind.ALL_REDUCE)
    exchanged = sum(row.count for row in kind.rows if row.collective.kind is CollectiveKind.REDUCE_SCATTER)
    assert summed + exchanged == model.all_reduce_count
    assert exchanged > 0
