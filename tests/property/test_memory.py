"""Laws of memory: for any model, cut and machine."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from estimator_service.core.layouts.feasibility import layout_reasons
from estimator_service.core.memory import (
    MemorySettings,
    activation_bytes,
    cache_bytes_of_rank,
    cache_bytes_read,
    check_memory_fit,
    memory_need,
    weight_bytes_read,
    weights_of_rank,
)
from linkbound.domain.catalog import CacheGroup, Hardware, Model, ModelPart, ParameterGroup, WeightSplit
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.link import Link
from linkbound.domain.memory import MemoryFitRequest
from linkbound.domain.workload import DecodeWorkload
from tests.property.estimator_strategies import ESTIMATOR
from tests.property.question_strategies import LARGEST_CACHE
from tests.unit.estimator.models import small_model

LAYERS = st.integers(1, 100)
SPLITS = st.sampled_from([WeightSplit.SLICED, WeightSplit.REPLICATED, WeightSplit.KEY_VALUE_HEADS])
PARTS = st.sampled_from([part for part in ModelPart if part not in {ModelPart.UNSPECIFIED, ModelPart.UNKNOWN}])
SIZES = st.integers(1, 64)
LAYOUTS = st.builds(
    ParallelLayout,
    tensor_parallel_size=SIZES,
    pipeline_parallel_size=st.integers(1, 120),
    data_parallel_size=st.integers(1, 16),
    expert_parallelism=st.sampled_from([kind for kind in ExpertParallelism if kind.name != "UNKNOWN"]),
)
CONTEXTS = st.integers(1, 10**6)
REQUESTS = st.integers(1, 1000)
HARDWARE = st.builds(
    Hardware,
    hardware_id=st.just("box"),
    display_name=st.just("Box"),
    memory_bytes=st.integers(10**9, 10**12),
    memory_bandwidth_bytes_per_second=st.just(10**12),
)
SETTINGS = st.builds(
    MemorySettings,
    gpu_memory_utilization_fraction=st.floats(0.01, 1),
    cache_value_bytes=st.integers(1, 2),
    max_num_batched_tokens=st.integers(1, 10**5),
    draft_token_count=st.integers(0, 2),
)


@st.composite
def models(draw: st.DrawFn) -> Model:
    layer_count = draw(LAYERS)
    experts = draw(st.integers(0, 64))

    def group(part: ModelPart, split: WeightSplit, count: int, active: float, layers: int) -> ParameterGroup:
        return ParameterGroup(
            part=part,
            parameter_count=count,
            active_parameter_count=int(count * active),
            weight_bytes=2 * count,
            split=split,
            layer_count=min(layers, layer_count),
        )

    groups = st.builds(group, PARTS, SPLITS, st.integers(1, 10**11), st.floats(0, 1), st.integers(0, 100))
    caches = st.builds(
        CacheGroup,
        reason=st.just("cache"),
        layer_count=st.integers(1, layer_count),
        values_per_token=st.integers(0, 10**4),
        split_head_count=st.integers(0, 64),
        window_tokens=st.none() | st.integers(1, 10**5),
        state_bytes_per_request=st.integers(0, 10**6),
        read_tokens=st.none() | st.integers(1, 10**5),
        fp8_bytes_per_token=st.just(0),
        fixed_bytes_per_token=st.just(0) | st.integers(1, 10**4),
    )
    return evolve(
        small_model(),
        layer_count=layer_count,
        attention_head_count=draw(st.sampled_from([1, 6, 8, 40, 64])),
        key_value_head_count=draw(st.sampled_from([1, 2, 8])),
        expert_count=experts,
        active_expert_count=draw(st.integers(0, experts)),
        mtp_layer_count=draw(st.integers(0, 2)),
        parameter_groups=tuple(draw(st.lists(groups, min_size=1, max_size=6))),
        cache_groups=tuple(draw(st.lists(caches, min_size=1, max_size=4))),
    )


def weight_total(model: Model, layout: ParallelLayout) -> int:
    weights = weights_of_rank(model, layout)
    assert weights is not None
    return weights.total_bytes


def cache_total(model: Model, layout: ParallelLayout, tokens: int, requests: int) -> int:
    kept = cache_bytes_of_rank(model, layout, tokens, requests, 2)
    assert kept is not None
    return kept


@given(model=models(), layout=LAYOUTS)
def test_the_ranks_together_hold_every_weight(model: Model, layout: ParallelLayout) -> None:
    stored = sum(group.weight_bytes or 0 for group in model.parameter_groups if group.part is not ModelPart.MTP)
    assert weight_total(model, layout) * layout.rank_count >= stored
    assert weight_total(model, layout) <= stored + len(model.parameter_groups)


@given(model=models(), layout=LAYOUTS, factor=st.integers(2, 4))
def test_more_ranks_never_hold_more_each(model: Model, layout: ParallelLayout, factor: int) -> None:
    larger = evolve(layout, tensor_parallel_size=layout.tensor_parallel_size * factor)
    assert weight_total(model, larger) <= weight_total(model, layout)
    assert cache_total(model, larger, 100, 3) <= cache_total(model, layout, 100, 3)
    assert activation_bytes(model, larger, 10**6) <= activation_bytes(model, layout, 10**6)


@given(model=models(), layout=LAYOUTS, tokens=CONTEXTS, requests=REQUESTS)
def test_caches_grow_with_the_context_and_the_requests(
    model: Model, layout: ParallelLayout, tokens: int, requests: int
) -> None:
    kept = cache_total(model, layout, tokens, requests)
    assert cache_total(model, layout, tokens + 1, requests) >= kept
    assert cache_total(model, layout, tokens, requests + 1) >= kept
    of_one = cache_total(model, layout, tokens, 1)
    assert cache_total(model, layout, tokens, requests * layout.data_parallel_size) == requests * of_one


@given(model=models(), layout=LAYOUTS, rows=st.integers(1, 100), tokens=CONTEXTS, requests=REQUESTS)
def test_a_pass_reads_at_most_what_is_held(
    model: Model, layout: ParallelLayout, rows: int, tokens: int, requests: int
) -> None:
    weights = weight_bytes_read(model, layout, rows)
    more = weight_bytes_read(model, layout, rows + 1)
    assert weights is not None
    assert more is not None
    assert 0 <= weights.lower_bytes <= weights.upper_bytes <= more.upper_bytes
    assert more.lower_bytes == weights.lower_bytes
    assert weights.upper_bytes <= weight_total(model, layout) + len(model.parameter_groups)
    caches = cache_bytes_read(model, layout, tokens, requests, rows, cache_value_bytes=2)
    assert caches is not None
    assert 0 <= caches.lower_bytes <= cache_total(model, layout, tokens, requests)
    assert caches.upper_bytes == rows * caches.lower_bytes


@given(model=models(), layout=LAYOUTS, hardware=HARDWARE, tokens=CONTEXTS, requests=REQUESTS, settings=SETTINGS)
def test_the_parts_add_up_to_the_whole(
    model: Model,
    layout: ParallelLayout,
    hardware: Hardware,
    tokens: int,
    requests: int,
    settings: MemorySettings,
) -> None:
    need = memory_need(model, layout, hardware, tokens, requests, settings)
    assert need is not None
    assert need.total_bytes == (
        need.sliced_weight_bytes
        + need.replicated_weight_bytes
        + need.kv_cache_bytes
        + need.activation_bytes
        + need.communication_buffer_bytes
        + need.runtime_bytes
    )
    assert need.usable_bytes <= hardware.memory_bytes
    for longer in (
        memory_need(model, layout, hardware, tokens + 1, requests, settings),
        memory_need(model, layout, hardware, tokens, requests + 1, settings),
    ):
        assert longer is not None
        assert longer.total_bytes >= need.total_bytes


@given(
    model=models(),
    size=st.sampled_from([1, 2, 8]),
    stages=st.integers(1, 4),
    groups=st.integers(1, 4),
    hardware=HARDWARE,
    tokens=CONTEXTS,
    requests=REQUESTS,
    settings=SETTINGS,
)
def test_an_answer_is_what_trying_every_size_and_count_finds(
    model: Model,
    size: int,
    stages: int,
    groups: int,
    hardware: Hardware,
    tokens: int,
    requests: int,
    settings: MemorySettings,
) -> None:
    whole = evolve(
        model,
        layer_count=100,
        attention_head_count=64,
        key_value_head_count=8,
        expert_count=32,
        active_expert_count=4,
        collectives=tuple(evolve(row, part=ModelPart.ROUTED_EXPERTS) for row in model.collectives),
    )
    layout = ParallelLayout(
        tensor_parallel_size=size,
        pipeline_parallel_size=stages,
        data_parallel_size=groups,
        expert_parallelism=ExpertParallelism.ALL_GATHER if groups > 1 else ExpertParallelism.UNSPECIFIED,
    )
    request = MemoryFitRequest(
        model="small",
        layout=layout,
        hardware="box",
        context_tokens=tokens,
        request_count=requests,
        gpu_memory_utilization_fraction=settings.gpu_memory_utilization_fraction,
        cache_value_bytes=settings.cache_value_bytes,
        max_num_batched_tokens=settings.max_num_batched_tokens,
        draft_token_count=settings.draft_token_count,
    )
    answer = check_memory_fit(request, whole, hardware)

    def fits(tried: ParallelLayout, count: int) -> bool:
        need = memory_need(whole, tried, hardware, tokens, count, settings)
        assert need is not None
        return need.total_bytes <= need.usable_bytes

    assert answer.headroom_bytes == answer.need.usable_bytes - answer.need.total_bytes
    assert answer.fits == (answer.headroom_bytes >= 0) == fits(layout, requests)
    resized = (evolve(layout, tensor_parallel_size=tried) for tried in range(1, 4097))
    fitting = [
        tried.tensor_parallel_size for tried in resized if not layout_reasons(whole, tried) and fits(tried, requests)
    ]
    assert answer.smallest_tp_that_fits == (fitting[0] if fitting else None)
    largest = answer.largest_request_count
    assert largest == 0 or fits(layout, largest)
    assert largest == 100_000 or not fits(layout, largest + 1)
    assert (requests <= largest) == answer.fits


def test_more_than_64_bits_are_refused_by_bytes() -> None:
    fit = MemoryFitRequest(
        model_config_json=LARGEST_CACHE,
        layout=ParallelLayout(tensor_parallel_size=1),
        hardware="dgx-spark",
        context_tokens=10**6,
        request_count=10**5,
    )
    workload = DecodeWorkload(
        model_config_json=LARGEST_CACHE,
        tensor_parallel_size=1,
        request_count=10**5,
        context_tokens=10**6,
        hardware="dgx-spark",
    )
    with pytest.raises(InvalidArgumentError, match=r"request_count.*5\.24e\+19 bytes"):
        ESTIMATOR.check_memory_fit(fit)
    decode = DecodeRequest(workload=workload, link=Link(line_rate_bits_per_second=10**11))
    with pytest.raises(InvalidArgumentError, match=r"workload\.request_count.*2\.62e\+19 bytes"):
        ESTIMATOR.estimate_decode(decode)
    layouts = LayoutComparisonRequest(
        workload=ClusterWorkload(
            model_config_json=LARGEST_CACHE,
            node_count=1,
            prompt_tokens=10**6,
            request_count=10**5,
            hardware="dgx-spark",
        ),
        link=Link(line_rate_bits_per_second=10**11),
    )
    for layout in ESTIMATOR.compare_layouts(layouts).layouts:
        assert layout.memory is None
        assert not layout.feasible
