"""Law 1 of `docs/invariants.md`: no time is below the bytes on a link over its effective rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from estimator_service.core.layouts.load import RowCounts, stage_bytes
from estimator_service.core.layouts.rows import StageKind, stage_kinds
from linkbound.domain.calibration import CollectiveTable
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import ExpertParallelism
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.link import Link, ResolvedLink
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import PrefillWorkload
from tests.property.estimator_strategies import ESTIMATOR, LINKS, MODELS, TRAINING_REQUESTS
from tests.property.layout_strategies import (
    comparison_requests,
    cuts_of,
    decode_requests,
    fields_of,
    prefill_requests,
    recommendation_requests,
    tables,
)

FLOAT = 1 + 1e-12
HALF_BYTE = 0.5
"""Answers count whole bytes."""


def wire_seconds(sent_bytes: float, link: ResolvedLink) -> float:
    """The least time that what was rounded to `sent_bytes` takes."""
    return (sent_bytes - HALF_BYTE) * 8 / link.effective_bits_per_second


def sent_in_any_case(answer: PrefillEstimate | DecodeEstimate, sent_bytes: int) -> float:
    """Of an all-to-all only a k-th: the k experts of a token may share a rank, which then gets it once."""
    dispatched = [row.sent_bytes_per_rank for row in answer.traffic if row.kind is CollectiveKind.ALL_TO_ALL]
    if not dispatched:
        return sent_bytes
    experts = ESTIMATOR.get_model(answer.model).active_expert_count
    return sent_bytes - (sum(dispatched) + HALF_BYTE * len(dispatched)) * (1 - 1 / experts)


def of_the_busiest(link: Link | None, asked: PrefillRequest | DecodeRequest, answered: ResolvedLink) -> ResolvedLink:
    """The link that the busiest stage has in any case: a slow node may be in another one, where there are several."""
    layout = asked.workload.layout
    if link is None or layout.pipeline_parallel_size == layout.data_parallel_size == 1:
        return answered
    return ESTIMATOR.estimate_collective(
        CollectiveRequest(kind=CollectiveKind.ALL_REDUCE, rank_count=2, link=link)
    ).link


def not_before_the_wire(
    request: PrefillRequest | DecodeRequest, answer: PrefillEstimate | DecodeEstimate, sent_bytes: float
) -> None:
    network = answer.network_seconds
    assert wire_seconds(sent_bytes, of_the_busiest(request.link, request, answer.link)) <= network.lower * FLOAT
    if answer.inner_link is not None:
        for row in answer.traffic:
            if row.kind is not CollectiveKind.ALL_TO_ALL:
                assert wire_seconds(row.inner_sent_bytes_per_rank, answer.inner_link) <= network.lower * FLOAT


@given(prefill_requests())
def test_prompts(request: PrefillRequest) -> None:
    answer = ESTIMATOR.estimate_prefill(request)
    sent_bytes = sent_in_any_case(answer, answer.sent_bytes_per_rank)
    not_before_the_wire(request, answer, sent_bytes)
    over_which = of_the_busiest(request.link, request, answer.link)
    if answer.to_link is not None:
        over_which = of_the_busiest(request.to_link, request, answer.to_link)
    assert wire_seconds(sent_bytes, over_which) <= answer.ttft_seconds.lower * FLOAT
    if request.to_link is None:
        assert answer.network_seconds.lower <= answer.ttft_seconds.lower * FLOAT
    if answer.network_share_fraction is not None:
        assert answer.network_share_fraction <= FLOAT


@given(decode_requests())
def test_passes(request: DecodeRequest) -> None:
    answer = ESTIMATOR.estimate_decode(request)
    not_before_the_wire(request, answer, sent_in_any_case(answer, answer.sent_bytes_per_pass))
    assert answer.network_seconds.lower <= answer.pass_seconds.lower
    assert answer.traffic_bits_per_second.upper is not None
    assert answer.traffic_bits_per_second.upper <= answer.link.effective_bits_per_second
    if answer.output_tokens_per_second is not None and answer.output_tokens_per_second.upper is not None:
        accepted = request.workload.acceptance_length_tokens or 1
        assert answer.output_tokens_per_second.upper * answer.network_seconds.lower <= accepted * FLOAT


@st.composite
def ring_requests(draw: st.DrawFn) -> tuple[CollectiveRequest, Fraction]:
    """One collective by ring, with or without times that were measured, and the bytes of one rank."""
    kind, rounds = draw(
        st.sampled_from(
            [(CollectiveKind.ALL_REDUCE, 2), (CollectiveKind.ALL_GATHER, 1), (CollectiveKind.REDUCE_SCATTER, 1)]
        )
    )
    in_node, node_count = draw(st.integers(1, 16)), draw(st.integers(1, 64))
    rank_count = in_node * node_count if in_node * node_count > 1 else 2
    message_bytes = draw(st.integers(1, 10**15))
    table: CollectiveTable | None = draw(st.none() | tables(rank_count, in_node)) if kind.name == "ALL_REDUCE" else None
    request = CollectiveRequest(
        kind=kind,
        rank_count=rank_count,
        ranks_per_node=in_node,
        message_bytes=message_bytes,
        link=draw(LINKS),
        inner_link=draw(LINKS) if in_node > 1 else None,
        algorithm=draw(st.sampled_from([CollectiveAlgorithm.UNSPECIFIED, CollectiveAlgorithm.RING])),
        collective_table=table,
    )
    return request, Fraction(rounds * (rank_count - 1) * message_bytes, rank_count)


@given(ring_requests())
def test_one_collective(asked: tuple[CollectiveRequest, Fraction]) -> None:
    request, sent = asked
    answer = ESTIMATOR.estimate_collective(request)
    assert answer.seconds is not None
    between_nodes = request.rank_count > request.ranks_per_node
    links = ((answer.link, between_nodes), (answer.inner_link, request.ranks_per_node > 1))
    for link, is_used in links:
        if not is_used or link is None:
            continue
        on_wire = float(sent * 8 / link.effective_bits_per_second)
        assert on_wire <= answer.seconds.lower * FLOAT
        for rate in (answer.bus_bandwidth_bytes_per_second, answer.algorithm_bandwidth_bytes_per_second):
            assert rate.upper is not None
        assert answer.bus_bandwidth_bytes_per_second.upper is not None
        assert answer.bus_bandwidth_bytes_per_second.upper <= link.effective_bits_per_second / 8 * FLOAT
        for choice in answer.choices:
            if choice.algorithm is CollectiveAlgorithm.RING:
                assert choice.fixed_seconds + on_wire <= choice.seconds * FLOAT


@given(TRAINING_REQUESTS)
def test_a_training_step(request: TrainingStepRequest) -> None:
    answer = ESTIMATOR.estimate_training_step(request)
    on_wire = wire_seconds(answer.sent_bytes_per_rank, answer.link)
    assert on_wire <= answer.sync_seconds.lower * FLOAT
    assert answer.sync_seconds.lower <= answer.step_seconds.lower
    assert answer.step_seconds.upper is not None
    assert answer.step_seconds.upper <= (request.compute_step_seconds + (answer.sync_seconds.upper or 0)) * FLOAT


@given(comparison_requests())
def test_every_layout(request: LayoutComparisonRequest) -> None:
    link = ESTIMATOR.estimate_collective(
        CollectiveRequest(kind=CollectiveKind.ALL_REDUCE, rank_count=2, link=request.link)
    ).link
    for layout in ESTIMATOR.compare_layouts(request).layouts:
        experts, sent_bytes = layout.layout.expert_parallelism, float(layout.sent_bytes_per_rank)
        if experts is ExpertParallelism.ALL_TO_ALL:
            sent_bytes /= ESTIMATOR.get_model(request.workload.model).active_expert_count
        assert wire_seconds(sent_bytes, link) <= layout.network_seconds.lower * FLOAT
        assert layout.single_network_seconds.lower <= layout.network_seconds.lower * FLOAT


@given(recommendation_requests())
def test_every_option(request: LayoutRecommendationRequest) -> None:
    link = ESTIMATOR.estimate_collective(
        CollectiveRequest(kind=CollectiveKind.ALL_REDUCE, rank_count=2, link=request.link)
    ).link
    for option in ESTIMATOR.recommend_layout(request).options:
        if option.ttft_seconds is None or option.last_ttft_seconds is None:
            continue
        assert wire_seconds(option.sent_bytes_per_rank, link) <= option.ttft_seconds.lower * FLOAT
        assert option.ttft_seconds.lower <= option.last_ttft_seconds.lower * FLOAT


def passes_of(workload: PrefillWorkload) -> Iterator[RowCounts]:
    """Passes of every attention group at the same time, each of at most M tokens: of the one with most, and of all."""
    groups, pass_tokens = workload.data_parallel_size, workload.max_num_batched_tokens or workload.prompt_tokens
    fewest, ahead = divmod(workload.request_count, groups)
    left = [workload.prompt_tokens * (fewest + (index < ahead)) for index in range(groups)]
    while any(left):
        taken = [min(tokens, pass_tokens) for tokens in left]
        left = [tokens - now for tokens, now in zip(left, taken, strict=True)]
        yield RowCounts(group_tokens=taken[0], any_tokens=sum(taken), logits_rows=0)


def stages_in_order(kinds: Sequence[StageKind], counts: RowCounts) -> list[float]:
    """Bytes of one pass on the link between nodes of each stage, the last one last."""
    of_kinds = [
        (stage_bytes(kind.rows, counts, lambda row: row.outer_bytes), kind.stage_count, kind.is_last) for kind in kinds
    ]
    before = [sent for sent, count, is_last in of_kinds for _ in range(count - is_last)]
    return [*before, *(sent for sent, _, is_last in of_kinds if is_last)]


def makespan(passes: Iterable[Sequence[float]]) -> float:
    """When the last stage is done with the last pass: each stage takes passes in order, a pass stages in order."""
    free: list[float] = []
    for stages in passes:
        ready, free = 0.0, free or [0.0] * len(stages)
        for index, needed in enumerate(stages):
            ready = free[index] = max(free[index], ready) + needed
    return free[-1]


@st.composite
def pipelines(draw: st.DrawFn) -> PrefillWorkload:
    """Prompts of a few hundred passes, over nodes of one rank."""
    model = draw(st.sampled_from(MODELS))
    layout = draw(st.sampled_from([layout for layout in cuts_of(model.model_id) if layout.ranks_per_node == 1]))
    pass_tokens = draw(st.integers(1, 3000))
    return PrefillWorkload(
        model=model.model_id,
        prompt_tokens=draw(st.integers(1, 20 * pass_tokens)),
        request_count=draw(st.integers(1, 20)),
        max_num_batched_tokens=draw(st.just(pass_tokens) | st.none()),
        **fields_of(layout),
    )


@given(pipelines())
@example(
    # Two groups in step: the tenth pass of one has no tenth of the other beside it.
    PrefillWorkload(
        model="gpt-oss-120b",
        tensor_parallel_size=1,
        pipeline_parallel_size=2,
        data_parallel_size=2,
        prompt_tokens=1,
        request_count=19,
        max_num_batched_tokens=1,
    )
)
def test_a_pipeline_without_arithmetic_lies_between_both_ends(workload: PrefillWorkload) -> None:
    """Replayed pass by pass: stages work at the same time, and no pass leaves one before it has carried its bytes."""
    kinds = stage_kinds(ESTIMATOR.get_model(workload.model), workload.layout)
    seconds = makespan(stages_in_order(kinds, counts) for counts in passes_of(workload))
    request = PrefillRequest(workload=workload, link=Link(line_rate_bits_per_second=8))
    network = ESTIMATOR.estimate_prefill(request).network_seconds
    assert network.upper is not None
    assert network.lower <= seconds * FLOAT
    assert seconds <= network.upper * FLOAT


@given(pipelines(), st.integers(1, 8), st.integers(0, 63))
@example(PrefillWorkload(model="qwen3-32b", tensor_parallel_size=1, pipeline_parallel_size=4, prompt_tokens=1000), 1, 3)
def test_a_slow_node_may_be_in_any_stage(workload: PrefillWorkload, slow_rate: int, index: int) -> None:
    """Replayed with the nodes of one stage at a slower rate, and the stage before that hands on to one rank there."""
    kinds, fast_rate = stage_kinds(ESTIMATOR.get_model(workload.model), workload.layout), 8
    stage_count = workload.pipeline_parallel_size
    slow = index % stage_count
    hands_on_alone = workload.tensor_parallel_size == workload.data_parallel_size == 1
    at_slow_rate = {slow, slow - 1} if hands_on_alone else {slow}
    factors = [fast_rate / slow_rate if at in at_slow_rate else 1.0 for at in range(stage_count)]
    passes = [stages_in_order(kinds, counts) for counts in passes_of(workload)]
    seconds = makespan([sent * factor for sent, factor in zip(stages, factors, strict=True)] for stages in passes)
    alike = makespan(passes)
    asked = PrefillRequest(
        workload=workload,
        link=Link(line_rate_bits_per_second=fast_rate),
        rank_links=(Link(line_rate_bits_per_second=slow_rate),),
    )
    network = ESTIMATOR.estimate_prefill(asked).network_seconds
    assert network.upper is not None
    assert network.lower <= seconds * FLOAT
    assert seconds <= network.upper * FLOAT
    assert ESTIMATOR.estimate_prefill(attrs.evolve(asked, rank_links=())).network_seconds.lower <= alike * FLOAT


@st.composite
def several_ranks(draw: st.DrawFn) -> PrefillRequest:
    """Prompts that send something over links as they are."""
    model = draw(st.sampled_from(MODELS))
    layout = draw(st.sampled_from([layout for layout in cuts_of(model.model_id) if layout.rank_count > 1]))
    link, inner_link = (Link(line_rate_bits_per_second=draw(st.integers(10**9, 10**12))) for _ in range(2))
    workload = PrefillWorkload(
        model=model.model_id,
        prompt_tokens=draw(st.integers(1, 10**6)),
        request_count=draw(st.integers(1, 1000)),
        max_num_batched_tokens=draw(st.none() | st.integers(1, 10**5)),
        **fields_of(layout),
    )
    return PrefillRequest(workload=workload, link=link, inner_link=inner_link)


@given(several_ranks(), st.floats(0.01, 1 - 1e-9))
def test_a_baseline_below_the_wire_is_refused(request: PrefillRequest, share: float) -> None:
    baseline_seconds = ESTIMATOR.estimate_prefill(request).network_seconds.lower * share
    with pytest.raises(InvalidArgumentError, match="baseline_ttft_seconds"):
        ESTIMATOR.estimate_prefill(attrs.evolve(request, baseline_ttft_seconds=baseline_seconds))
