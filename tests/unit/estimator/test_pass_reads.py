"""What a pass reads: parts of a model, a stated mean, caches."""

from typing import Any

import attrs
import pytest

from estimator_service.core import assumptions
from estimator_service.core.memory import ReadBytes, weight_bytes_read
from estimator_service.core.pass_reads import (
    active_weight_bytes,
    compared_reads,
    compared_weight_bytes,
    memory_reads,
    stated_mean_is_lower,
)
from linkbound.domain.catalog import CacheGroup, Model, ModelPart, ParameterGroup, WeightSplit
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from linkbound.domain.workload import DecodeWorkload
from tests.unit.estimator.layout_models import cut, decoder


def group(part: ModelPart, count: int, split: WeightSplit = WeightSplit.SLICED) -> ParameterGroup:
    return ParameterGroup(
        part=part,
        parameter_count=count,
        active_parameter_count=count,
        weight_bytes=2 * count,
        split=split,
        layer_count=8,
    )


def model(**changes: Any) -> Model:
    """4,000 parameters that are cut and 1,000 that are not, of two bytes each; 10 values of cache a token and layer."""
    groups = (
        group(ModelPart.DENSE_MLP, 4000),
        group(ModelPart.ATTENTION, 1000, WeightSplit.REPLICATED),
    )
    caches = (CacheGroup(reason="latents", layer_count=8, values_per_token=10),)
    parts = {
        "parameter_groups": groups,
        "cache_groups": caches,
        "total_parameters": 5000,
        "active_parameters": 5000,
        "weight_bits_per_parameter": 16.0,
    }
    return attrs.evolve(decoder(8), **{**parts, **changes})


def test_what_every_rank_holds_is_read_by_each() -> None:
    assert active_weight_bytes(model(), cut(4)) == 2000 + 2000
    assert active_weight_bytes(model(), cut(1)) == 10_000


def test_stages_read_their_layers() -> None:
    assert active_weight_bytes(model(), cut(4, 2)) == 1000 + 1000


def test_a_lower_mean_that_a_source_states_is_a_lower_floor() -> None:
    stated = model(weight_bits_per_parameter=8.0)
    assert stated_mean_is_lower(stated)
    assert active_weight_bytes(stated, cut(4)) == 5000 / 4


def test_parts_that_a_pass_reads_less_of_than_the_stated_mean_are_the_floor() -> None:
    # 1,000 active parameters of one byte would be read; the parts say that 400 of two bytes are.
    embedding = attrs.evolve(group(ModelPart.EMBEDDING, 4600), active_parameter_count=0)
    stated = model(
        parameter_groups=(group(ModelPart.DENSE_MLP, 400), embedding),
        active_parameters=1000,
        weight_bits_per_parameter=8.0,
    )
    assert stated_mean_is_lower(stated)
    assert active_weight_bytes(stated, cut(1)) == 800


@pytest.mark.parametrize("bits", [16.0, 15.9, 24.0])
def test_a_mean_of_the_same_parts_is_no_other_statement(bits: float) -> None:
    assert not stated_mean_is_lower(model(weight_bits_per_parameter=bits))


def test_without_parts_the_mean_counts_and_without_either_nothing_does() -> None:
    assert active_weight_bytes(model(parameter_groups=()), cut(4)) == 2500
    assert active_weight_bytes(model(parameter_groups=(), weight_bits_per_parameter=None), cut(4)) is None


def test_attention_groups_may_share_all_that_is_not_known_by_parts() -> None:
    spread = ParallelLayout(
        tensor_parallel_size=2, data_parallel_size=4, expert_parallelism=ExpertParallelism.ALL_GATHER
    )
    assert active_weight_bytes(model(parameter_groups=()), spread) == 10_000 / 8
    assert weight_bytes_read(model(parameter_groups=()), spread, 1) == ReadBytes(lower_bytes=1250, upper_bytes=5000)
    unknown = model(parameter_groups=())
    said = assumptions.of_weights(1250, unknown, spread, is_mean=True)
    assert said == (assumptions.MEAN_WEIGHT_BITS, assumptions.MEAN_SPREAD_WEIGHTS)
    assert assumptions.of_weights(2500, unknown, cut(4), is_mean=True) == (assumptions.MEAN_WEIGHT_BITS,)
    assert assumptions.of_weights(1250, model(), spread, is_mean=True) == (assumptions.SCALED_WEIGHTS,)
    assert assumptions.of_weights(1250, model(), spread, is_mean=False) == (assumptions.STORED_WEIGHTS,)


def test_attention_groups_of_a_stated_mean_hold_the_parts_that_they_do_not_share() -> None:
    spread = ParallelLayout(
        tensor_parallel_size=2, data_parallel_size=4, expert_parallelism=ExpertParallelism.ALL_GATHER
    )
    # Half of 4,000 parameters and 1,000 whole, none of them experts, at one byte where two are stored.
    assert active_weight_bytes(model(), spread) == 4000 + 2000
    assert active_weight_bytes(model(weight_bits_per_parameter=8.0), spread) == (4000 + 2000) / 2


def reads(context: int | None, **layout: Any) -> tuple[float | None, float]:
    workload = DecodeWorkload(
        model="decoder", tensor_parallel_size=4, request_count=3, context_tokens=context, **layout
    )
    answer = memory_reads(workload, model())
    return answer.cache_bytes, answer.path_bytes


def test_a_context_adds_the_cache_of_every_request() -> None:
    # One byte a value is the least that an engine stores.
    assert reads(100) == (3 * 8 * 100 * 10, 4000 + 3 * 8 * 100 * 10)
    assert reads(None) == (None, 4000)


def test_the_path_goes_through_the_cache_of_every_stage() -> None:
    cache, path = reads(100, pipeline_parallel_size=2)
    assert cache == 3 * 4 * 100 * 10
    assert path == reads(100)[1]


def test_layouts_compare_by_parts_whatever_mean_a_source_states() -> None:
    stored, stated = model(), model(weight_bits_per_parameter=8.0)
    for layout in (cut(1), cut(2), cut(4), cut(8), cut(4, 2), cut(1, 8)):
        whole = compared_weight_bytes(stored, layout)
        assert whole == active_weight_bytes(stored, layout)
        # Half the bits for each part: every layout keeps its place.
        assert compared_weight_bytes(stated, layout) == pytest.approx(whole / 2 if whole else None)
    assert compared_weight_bytes(stated, cut(1)) == active_weight_bytes(stated, cut(1)) == 5000
    # Cut evenly the group would read 1,250 bytes, as if 1,000 parameters were not whole on each of its ranks.
    assert compared_weight_bytes(stated, cut(4)) == 2000


def compared(requests: int, model: Model, drafts: int = 0, context: int | None = None) -> tuple[float, float]:
    workload = DecodeWorkload(
        model="decoder",
        tensor_parallel_size=4,
        request_count=requests,
        draft_token_count=drafts,
        context_tokens=context,
    )
    answer = compared_reads(workload, model)
    return answer.least_bytes, answer.most_bytes


def test_rows_may_share_what_they_read_or_not() -> None:
    experts = attrs.evolve(group(ModelPart.ROUTED_EXPERTS, 4000), active_parameter_count=500)
    mixed = model(parameter_groups=(experts,), total_parameters=4000, active_parameters=500)
    assert compared(1, mixed) == (250, 250)
    assert compared(3, mixed) == (250, 750)
    assert compared(3, mixed, drafts=1) == (250, 1500)
    assert compared(100, mixed) == (250, 2000)
    cache = 3 * 8 * 100 * 10
    assert compared(3, model(), drafts=1, context=100) == (4000 + cache, 4000 + 2 * cache)
    # At half of the bits both ends are half.
    assert compared(3, attrs.evolve(mixed, weight_bits_per_parameter=8.0)) == (125, 375)


def test_of_totals_alone_groups_share_all_weights_or_none() -> None:
    spread = DecodeWorkload(
        model="decoder",
        tensor_parallel_size=2,
        data_parallel_size=4,
        expert_parallelism=ExpertParallelism.ALL_GATHER,
        request_count=4,
    )
    answer = compared_reads(spread, model(parameter_groups=()))
    assert (answer.least_bytes, answer.most_bytes) == (1250, 5000)


def test_without_parts_there_is_nothing_but_an_even_cut_to_compare_by() -> None:
    assert compared_weight_bytes(model(parameter_groups=()), cut(4)) == 2500
    assert compared_weight_bytes(model(parameter_groups=(), weight_bits_per_parameter=None), cut(4)) is None
    assert assumptions.of_compared_weights(model(), is_scaled=True) == (
        assumptions.STORED_WEIGHTS,
        assumptions.RANKED_WEIGHTS,
    )
    assert assumptions.of_compared_weights(model(), is_scaled=False) == (assumptions.STORED_WEIGHTS,)
    assert assumptions.of_compared_weights(model(parameter_groups=()), is_scaled=False) == (
        assumptions.MEAN_WEIGHT_BITS,
    )
