"""What a config leaves open about how its weights are stored is told by every answer that counts them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from estimator_service.core.assumptions import WEIGHTS_OF_THE_DATA_TYPE
from estimator_service.service import Estimator, default_estimator
from linkbound.domain.calibration import CollectivePoint, CollectiveTable
from linkbound.domain.catalog import ImportModelRequest, Model, WeightFormatSource
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.estimate import Effect
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.layout_comparison import LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendationRequest
from linkbound.domain.link import Link
from linkbound.domain.memory import MemoryFitRequest
from linkbound.domain.planning import PlanRequest, PlanStatus
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.words import IF_OF_THE_DATA_TYPE
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from tests.unit.architecture.configs import PUBLISHED, SMALL

# 70 B of Llama 2: 138 GB in BF16, which one DGX Spark does not hold and two do.
LARGE = {**PUBLISHED["llama-2-7b"]["config"]}
LARGE |= {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64}
LARGE |= {"num_key_value_heads": 8}
FP8 = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
LINK = Link(line_rate_bits_per_second=200 * 10**9)
SPARK = "dgx-spark"

IMPORTS: dict[str, dict[str, Any]] = {
    "open": {},
    "in the config": {"config_json": json.dumps({**LARGE, "quantization_config": {"quant_method": "fp8"}})},
    "in the file beside it": {"quantization_json": json.dumps(FP8)},
    "given": {"weight_bits_per_parameter": 16.0},
}


def estimator_with(directory: Path, **more: Any) -> Estimator:
    estimator = default_estimator(lambda: directory)
    estimator.import_model(ImportModelRequest(**{"model": "mine", "config_json": json.dumps(LARGE), **more}))
    return estimator


@pytest.fixture(name="open_model")
def estimator_of_an_open_model(tmp_path: Path) -> Estimator:
    return estimator_with(tmp_path)


def decode(estimator: Estimator) -> Any:
    workload = DecodeWorkload(model="mine", tensor_parallel_size=1, hardware=SPARK)
    return estimator.estimate_decode(DecodeRequest(workload=workload, link=LINK))


def memory(estimator: Estimator, *, size: int = 1, **more: Any) -> Any:
    layout = ParallelLayout(tensor_parallel_size=size)
    request = MemoryFitRequest(model="mine", layout=layout, hardware=SPARK, context_tokens=4096, **more)
    return estimator.check_memory_fit(request)


def cluster(node_count: int = 1) -> ClusterWorkload:
    return ClusterWorkload(model="mine", node_count=node_count, prompt_tokens=4096, hardware=SPARK)


def layouts(estimator: Estimator, node_count: int = 1) -> Any:
    return estimator.compare_layouts(LayoutComparisonRequest(workload=cluster(node_count), link=LINK))


def recommendation(estimator: Estimator) -> Any:
    return estimator.recommend_layout(LayoutRecommendationRequest(workload=cluster(), link=LINK, reference_link=LINK))


def projection(estimator: Estimator) -> Any:
    return estimator.project_tp_sizes(
        TpProjectionRequest(
            workload=PrefillWorkload(model="mine", tensor_parallel_size=8, prompt_tokens=4096),
            baseline_ttft_seconds=10.0,
            link=LINK,
            to_link=LINK,
            tensor_parallel_sizes=(1, 8),
            hardware=SPARK,
        )
    )


def plan(estimator: Estimator) -> Any:
    return estimator.check_plan(
        PlanRequest(node_count=1, link=LINK, model="mine", tensor_parallel_size=1, prompt_tokens=4096, hardware=SPARK)
    )


ANSWERS: dict[str, Callable[[Estimator], Any]] = {
    "decode": decode,
    "memory": memory,
    "layouts": layouts,
    "recommendation": recommendation,
    "projection": projection,
    "plan": plan,
}
"""Every answer that counts bytes of weights."""


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("source", IMPORTS)
def test_every_answer_assumes_it_once_or_not_at_all(tmp_path: Path, answer: str, source: str) -> None:
    assumptions = ANSWERS[answer](estimator_with(tmp_path, **IMPORTS[source])).assumptions
    assert assumptions.count(WEIGHTS_OF_THE_DATA_TYPE) == (source == "open")
    assert len(set(assumptions)) == len(assumptions)


@pytest.mark.parametrize("source", IMPORTS)
def test_times_that_read_weights_leave_their_format_out(tmp_path: Path, source: str) -> None:
    answer = decode(estimator_with(tmp_path, **IMPORTS[source]))
    of_weights = [answer.memory_seconds, answer.pass_seconds, answer.output_tokens_per_second]
    assert {Effect.WEIGHT_FORMAT in one.effects_left_out for one in of_weights} == {source == "open"}
    assert Effect.WEIGHT_FORMAT not in answer.network_seconds.effects_left_out


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("is_calibrated", [False, True])
@pytest.mark.parametrize("stage_count", [1, 2])
def test_every_figure_of_a_pass_that_rests_on_weights_leaves_their_format_out(
    tmp_path: Path, stage_count: int, *, is_open: bool, is_calibrated: bool
) -> None:
    workload = DecodeWorkload(model="mine", tensor_parallel_size=2, pipeline_parallel_size=stage_count, hardware=SPARK)
    table = CollectiveTable(
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=2,
        points=(
            CollectivePoint(message_bytes=1024, seconds=2e-5),
            CollectivePoint(message_bytes=2**20, seconds=1e-4),
        ),
    )
    answer = estimator_with(tmp_path, **IMPORTS["open" if is_open else "given"]).estimate_decode(
        DecodeRequest(
            workload=workload,
            link=LINK,
            to_link=Link(line_rate_bits_per_second=10**9),
            collective_table=table if is_calibrated else None,
        )
    )
    rests = (
        *(answer.memory_seconds, answer.pass_seconds, answer.traffic_bits_per_second),
        *(answer.extra_pass_fraction, answer.output_tokens_per_second),
    )
    assert [estimate is not None and Effect.WEIGHT_FORMAT in estimate.effects_left_out for estimate in rests] == [
        is_open
    ] * len(rests)
    for other in (answer.network_seconds, answer.extra_pass_seconds):
        assert other is not None
        assert Effect.WEIGHT_FORMAT not in other.effects_left_out


def test_without_hardware_no_time_rests_on_a_format(open_model: Estimator) -> None:
    workload = DecodeWorkload(model="mine", tensor_parallel_size=8)
    answer = open_model.estimate_decode(DecodeRequest(workload=workload, link=LINK))
    assert Effect.WEIGHT_FORMAT not in answer.pass_seconds.effects_left_out
    assert WEIGHTS_OF_THE_DATA_TYPE not in answer.assumptions


def test_what_does_not_fit_says_on_what_it_hangs(open_model: Estimator) -> None:
    fit = memory(open_model)
    assert (fit.fits, fit.need.weight_format_source) == (False, WeightFormatSource.DATA_TYPE)
    reasons = [
        *(one.reasons for one in layouts(open_model).layouts),
        *(option.reasons for option in recommendation(open_model).options),
        projection(open_model).projections[0].reasons,
    ]
    assert all(any(reason.endswith(IF_OF_THE_DATA_TYPE) for reason in of_one) for of_one in reasons)
    (item,) = [item for item in plan(open_model).items if item.topic == "memory"]
    assert item.status is PlanStatus.CONCERN
    assert any(answer.endswith(f"are short, {IF_OF_THE_DATA_TYPE}.") for answer in item.answers)
    assert all(answer.endswith(f", {IF_OF_THE_DATA_TYPE}.") for answer in item.answers)
    assert any("how it is quantised" in advice for advice in item.advice)


@pytest.mark.parametrize("source", [source for source in IMPORTS if source != "open"])
def test_what_is_stated_hangs_on_nothing(tmp_path: Path, source: str) -> None:
    estimator = estimator_with(tmp_path, **IMPORTS[source])
    assert memory(estimator).need.weight_format_source is WeightFormatSource.STATED
    texts = [
        *(reason for one in layouts(estimator).layouts for reason in one.reasons),
        *(reason for option in recommendation(estimator).options for reason in option.reasons),
        *(text for item in plan(estimator).items for text in (*item.answers, *item.advice)),
    ]
    assert not any(IF_OF_THE_DATA_TYPE in text or "how it is quantised" in text for text in texts)


def test_what_fits_as_counted_fits_in_any_format(open_model: Estimator) -> None:
    """Other formats are smaller: no reason hangs on it, and FP8 leaves more room."""
    counted, in_fp8 = memory(open_model, size=2), memory(open_model, size=2, weight_bits_per_parameter=8.0)
    assert counted.fits
    assert in_fp8.fits
    assert in_fp8.headroom_bytes > counted.headroom_bytes
    assert all(not one.reasons for one in layouts(open_model, 2).layouts if one.feasible)


def test_choices_between_layouts_say_it_with_their_times(open_model: Estimator) -> None:
    answer = layouts(open_model, 2)
    for choice in (answer.single_stream, answer.batched):
        assert any(f"holds {IF_OF_THE_DATA_TYPE}." in reason for reason in choice.reasons)


def test_bits_of_the_question_settle_it(open_model: Estimator) -> None:
    answer = memory(open_model, weight_bits_per_parameter=4.5)
    assert (answer.fits, answer.need.weight_format_source) == (True, WeightFormatSource.STATED)
    assert WEIGHTS_OF_THE_DATA_TYPE not in answer.assumptions


def test_a_projection_carries_the_memory_of_each_size(open_model: Estimator) -> None:
    one, eight = projection(open_model).projections
    assert one.memory == memory(open_model).need
    assert eight.memory.total_bytes < eight.memory.usable_bytes


def imported(config: dict[str, Any], **more: Any) -> Model:
    request = ImportModelRequest(config_json=json.dumps(config), validate_only=True, **more)
    return default_estimator().import_model(request)


@pytest.mark.parametrize(
    ("config", "source"),
    [
        (SMALL, WeightFormatSource.DATA_TYPE),
        ({**SMALL, "torch_dtype": None}, WeightFormatSource.DATA_TYPE),
        ({**SMALL, "quantization_config": {}}, WeightFormatSource.DATA_TYPE),
        ({**SMALL, "quantization_config": {"quant_method": "fp8"}}, WeightFormatSource.STATED),
        (
            {**SMALL, "quantization_config": {"quant_method": "modelopt", "quant_algo": None}},
            WeightFormatSource.UNSPECIFIED,
        ),
        ({**SMALL, "quantization_config": {"quant_algo": None}}, WeightFormatSource.STATED),
        ({**SMALL, "quantization_config": {"quant_method": "wishful"}}, WeightFormatSource.UNSPECIFIED),
        ({**SMALL, "torch_dtype": "wombat"}, WeightFormatSource.UNSPECIFIED),
    ],
)
def test_where_a_format_comes_from(config: dict[str, Any], source: WeightFormatSource) -> None:
    read = imported(config)
    assert read.weight_format_source is source
    assert all(
        (group.weight_bytes is None) == (source is WeightFormatSource.UNSPECIFIED) for group in read.parameter_groups
    )
    assert any("hf_quant_config.json" in sentence for sentence in read.assumptions) == (
        source is WeightFormatSource.DATA_TYPE or config.get("torch_dtype") == "wombat"
    )
