"""Weights of the fullest rank by another route: every tensor of every layer is dealt out to every rank, one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_service.core.memory import cache_bytes_of_rank, weights_of_rank
from linkbound.domain.catalog import CacheGroup, Model, ModelPart, ParameterGroup, WeightSplit
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from tests.unit.estimator.models import small_model

VALUE_BYTES = 2
Rank = tuple[int, int, int]
"""Stage, tensor-parallel rank, attention group."""


@frozen(kw_only=True)
class Decoder:
    """A decoder whose widths every size divides: dense layers first, then layers with experts."""

    layer_count: int
    dense_count: int
    hidden: int
    key_value_heads: int
    head_width: int
    expert_count: int
    expert_width: int
    vocabulary: int


@frozen(kw_only=True)
class Cut:
    """How it is dealt out."""

    tensor: int
    stages: int
    groups: int
    whole_experts: bool


def stage_of_layer(layer_count: int, stage_count: int) -> list[int]:
    """vLLM's rule: equal shares; one layer more for the stages from the last but one backwards."""
    sizes = [layer_count // stage_count] * stage_count
    for step in range(layer_count % stage_count):
        sizes[-2 - step] += 1
    return [stage for stage, size in enumerate(sizes) for _ in range(size)]


def dealt_out(decoder: Decoder, cut: Cut) -> Iterator[tuple[Rank, int]]:
    """Every tensor as (rank, values) pairs, once for each rank that holds some of it."""
    every = [(t, d) for t in range(cut.tensor) for d in range(cut.groups)]
    for t, d in every:
        yield (0, t, d), decoder.vocabulary * decoder.hidden // cut.tensor
        yield (cut.stages - 1, t, d), decoder.vocabulary * decoder.hidden // cut.tensor
    for layer, stage in enumerate(stage_of_layer(decoder.layer_count, cut.stages)):
        for t, d in every:
            rank = (stage, t, d)
            yield rank, 4 * decoder.hidden * decoder.hidden // cut.tensor
            heads = [head for head in range(decoder.key_value_heads) if owns(head, t, cut, decoder)]
            yield rank, 2 * len(heads) * decoder.head_width * decoder.hidden
            yield rank, 2 * decoder.hidden
            if layer < decoder.dense_count:
                yield rank, 3 * decoder.hidden * 4 * decoder.hidden // cut.tensor
        if layer >= decoder.dense_count:
            yield from experts_dealt_out(decoder, cut, stage, every)


def owns(head: int, tensor_rank: int, cut: Cut, decoder: Decoder) -> bool:
    if cut.tensor >= decoder.key_value_heads:
        return head == tensor_rank * decoder.key_value_heads // cut.tensor
    return head // (decoder.key_value_heads // cut.tensor) == tensor_rank


def experts_dealt_out(
    decoder: Decoder, cut: Cut, stage: int, every: list[tuple[int, int]]
) -> Iterator[tuple[Rank, int]]:
    for expert in range(decoder.expert_count):
        values = 3 * decoder.hidden * decoder.expert_width
        if cut.whole_experts:
            yield (stage, *every[expert % len(every)]), values
        else:
            for t, d in every:
                yield (stage, t, d), values // len(every)


def as_model(decoder: Decoder) -> Model:
    """The same decoder in groups."""
    layers, hidden = decoder.layer_count, decoder.hidden
    moe_count = layers - decoder.dense_count
    sizes = [
        (ModelPart.EMBEDDING, decoder.vocabulary * hidden, WeightSplit.SLICED, 0),
        (ModelPart.LM_HEAD, decoder.vocabulary * hidden, WeightSplit.SLICED, 0),
        (ModelPart.ATTENTION, layers * 4 * hidden * hidden, WeightSplit.SLICED, layers),
        (
            ModelPart.ATTENTION,
            layers * 2 * decoder.key_value_heads * decoder.head_width * hidden,
            WeightSplit.KEY_VALUE_HEADS,
            layers,
        ),
        (ModelPart.NORM, layers * 2 * hidden, WeightSplit.REPLICATED, layers),
        (ModelPart.DENSE_MLP, decoder.dense_count * 12 * hidden * hidden, WeightSplit.SLICED, decoder.dense_count),
        (
            ModelPart.ROUTED_EXPERTS,
            moe_count * decoder.expert_count * 3 * hidden * decoder.expert_width,
            WeightSplit.SLICED,
            moe_count,
        ),
    ]
    groups = tuple(
        ParameterGroup(
            part=part,
            parameter_count=count,
            active_parameter_count=0,
            weight_bytes=VALUE_BYTES * count,
            split=split,
            layer_count=layer_count,
        )
        for part, count, split, layer_count in sizes
        if count
    )
    return evolve(
        small_model(),
        layer_count=layers,
        key_value_head_count=decoder.key_value_heads,
        expert_count=decoder.expert_count,
        parameter_groups=groups,
    )


@st.composite
def decoders(draw: st.DrawFn) -> Decoder:
    layer_count = draw(st.integers(2, 24))
    return Decoder(
        layer_count=layer_count,
        dense_count=draw(st.integers(0, min(4, layer_count - 1))),
        hidden=64 * draw(st.integers(1, 4)),
        key_value_heads=draw(st.sampled_from([1, 2, 4, 8])),
        head_width=draw(st.integers(1, 8)),
        expert_count=draw(st.integers(1, 12)),
        expert_width=64 * draw(st.integers(1, 4)),
        vocabulary=64 * draw(st.integers(1, 40)),
    )


CUTS = st.builds(
    Cut,
    tensor=st.sampled_from([1, 2, 4, 8]),
    stages=st.integers(1, 12),
    groups=st.sampled_from([1, 2, 4]),
    whole_experts=st.booleans(),
)


@settings(max_examples=500)
@given(decoder=decoders(), cut=CUTS)
def test_the_fullest_rank_holds_what_dealing_out_gives_it(decoder: Decoder, cut: Cut) -> None:
    held: Counter[Rank] = Counter()
    for rank, values in dealt_out(decoder, cut):
        held[rank] += VALUE_BYTES * values
    layout = ParallelLayout(
        tensor_parallel_size=cut.tensor,
        pipeline_parallel_size=cut.stages,
        data_parallel_size=cut.groups,
        expert_parallelism=ExpertParallelism.ALL_GATHER if cut.whole_experts else ExpertParallelism.UNSPECIFIED,
    )
    weights = weights_of_rank(as_model(decoder), layout)
    assert weights is not None
    assert weights.total_bytes == max(held.values())


def cached(cache: CacheGroup, size: int, cache_value_bytes: int, tokens: int = 1) -> int:
    model = evolve(small_model(), layer_count=cache.layer_count, cache_groups=(cache,))
    kept = cache_bytes_of_rank(model, ParallelLayout(tensor_parallel_size=size), tokens, 1, cache_value_bytes)
    assert kept is not None
    return kept


def test_published_cache_sizes_of_a_token() -> None:
    """Multi-head latent attention of DeepSeek-V3: 70 KB; Llama 3.1 70B: 320 KiB; FP8 cache of sparse MLA: 656 bytes."""
    latents = CacheGroup(reason="latents", layer_count=61, values_per_token=512 + 64, fp8_bytes_per_token=656)
    assert cached(latents, 8, 2) == 70_272
    assert cached(latents, 8, 1) == 61 * 656
    llama = CacheGroup(reason="heads", layer_count=80, values_per_token=2 * 8 * 128, split_head_count=8)
    assert cached(llama, 1, 2) == 320 * 1024
    assert cached(llama, 8, 2) == cached(llama, 16, 2) == 40 * 1024


def test_a_published_measurement_of_weights() -> None:
    """Qwen3-235B-A22B in GPTQ-Int4 on two DGX Spark, TP2: vLLM reported 57.64 GiB on each node.

    Counted from its config: 235,093,634,560 parameters, of them 2 x 151,936 x 4,096 in the embedding and the head and
    94 x 128 x 4,096 in the routers, both 16 bit; the rest 4 bits with a 16-bit scale for each 128. What vLLM keeps of
    zero points, and norms, is below 1 %.
    """
    total, table, routers = 235_093_634_560, 151_936 * 4_096, 94 * 128 * 4_096
    quantised = total - 2 * table - routers
    sizes = [
        (ModelPart.EMBEDDING, 2 * table, WeightSplit.SLICED, 0),
        (ModelPart.LM_HEAD, 2 * table, WeightSplit.SLICED, 0),
        (ModelPart.ROUTER, 2 * routers, WeightSplit.REPLICATED, 94),
        (ModelPart.ROUTED_EXPERTS, round(quantised * (4 + 16 / 128) / 8), WeightSplit.SLICED, 94),
    ]
    groups = tuple(
        ParameterGroup(
            part=part,
            parameter_count=weight_bytes,
            active_parameter_count=0,
            weight_bytes=weight_bytes,
            split=split,
            layer_count=layer_count,
        )
        for part, weight_bytes, split, layer_count in sizes
    )
    model = evolve(small_model(), layer_count=94, parameter_groups=groups)
    weights = weights_of_rank(model, ParallelLayout(tensor_parallel_size=2))
    assert weights is not None
    assert abs(weights.total_bytes / 2**30 / 57.64 - 1) < 0.01
