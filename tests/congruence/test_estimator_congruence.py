"""The same questions to every estimator client: equal answers, and equal errors to bad ones."""

import math
from typing import Any

import pytest
from attrs import evolve

from linkbound import CollectiveKind, DecodeWorkload, EmulatedLink, Error, Link, PrefillWorkload
from tests.congruence.callers import Call, Caller, Failure, call
from tests.congruence.conftest import KINDS

PREFILL: dict[str, Any] = {"model": "glm-5.3", "tensor_parallel_size": 8, "prompt_tokens": 8192, "link": "200g"}
DECODE: dict[str, Any] = {"model": "glm-5.3", "tensor_parallel_size": 8, "link": "200g"}
STEP: dict[str, Any] = {
    "gradient_bytes": 15_231_233_024,
    "rank_count": 4,
    "link": "22.07GB/s",
    "compute_step_seconds": 2.289,
}
PROMPTS = PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=8192)
GENERATION = DecodeWorkload(model="glm-5.3", tensor_parallel_size=8, draft_token_count=4)
PROJECTION: dict[str, Any] = {
    "workload": PROMPTS,
    "baseline_ttft_seconds": 6.36,
    "link": "200g",
    "to_link": "100g",
    "tensor_parallel_sizes": [2, 4, 8, 16],
}
REFINED = Link(line_rate_bits_per_second=200_000_000_000, roce_mtu_bytes=4096, pcie_function_count=1)

GOOD = [
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
    call("estimate_training_step", **STEP),
    call("estimate_training_step", **{**STEP, "rank_count": 1}),
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
    call("list_models"),
    call("get_model", "glm-5.3"),
    call("get_model", "models/glm-5.3"),
    call("list_hardware"),
    call("get_hardware", "dgx-spark"),
    call("get_hardware", "hardware/dgx-spark"),
]

NUMBERS = [0, -1, 10**18, 2**70, math.nan, math.inf, "8", None, True, 1.5]

BAD = [
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
    call("estimate_training_step", **{**STEP, "gradient_bytes": 10**18, "compute_step_seconds": 0.0}),
    call("compare_links", workload=GENERATION, old_link="200g", new_link="100g", baseline_seconds=1e-9),
    call(
        "compare_links",
        workload=GENERATION,
        old_link="200g",
        new_link="100g",
        emulation=EmulatedLink(link=REFINED, ttft_seconds=7.24),
    ),
    call("compare_links", workload=None, old_link="200g", new_link="100g"),
    call("project_tp_sizes", **{**PROJECTION, "tensor_parallel_sizes": []}),
    call("project_tp_sizes", **{**PROJECTION, "tensor_parallel_sizes": [2, 2, 0]}),
    call("project_tp_sizes", **{**PROJECTION, "baseline_ttft_seconds": 0.0001}),
    *(
        call("compare_links", workload=evolve(PROMPTS, model=model), old_link="200g", new_link="100g")
        for model in ["models/glm-5.3", "GLM-5.3"]
    ),
    *(
        call("get_model", model)
        for model in ["glm-5.4", "", "GLM 5.3", "gl\u00f6m", "models/GLM-5.3", "models/models/glm-5.3", "\ud800", 5]
    ),
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
