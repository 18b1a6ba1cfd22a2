"""The same questions to every estimator client: equal answers, and equal errors to bad ones."""

import json
import math
from typing import Any

import pytest
from attrs import evolve

from linkbound import (
    BurstPoint,
    BurstTable,
    CollectiveAlgorithm,
    CollectiveKind,
    CollectivePoint,
    CollectiveRequest,
    CollectiveTable,
    DecodeRequest,
    DecodeWorkload,
    EmulatedLink,
    EnginePoint,
    EngineRequest,
    EngineTable,
    Error,
    ExpertParallelism,
    Link,
    LinkComparisonRequest,
    MemoryFitRequest,
    ParallelLayout,
    PrefillRequest,
    PrefillWorkload,
    SchedulerSettings,
    SweepAxis,
    SweepRange,
    SweepVariable,
    TpProjectionRequest,
    TrainingSharding,
    TrainingStepRequest,
)
from tests.congruence.callers import Call, Caller, Failure, call
from tests.congruence.conftest import KINDS
from tests.unit.architecture.configs import SMALL_MOE

CONFIG = json.dumps(SMALL_MOE)
PREFILL: dict[str, Any] = {"model": "glm-5.3", "tensor_parallel_size": 8, "prompt_tokens": 8192, "link": "200g"}
DECODE: dict[str, Any] = {"model": "glm-5.3", "tensor_parallel_size": 8, "link": "200g"}
STEP: dict[str, Any] = {
    "gradient_bytes": 15_231_233_024,
    "rank_count": 4,
    "link": "22.07GB/s",
    "compute_step_seconds": 2.289,
}
OF_MODEL: dict[str, Any] = {**{key: STEP[key] for key in STEP if key != "gradient_bytes"}, "model": "qwen2.5-7b"}
MEASURED = CollectiveTable(
    kind=CollectiveKind.ALL_REDUCE,
    rank_count=4,
    points=(
        CollectivePoint(message_bytes=16_384, seconds=1e-4),
        CollectivePoint(message_bytes=67_108_864, seconds=5e-3),
    ),
)
ALL_REDUCE: dict[str, Any] = {
    "kind": CollectiveKind.ALL_REDUCE,
    "rank_count": 8,
    "link": "200g",
    "message_bytes": 10_240,
}
TIMES = CollectiveTable(
    kind=CollectiveKind.ALL_REDUCE,
    rank_count=8,
    points=(
        CollectivePoint(message_bytes=16_384, seconds=1.3e-4),
        CollectivePoint(message_bytes=67_108_864, seconds=5e-3),
        CollectivePoint(message_bytes=16_384, seconds=1.4e-4),
    ),
)
PROMPTS = PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=8192)
GENERATION = DecodeWorkload(model="glm-5.3", tensor_parallel_size=8, draft_token_count=4)
PROJECTION: dict[str, Any] = {
    "workload": PROMPTS,
    "baseline_ttft_seconds": 6.36,
    "link": "200g",
    "to_link": "100g",
    "tensor_parallel_sizes": [2, 4, 8, 16],
}
SWEEP: dict[str, Any] = {
    "workload": PROMPTS,
    "link": "200g",
    "axes": [
        SweepAxis(variable=SweepVariable.TENSOR_PARALLEL_SIZE, values=(4, 7, 8)),
        SweepAxis(variable=SweepVariable.PROMPT_TOKENS, range=SweepRange(first=1000, step=500, value_count=8)),
    ],
}
FAST = Link(line_rate_bits_per_second=200_000_000_000)
QUESTIONS = [
    PrefillRequest(workload=PROMPTS, link=FAST, to_link=Link(line_rate_bits_per_second=10**11)),
    DecodeRequest(workload=GENERATION, link=FAST),
    CollectiveRequest(kind=CollectiveKind.ALL_REDUCE, rank_count=4, link=FAST),
    TrainingStepRequest(gradient_bytes=10**10, rank_count=4, link=FAST, compute_step_seconds=2.0),
    LinkComparisonRequest(decode=GENERATION, old_link=FAST, new_link=FAST),
    TpProjectionRequest(
        workload=PROMPTS, baseline_ttft_seconds=6.36, link=FAST, to_link=FAST, tensor_parallel_sizes=(2, 7)
    ),
    MemoryFitRequest(
        model="glm-5.3", layout=ParallelLayout(tensor_parallel_size=8), hardware="dgx-spark", context_tokens=8192
    ),
    PrefillRequest(workload=evolve(PROMPTS, model="glm-5.4"), link=FAST),
    PrefillRequest(workload=evolve(PROMPTS, tensor_parallel_size=7), link=FAST, baseline_ttft_seconds=1e-9),
    DecodeRequest(workload=evolve(GENERATION, hardware="dgx-sparc"), link=FAST),
]
"""One of each kind, and some that end with an error."""
TARGET: dict[str, Any] = {
    "workload": PROMPTS,
    "target_ttft_seconds": 7.0,
    "baseline_link": "200g",
    "baseline_ttft_seconds": 6.36,
}
PLAN: dict[str, Any] = {
    "model": "glm-5.3",
    "node_count": 16,
    "link": "100g",
    "reference_link": "200g",
    "tensor_parallel_size": 8,
    "prompt_tokens": 32768,
    "target_ttft_seconds": 30.0,
    "baseline_ttft_seconds": 27.02,
    "switch": "crs804",
    "hardware": "dgx-spark",
    "counter_interval_seconds": 1e-3,
}
FIT: dict[str, Any] = {
    "model": "glm-5.3",
    "layout": ParallelLayout(tensor_parallel_size=8),
    "hardware": "dgx-spark",
    "context_tokens": 262_144,
}
REFINED = Link(line_rate_bits_per_second=200_000_000_000, roce_mtu_bytes=4096, pcie_function_count=1)

WITHIN_NODES: dict[str, Any] = {"ranks_per_node": 2, "inner_link": "450GB/s"}
EXPERTS: dict[str, Any] = {"data_parallel_size": 8, "expert_parallelism": ExpertParallelism.ALL_TO_ALL}
NODES: dict[str, Any] = {"model": "llama-3.1-70b", "node_count": 4, "link": "100g", "prompt_tokens": 4096}

SCHEDULER = SchedulerSettings(
    engine="vllm-0.32", max_num_batched_tokens=4096, long_prefill_token_threshold=2048, max_num_seqs=8
)
ASKED = [EngineRequest(prompt_tokens=8192, output_tokens=100), EngineRequest(prompt_tokens=3000, output_tokens=1)]
IN_TURN = [EngineRequest(prompt_tokens=4096, output_tokens=9, arrival_seconds=seconds) for seconds in (0.0, 0.5, 30.0)]
SPARK = "glm-5.3-dgx-spark-8-200g"
ENGINE = EngineTable(
    model="glm-5.3",
    layout=ParallelLayout(tensor_parallel_size=8),
    link=FAST,
    scheduler=SCHEDULER,
    points=(
        EnginePoint(label="one", requests=tuple(ASKED[:1]), ttft_seconds=(6.4,), output_tokens_per_second=20.0),
        EnginePoint(label="two", requests=tuple(ASKED), last_ttft_seconds=9.5, mean_ttft_seconds=8.0),
        EnginePoint(
            label="long", requests=(EngineRequest(prompt_tokens=65536, output_tokens=9),), ttft_seconds=(56.0,)
        ),
    ),
)
BURSTS = BurstTable(
    points=(BurstPoint(message_bytes=5 * 10**7, least_bits_per_second=10**11, largest_bits_per_second=10**11),)
)
OVER: dict[str, Any] = {"model": "glm-5.3", "layout": ParallelLayout(tensor_parallel_size=8), "link": "200g"}
TIGHT = evolve(SCHEDULER, kv_block_count=700)

GOOD = [
    call("estimate_schedule", ASKED, scheduler=SCHEDULER),
    call("estimate_schedule", ASKED),
    call("stream_schedule", ASKED),
    call("stream_schedule", [EngineRequest(prompt_tokens=1, output_tokens=1)] * 4500, **OVER),
    call("estimate_schedule", [evolve(ASKED[0], arrival_pass=number) for number in (0, 7, 500)], scheduler=TIGHT),
    call(
        "estimate_schedule",
        [EngineRequest(prompt_tokens=5, output_tokens=1 + index) for index in range(900)],
        scheduler=SchedulerSettings(
            max_num_batched_tokens=10**6, draft_token_count=2, accepted_draft_tokens_per_pass=0.1
        ),
    ),
    call("estimate_schedule", ASKED, scheduler=SCHEDULER, **OVER),
    call("estimate_schedule", ASKED, scheduler=SCHEDULER, **OVER, to_link="109g", collective_table=TIMES),
    call("estimate_schedule", ASKED, scheduler=SCHEDULER, **{**OVER, "model": ""}, model_config_json=CONFIG),
    call("estimate_schedule", ASKED * 2, engine_calibration=SPARK, to_link="109g", arrivals_may_split=True),
    call("estimate_schedule", ASKED, engine_calibration=f"engineCalibrations/{SPARK}", scheduler=TIGHT),
    call("estimate_schedule", IN_TURN, engine_table=ENGINE, to_link=REFINED, to_bursts=BURSTS),
    call("estimate_schedule", ASKED, engine_table=ENGINE, layout=ParallelLayout(tensor_parallel_size=4)),
    call("fit_engine_calibration", ENGINE),
    call("fit_engine_calibration", ENGINE, sources=["a rack"]),
    call("list_engine_calibrations"),
    call("get_engine_calibration", SPARK),
    call("get_engine_calibration", f"engineCalibrations/{SPARK}"),
    call("estimate_prefill", **PREFILL),
    call("estimate_prefill", **PREFILL, to_link="109g", baseline_ttft_seconds=6.36, max_num_batched_tokens=4096),
    call("estimate_prefill", **{**PREFILL, "link": REFINED}, to_link=REFINED, request_count=4),
    call("estimate_decode", **DECODE),
    call(
        "estimate_decode",
        **DECODE,
        to_link="100g",
        request_count=4,
        draft_token_count=4,
        acceptance_length_tokens=2.5,
        hardware="dgx-spark",
    ),
    call("estimate_collective", kind=CollectiveKind.ALL_REDUCE, rank_count=4, link="25GB/s"),
    call("estimate_collective", kind=CollectiveKind.ALL_TO_ALL, rank_count=8, link=REFINED, message_bytes=10**9),
    call(
        "estimate_collective",
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=16,
        ranks_per_node=8,
        link="200g",
        inner_link="450GB/s",
        algorithm=CollectiveAlgorithm.AUTO,
        message_bytes=2**20,
    ),
    call("estimate_collective", **ALL_REDUCE, calibration="dgx-spark-8-switch"),
    call("estimate_collective", **ALL_REDUCE, collective_table=TIMES),
    call("fit_calibration", TIMES),
    call("fit_calibration", TIMES, sources=["a rack"]),
    call("list_calibrations"),
    call("get_calibration", "dgx-spark-pair"),
    call("get_calibration", "calibrations/dgx-spark-pair"),
    call("estimate_training_step", **STEP),
    call("estimate_training_step", **{**STEP, "rank_count": 1}),
    call("estimate_training_step", **OF_MODEL, value_bytes=4),
    call("estimate_training_step", **OF_MODEL, lora_parameters=2_500_000, sharding=TrainingSharding.FULL),
    call("estimate_training_step", **STEP, collective_table=MEASURED),
    call("estimate_training_step", **{**OF_MODEL, "model": ""}, model_config_json=CONFIG),
    call("compare_links", workload=PROMPTS, old_link="200g", new_link="100g"),
    call("compare_links", workload=GENERATION, old_link="10g", new_link="200g", baseline_seconds=0.1),
    call(
        "compare_links",
        workload=PROMPTS,
        old_link="200g",
        new_link="100g",
        baseline_seconds=6.36,
        emulation=EmulatedLink(
            link=Link(line_rate_bits_per_second=109_000_000_000),
            ttft_seconds=7.24,
            counter_bytes_per_prompt_token=3570000,
        ),
    ),
    call("project_tp_sizes", **PROJECTION),
    call(
        "estimate_prefill", **{**PREFILL, "tensor_parallel_size": 4}, pipeline_parallel_size=2, sequence_parallel=True
    ),
    call("estimate_prefill", **PREFILL, **WITHIN_NODES, rank_links=["100g", REFINED], collective_table=TIMES),
    call("estimate_prefill", **{**PREFILL, "tensor_parallel_size": 1}, **EXPERTS, to_link="100g"),
    call("estimate_decode", **DECODE, **WITHIN_NODES, context_tokens=8192, hardware="dgx-spark"),
    call("estimate_decode", **{**DECODE, "tensor_parallel_size": 1}, **EXPERTS, request_count=9),
    call("estimate_decode", **DECODE, collective_table=TIMES, to_link="100g"),
    call(
        "compare_links", workload=evolve(PROMPTS, ranks_per_node=8), old_link="200g", new_link="1g", inner_link="400g"
    ),
    call("compare_layouts", **NODES, request_count=32, hardware="dgx-spark"),
    call("compare_layouts", **{**NODES, "model": "glm-5.3"}, **WITHIN_NODES, output_tokens=1, draft_token_count=4),
    call("compare_layouts", **NODES, collective_table=TIMES),
    call("recommend_layout", **NODES, reference_link="400g"),
    call(
        "recommend_layout", **NODES, reference_link="400g", baseline_tensor_parallel_size=4, baseline_ttft_seconds=9.0
    ),
    call("project_tp_sizes", **PROJECTION, hardware="dgx-spark"),
    call("check_memory_fit", **FIT),
    call(
        "check_memory_fit",
        **{**FIT, "layout": ParallelLayout(tensor_parallel_size=1, pipeline_parallel_size=4)},
        request_count=3,
        gpu_memory_utilization_fraction=0.726,
        cache_value_bytes=1,
        max_num_batched_tokens=4096,
        weight_bits_per_parameter=4.36,
        draft_token_count=4,
    ),
    call("check_memory_fit", **{**FIT, "model": "models/llama-3.1-8b", "hardware": "hardware/l40s"}),
    call("batch_estimate", QUESTIONS),
    call("batch_estimate", QUESTIONS[:1] * 1000),
    call("stream_sweep", **SWEEP),
    call("stream_sweep", **SWEEP, to_link="100g", start_index=17, points_per_response=5),
    call("find_slowest_link", workload=PROMPTS, target_ttft_seconds=7.0),
    call("find_slowest_link", **TARGET),
    call(
        "find_slowest_link",
        workload=evolve(PROMPTS, ranks_per_node=PROMPTS.tensor_parallel_size),
        target_ttft_seconds=7.0,
        inner_link="400g",
    ),
    call("find_slowest_link", **{**TARGET, "target_ttft_seconds": 6.0}),
    call("find_slowest_link", **{**TARGET, "target_ttft_seconds": 0.5}),
    call("size_cluster", node_count=8, rate="100g"),
    call("size_cluster", node_count=12, rate="200gbe", switch="switches/crs804", oversubscription_ratio=3.0),
    call("size_cluster", node_count=600, rate="400g", nic="generic", links_per_node=2),
    call("size_cluster", node_count=8, rate="400g"),
    call("check_plan", node_count=4, link="spark-1f"),
    call("check_plan", **PLAN),
    call("check_plan", **{**PLAN, "tensor_parallel_size": 7, "switch": "crs812"}),
    call("list_models"),
    call("get_model", "glm-5.3"),
    call("get_model", "models/glm-5.3"),
    call("import_model", CONFIG, validate_only=True),
    call("import_model", CONFIG, model="models/mine", display_name="Mine", validate_only=True),
    call("import_model", CONFIG, validate_only=True, quantization_json='{"quantization": {"quant_algo": "FP8"}}'),
    call("import_model", CONFIG, validate_only=True, weight_bits_per_parameter=4.5),
    call("estimate_prefill", **{**PREFILL, "model": ""}, model_config_json=CONFIG),
    call("list_hardware"),
    call("get_hardware", "dgx-spark"),
    call("get_hardware", "hardware/dgx-spark"),
]

STRANGE_AXIS = SweepAxis(variable=SweepVariable.UNKNOWN, values=())
NUMBERS: list[Any] = [0, -1, 10**18, 2**70, math.nan, math.inf, "8", None, True, 1.5]

BAD = [
    *(
        call("estimate_schedule", [evolve(ASKED[0], prompt_tokens=number)], scheduler=SCHEDULER)
        for number in [*NUMBERS, 10**9 + 1]
    ),
    *(call("estimate_schedule", requests, scheduler=SCHEDULER) for requests in [[], None, [PROMPTS], ASKED * 5001]),
    *(
        call("estimate_schedule", ASKED, scheduler=evolve(SCHEDULER, max_num_batched_tokens=number))
        for number in NUMBERS
    ),
    call("stream_schedule", ASKED * 5001),
    call("stream_schedule", ASKED, scheduler=evolve(SCHEDULER, kv_block_count=100)),
    call("stream_schedule", ASKED, scheduler=SCHEDULER, timeout_seconds=0),
    call("estimate_schedule", ASKED, scheduler=evolve(SCHEDULER, engine="vllm-9")),
    call("estimate_schedule", ASKED, scheduler=evolve(SCHEDULER, draft_token_count=4)),
    call("estimate_schedule", ASKED, scheduler=evolve(SCHEDULER, max_model_len=3000)),
    call("estimate_schedule", ASKED, scheduler=evolve(SCHEDULER, kv_block_count=100)),
    call("estimate_schedule", ASKED, scheduler=SCHEDULER, link="200g"),
    call("estimate_schedule", ASKED, scheduler=SCHEDULER, model="glm-5.3"),
    call("estimate_schedule", ASKED, scheduler=SCHEDULER, **{**OVER, "model": "glm-5.4"}),
    call("estimate_schedule", ASKED, scheduler=SCHEDULER, **{**OVER, "link": "fast"}, to_link="faster"),
    call("estimate_schedule", ASKED, scheduler=SCHEDULER, **OVER, calibration="no-such"),
    call("estimate_schedule", ASKED, scheduler=SCHEDULER, **{**OVER, "layout": ParallelLayout(tensor_parallel_size=7)}),
    call("estimate_schedule", IN_TURN, scheduler=SCHEDULER, **OVER),
    call("estimate_schedule", IN_TURN[::-1], engine_table=ENGINE),
    call("estimate_schedule", ASKED, engine_calibration="glm-5.3-dgx-spark-9"),
    call("estimate_schedule", ASKED, engine_calibration=SPARK, engine_table=ENGINE),
    call("estimate_schedule", ASKED, engine_calibration=SPARK, model="qwen3-32b"),
    call("estimate_schedule", ASKED, engine_calibration=SPARK, to_bursts=BURSTS),
    call("estimate_schedule", ASKED, engine_table=evolve(ENGINE, model="glm-5.4")),
    call("estimate_schedule", ASKED, engine_table=evolve(ENGINE, model="", model_config_json="[]")),
    call("estimate_schedule", ASKED, engine_table=evolve(ENGINE, link=Link(line_rate_bits_per_second=10**6))),
    call("estimate_schedule", ASKED, engine_table=evolve(ENGINE, points=())),
    call("estimate_schedule", ASKED, engine_table=evolve(ENGINE, points=ENGINE.points * 2)),
    *(call("fit_engine_calibration", table) for table in [None, evolve(ENGINE, points=()), evolve(ENGINE, model="")]),
    call("fit_engine_calibration", ENGINE, engine_calibration="Rack 7"),
    call("fit_engine_calibration", ENGINE, sources=[""]),
    call("fit_engine_calibration", evolve(ENGINE, link=Link(line_rate_bits_per_second=10**6))),
    call("fit_engine_calibration", evolve(ENGINE, layout=ParallelLayout(tensor_parallel_size=1, data_parallel_size=8))),
    *(call("get_engine_calibration", name) for name in ["glm-5.3-dgx-spark", "", "Rack 7", 5]),
    *(call("estimate_prefill", **{**PREFILL, "prompt_tokens": number}) for number in NUMBERS),
    *(call("estimate_prefill", **{**PREFILL, "tensor_parallel_size": number}) for number in [*NUMBERS, 7, 3]),
    *(call("estimate_prefill", **PREFILL, baseline_ttft_seconds=number) for number in [0, -1.0, math.nan, 1e18, 0.001]),
    *(call("estimate_prefill", **{**PREFILL, "link": link}) for link in ["", "fast", "0g", "9" * 20 + "g", 200, None]),
    *(call("estimate_prefill", **{**PREFILL, "model": model}) for model in ["glm-5.4", "gl\u00f6m", "", "A" * 100, 5]),
    call("estimate_prefill", **PREFILL, to_link=Link(line_rate_bits_per_second=1, roce_mtu_bytes=1500)),
    call("estimate_prefill", model="", tensor_parallel_size=0, prompt_tokens=0, link="x", to_link="y"),
    call("estimate_decode", **DECODE, draft_token_count=4, acceptance_length_tokens=7.0),
    call("estimate_decode", **DECODE, hardware="dgx-sparc"),
    call("estimate_decode", **DECODE, hardware="DGX Spark"),
    call("estimate_collective", kind=CollectiveKind.UNSPECIFIED, rank_count=1, link="25GB/s", message_bytes=0),
    call("estimate_collective", kind=CollectiveKind.UNKNOWN, rank_count=2, link="25GB/s"),
    *(call("estimate_collective", **{**ALL_REDUCE, "rank_count": number}) for number in NUMBERS),
    *(call("estimate_collective", **ALL_REDUCE, ranks_per_node=number) for number in [*NUMBERS, 3, 8]),
    call("estimate_collective", **ALL_REDUCE, calibration="dgx-spark-9-switch"),
    call("estimate_collective", **ALL_REDUCE, calibration="dgx-spark-pair", collective_table=TIMES),
    call("estimate_collective", **ALL_REDUCE, inner_link="fast"),
    *(call("fit_calibration", table) for table in [None, evolve(TIMES, points=()), evolve(TIMES, rank_count=1)]),
    call("fit_calibration", TIMES, calibration="Rack 7"),
    call("fit_calibration", TIMES, sources=[""]),
    *(call("get_calibration", name) for name in ["dgx-spark-pear", "", "Rack 7", 5]),
    call("estimate_training_step", **{**STEP, "gradient_bytes": 10**18, "compute_step_seconds": 0.0}),
    call("estimate_training_step", **STEP, model="qwen2.5-7b"),
    call("estimate_training_step", **OF_MODEL, model_config_json=CONFIG),
    call("estimate_training_step", **{**OF_MODEL, "model": ""}),
    call("estimate_training_step", **STEP, lora_parameters=5, value_bytes=3),
    call("estimate_training_step", **{**OF_MODEL, "model": "qwen2.5-70b"}),
    call("estimate_training_step", **STEP, calibration="no-such"),
    call("compare_links", workload=GENERATION, old_link="200g", new_link="100g", baseline_seconds=1e-9),
    call(
        "compare_links",
        workload=GENERATION,
        old_link="200g",
        new_link="100g",
        emulation=EmulatedLink(link=REFINED, ttft_seconds=7.24),
    ),
    call("find_slowest_link", **{**TARGET, "target_ttft_seconds": 0.0}),
    call("find_slowest_link", **{**TARGET, "baseline_link": None}),
    call("find_slowest_link", **{**TARGET, "baseline_ttft_seconds": None}),
    call("find_slowest_link", **{**TARGET, "baseline_ttft_seconds": 0.001}),
    call("find_slowest_link", **{**TARGET, "baseline_link": "fast"}),
    call("find_slowest_link", workload=evolve(PROMPTS, ranks_per_node=2), target_ttft_seconds=7.0),
    call("find_slowest_link", workload=evolve(PROMPTS, tensor_parallel_size=7), target_ttft_seconds=7.0),
    *(call("size_cluster", node_count=number, rate="100g") for number in [*NUMBERS, 4097]),
    *(call("size_cluster", node_count=8, rate=rate) for rate in ["", "1m", "2t", "fast", None, 5]),
    call("size_cluster", node_count=8, rate="100g", switch="crs840"),
    call("size_cluster", node_count=8, rate="100g", nic="dgx-sparc"),
    call("size_cluster", node_count=8, rate="100g", links_per_node=17, oversubscription_ratio=0.5),
    *(call("check_plan", **{**PLAN, "node_count": number}) for number in NUMBERS),
    call("check_plan", **{**PLAN, "baseline_ttft_seconds": 0.1}),
    call("check_plan", **{**PLAN, "model": "glm53", "link": "slow"}),
    *(call("check_plan", **{**PLAN, name: "no-such"}) for name in ["model", "switch", "nic", "hardware"]),
    call("compare_links", workload=None, old_link="200g", new_link="100g"),
    *(call("batch_estimate", questions) for questions in [[], None, [PROMPTS], ["prefill"], QUESTIONS[:1] * 1001]),
    *(call("stream_sweep", **{**SWEEP, "axes": axes}) for axes in [[], None, [STRANGE_AXIS], SWEEP["axes"] * 2]),
    *(call("stream_sweep", **SWEEP, start_index=number) for number in [*NUMBERS[1:], 24]),
    *(call("stream_sweep", **SWEEP, points_per_response=number) for number in [0, -1, 2**70, "8", 65_537]),
    call("stream_sweep", **{**SWEEP, "workload": evolve(PROMPTS, model="glm-5.4")}),
    call("stream_sweep", **{**SWEEP, "axes": SWEEP["axes"][1:], "workload": evolve(PROMPTS, tensor_parallel_size=7)}),
    call("stream_sweep", **SWEEP, to_link="fast"),
    call("stream_sweep", **SWEEP, timeout_seconds=0),
    call("project_tp_sizes", **{**PROJECTION, "tensor_parallel_sizes": []}),
    call("project_tp_sizes", **{**PROJECTION, "workload": evolve(PROMPTS, pipeline_parallel_size=2)}),
    *(call("estimate_prefill", **PREFILL, pipeline_parallel_size=number) for number in [*NUMBERS, 79]),
    *(call("estimate_prefill", **PREFILL, ranks_per_node=number, inner_link="1t") for number in [*NUMBERS, 3, 16]),
    *(call("estimate_prefill", **PREFILL, rank_links=links) for links in [["x"], [1], 5, None, "200g"]),
    call("estimate_prefill", **PREFILL, ranks_per_node=4),
    call("estimate_prefill", **PREFILL, inner_link="slow"),
    call("estimate_prefill", **PREFILL, data_parallel_size=2, expert_parallelism=ExpertParallelism.ALL_REDUCE),
    call("estimate_prefill", **PREFILL, expert_parallelism=ExpertParallelism.UNKNOWN),
    call("estimate_prefill", **PREFILL, calibration="none-such"),
    call("estimate_prefill", **PREFILL, calibration="none-such", collective_table=TIMES),
    *(call("estimate_decode", **DECODE, context_tokens=number) for number in [0, -1, 10**18, "8", True]),
    *(call("compare_layouts", **{**NODES, "node_count": number}) for number in [*NUMBERS, 4097]),
    *(call("compare_layouts", **NODES, output_tokens=number) for number in NUMBERS),
    call("compare_layouts", **{**NODES, "model": "llama-9"}),
    call("compare_layouts", **NODES, ranks_per_node=2),
    call("compare_layouts", **{**NODES, "prompt_tokens": 10**9}, request_count=1000),
    call("recommend_layout", **NODES, reference_link="fast"),
    call("recommend_layout", **NODES, reference_link="400g", baseline_tensor_parallel_size=4),
    call("recommend_layout", **NODES, reference_link="400g", baseline_ttft_seconds=9.0),
    call("recommend_layout", **NODES, reference_link="1g", baseline_tensor_parallel_size=4, baseline_ttft_seconds=0.1),
    call("recommend_layout", **NODES, reference_link="1g", baseline_tensor_parallel_size=3, baseline_ttft_seconds=99.0),
    call("project_tp_sizes", **{**PROJECTION, "tensor_parallel_sizes": [2, 2, 0]}),
    call("project_tp_sizes", **{**PROJECTION, "baseline_ttft_seconds": 0.0001}),
    call("project_tp_sizes", **PROJECTION, hardware="dgx-sparc"),
    *(call("check_memory_fit", **{**FIT, "context_tokens": number}) for number in NUMBERS),
    call("check_memory_fit", **{**FIT, "layout": ParallelLayout(tensor_parallel_size=7), "request_count": 10**9}),
    call("check_memory_fit", **{**FIT, "layout": ParallelLayout(tensor_parallel_size=0)}),
    call("check_memory_fit", **{**FIT, "layout": ParallelLayout(tensor_parallel_size=7)}),
    call("check_memory_fit", **{**FIT, "hardware": "dgx-sparc"}),
    call("check_memory_fit", **{**FIT, "model": "glm-5.4"}),
    call("check_memory_fit", **FIT, gpu_memory_utilization_fraction=1.5, cache_value_bytes=3, draft_token_count=-1),
    *(
        call("compare_links", workload=evolve(PROMPTS, model=model), old_link="200g", new_link="100g")
        for model in ["models/glm-5.3", "GLM-5.3"]
    ),
    *(
        call("get_model", model)
        for model in ["glm-5.4", "", "GLM 5.3", "gl\u00f6m", "models/GLM-5.3", "models/models/glm-5.3", "\ud800", 5]
    ),
    *(
        call("import_model", text, validate_only=True)
        for text in ["", "no json", "[]", "GGUF", "{" * 9999, '{"hidden_size": "8"}', "\ud800", None, 5]
    ),
    call("import_model", CONFIG),
    call("import_model", CONFIG, model="Not An Id", display_name="a\nb"),
    call("import_model", CONFIG, validate_only=True, quantization_json="{}"),
    call("import_model", '{"quantization": {"quant_algo": "FP8"}}', validate_only=True),
    call("import_model", CONFIG, validate_only=True, weight_bits_per_parameter=-1.0),
    call("estimate_prefill", **PREFILL, model_config_json=CONFIG),
    call("estimate_prefill", **{**PREFILL, "model": ""}, model_config_json="[]"),
    *(call("get_hardware", hardware) for hardware in ["dgx-sparc", "", "hardware/DGX-Spark", None]),
    *(call("get_model", "glm-5.3", timeout_seconds=timeout) for timeout in [0, -1, math.nan, "5"]),
    call("list_models", timeout_seconds=0),
]


def names(calls: list[Call]) -> list[str]:
    return [f"{index}-{asked.method}" for index, asked in enumerate(calls)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("asked", GOOD, ids=names(GOOD))
def test_answers_are_equal(estimator_callers: dict[str, Caller], kind: str, asked: Call) -> None:
    answer = estimator_callers["blocking-local"].ask(asked)
    assert not isinstance(answer, Failure)
    assert estimator_callers[kind].ask(asked) == answer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("asked", BAD, ids=names(BAD))
def test_errors_are_equal(estimator_callers: dict[str, Caller], kind: str, asked: Call) -> None:
    failure = estimator_callers["blocking-local"].ask(asked)
    assert isinstance(failure, Failure)
    assert issubclass(failure.kind, Error)
    assert estimator_callers[kind].ask(asked) == failure
