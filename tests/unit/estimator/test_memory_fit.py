"""Whether everything fits: the parts of a need, the headroom, and what would fit."""

from typing import Any

import pytest
from attrs import evolve

from estimator_service.core import assumptions
from estimator_service.core.memory import (
    activation_bytes,
    check_memory_fit,
    communication_buffer_bytes,
    memory_need,
    memory_reasons,
    runtime_bytes,
    usable_bytes,
)
from linkbound.domain.catalog import Model
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from linkbound.domain.memory import MemoryFit, MemoryFitRequest
from tests.unit.estimator.memory_models import HARDWARE, HEADS_CACHE, QUERIES, group, parts_model, spread, tp
from tests.unit.estimator.models import small_model

GIGABYTE = 10**9
# 8 GB cut, 100 MB kept whole, 800 bytes a token and rank at TP1.
LARGE = parts_model(
    (
        evolve(QUERIES, weight_bytes=8 * GIGABYTE),
        evolve(QUERIES, weight_bytes=GIGABYTE // 10, split=QUERIES.split.REPLICATED),
    ),
    caches=(evolve(HEADS_CACHE, values_per_token=200_000),),
)


def fit(model: Model = LARGE, layout: ParallelLayout | None = None, **changes: Any) -> MemoryFit:
    request = MemoryFitRequest(
        model="small",
        layout=layout or tp(1),
        hardware="box",
        **{"context_tokens": 100, "max_num_batched_tokens": 1, **changes},
    )
    return check_memory_fit(request, model, HARDWARE)


def test_the_parts_add_up_to_the_total_and_the_headroom_to_what_is_usable() -> None:
    answer = fit(layout=tp(2))
    need = answer.need
    assert need.sliced_weight_bytes == 4 * GIGABYTE
    assert need.replicated_weight_bytes == GIGABYTE // 10
    assert need.kv_cache_bytes == answer.kv_cache_bytes == 8 * 100 * 200_000
    assert need.activation_bytes == 70 * 2**20
    assert need.communication_buffer_bytes == 358_612_992
    assert need.runtime_bytes == 3_758_096_384
    assert need.total_bytes == 4_100_000_000 + 160_000_000 + 70 * 2**20 + 358_612_992 + 3_758_096_384
    assert need.usable_bytes == 9 * GIGABYTE
    assert answer.weight_bytes == 4_100_000_000
    assert answer.headroom_bytes == need.usable_bytes - need.total_bytes
    assert answer.fits
    assert answer.layout == tp(2)


def test_not_fitting_is_an_answer() -> None:
    answer = fit()
    assert not answer.fits
    assert answer.headroom_bytes < 0
    assert answer.smallest_tp_that_fits == 2
    assert answer.largest_request_count == 0
    assert memory_reasons(answer.need) == ("a rank needs 12.3 GB of memory and may use 9.0 GB: 3.3 GB are missing",)


def test_nothing_that_fits_at_no_size() -> None:
    assert fit(gpu_memory_utilization_fraction=0.1).smallest_tp_that_fits is None


def test_a_layout_that_the_model_does_not_allow_is_refused() -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        fit(layout=ParallelLayout(tensor_parallel_size=3, pipeline_parallel_size=9))
    assert [violation.field for violation in raised.value.field_violations] == [
        "layout.tensor_parallel_size",
        "layout.pipeline_parallel_size",
    ]


def test_a_smaller_size_need_not_fill_its_nodes() -> None:
    in_one_node = ParallelLayout(tensor_parallel_size=8, ranks_per_node=8)
    assert fit(layout=in_one_node).smallest_tp_that_fits == 2


def test_the_sizes_tried_are_those_that_the_model_can_be_cut_to() -> None:
    # Three ranks would be enough. 12 heads allow 1, 2, 3, 4, 6, 12; 4 key-value heads do not allow 3.
    heavy = evolve(LARGE, attention_head_count=12, parameter_groups=(evolve(QUERIES, weight_bytes=13 * GIGABYTE),))
    assert fit(heavy, gpu_memory_utilization_fraction=1).smallest_tp_that_fits == 4


def test_the_largest_request_count_fits_and_one_more_does_not() -> None:
    largest = fit(layout=tp(4)).largest_request_count
    assert largest > 0
    assert fit(layout=tp(4), request_count=largest).fits
    assert not fit(layout=tp(4), request_count=largest + 1).fits


def test_every_attention_group_has_room_of_its_own() -> None:
    one = fit(layout=tp(4)).largest_request_count
    assert fit(layout=spread(4, 2, ExpertParallelism.ALL_GATHER)).largest_request_count == 2 * one


def test_requests_that_keep_nothing_are_counted_up_to_the_most_that_may_be_asked() -> None:
    nothing = evolve(LARGE, cache_groups=(evolve(HEADS_CACHE, values_per_token=0),))
    answer = fit(nothing, layout=tp(4))
    assert answer.kv_cache_bytes == 0
    assert answer.largest_request_count == 100_000


def test_a_pass_holds_hidden_vectors() -> None:
    model = evolve(small_model(), hidden_size=1000)
    assert activation_bytes(model, tp(1), 100_000) == 11 * 100_000 * 1000 * 2
    assert activation_bytes(model, tp(2), 100_000) == 1_300_000_000
    assert activation_bytes(model, tp(4), 100_000) == activation_bytes(model, tp(64), 100_000) == 10**9
    assert activation_bytes(evolve(model, expert_count=8), tp(4), 100_000) == 2 * 10**9
    assert activation_bytes(model, tp(1), 1) == 70 * 2**20


def test_buffers_come_with_the_second_rank() -> None:
    stages = ParallelLayout(tensor_parallel_size=1, pipeline_parallel_size=2)
    assert [communication_buffer_bytes(layout) for layout in (tp(1), stages, tp(2), tp(8), tp(64))] == [
        0,
        358_612_992,
        358_612_992,
        411_041_792,
        411_041_792,
    ]
    assert runtime_bytes() == 3.5 * 2**30


def test_usable_memory_is_rounded_down() -> None:
    assert usable_bytes(HARDWARE, 1.0) == 10**10
    assert usable_bytes(evolve(HARDWARE, memory_bytes=7), 0.5) == 3


def test_what_no_source_states_is_refused_in_words() -> None:
    unknown = parts_model((group(QUERIES.part, None, parameters=10),), caches=())
    with pytest.raises(InvalidArgumentError) as raised:
        fit(unknown, layout=tp(3))
    assert [violation.field for violation in raised.value.field_violations] == [
        "layout.tensor_parallel_size",
        "weight_bits_per_parameter",
        "model",
    ]
    with pytest.raises(InvalidArgumentError) as raised:
        fit(small_model())
    assert [violation.field for violation in raised.value.field_violations] == ["model", "model"]
    assert memory_need(unknown, tp(2), HARDWARE, 1, 1) is None
    assert memory_reasons(None) == ()


def test_given_bits_answer_for_a_model_that_does_not_say() -> None:
    unknown = parts_model((group(QUERIES.part, None, parameters=16_000),))
    answer = fit(unknown, weight_bits_per_parameter=4.0)
    assert answer.weight_bytes == 8000
    assert assumptions.STORED_BITS.format(4.0) in answer.assumptions


def test_what_is_assumed_is_said() -> None:
    plain = fit(parts_model()).assumptions
    assert plain == (
        assumptions.EMPIRICAL_MEMORY,
        assumptions.FILLED_CACHE,
        assumptions.CACHED_VALUES,
        assumptions.NO_DRAFT_LAYERS,
    )
    drafted = fit(parts_model(), ParallelLayout(tensor_parallel_size=1, pipeline_parallel_size=2), draft_token_count=1)
    assert assumptions.WHOLE_DRAFT_LAYERS in drafted.assumptions
    assert assumptions.EVEN_STAGES in drafted.assumptions
    totals = evolve(small_model(), total_parameters=4000, cache_groups=(HEADS_CACHE,))
    assert assumptions.EVEN_WEIGHTS in fit(totals).assumptions
    assert assumptions.CACHED_FP8_VALUES in fit(parts_model(), cache_value_bytes=1).assumptions


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"context_tokens": 0, "request_count": 0}, ["context_tokens", "request_count"]),
        ({"gpu_memory_utilization_fraction": 1.1}, ["gpu_memory_utilization_fraction"]),
        ({"cache_value_bytes": 3, "max_num_batched_tokens": 0}, ["cache_value_bytes", "max_num_batched_tokens"]),
        (
            {"weight_bits_per_parameter": 0.0, "draft_token_count": 65},
            ["weight_bits_per_parameter", "draft_token_count"],
        ),
        ({"layout": tp(0)}, ["layout.tensor_parallel_size"]),
        ({"model_config_json": "{}"}, ["model_config_json"]),
        ({"hardware": ""}, ["hardware"]),
    ],
)
def test_a_request_says_everything_that_is_wrong_with_it(changes: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        MemoryFitRequest(**{"model": "small", "layout": tp(1), "hardware": "box", "context_tokens": 1, **changes})
    assert [violation.field for violation in raised.value.field_violations] == fields
