"""Bounds at effective rates, held against measurements that nobody fitted them to (`docs/invariants.md`, 9)."""

import csv
import os
import statistics
import tomllib
from pathlib import Path
from typing import Any

import pytest

from linkbound import EstimatorClient, Link, PrefillEstimate, PrefillWorkload

MEASURED: dict[str, Any] = tomllib.loads(Path(__file__).with_name("measured_bounds.toml").read_text("utf-8"))
RECORDING = MEASURED["recording"]
REFERENCE_DATA = os.environ.get("LINKBOUND_REFERENCE_DATA")


def measured_link(bits_per_second: int) -> Link:
    return Link(measured_bits_per_second=bits_per_second)


@pytest.fixture(scope="module")
def estimator() -> EstimatorClient:
    return EstimatorClient("local:")


def recorded(estimator: EstimatorClient, test: dict[str, Any]) -> PrefillEstimate:
    return estimator.estimate_prefill(
        model_config_json=RECORDING["model_config"],
        tensor_parallel_size=RECORDING["tensor_parallel_size"],
        prompt_tokens=test["prompt_tokens"],
        request_count=test["request_count"],
        max_num_batched_tokens=RECORDING["max_num_batched_tokens"],
        link=measured_link(RECORDING["old_bits_per_second"]),
        to_link=measured_link(RECORDING["new_bits_per_second"]),
    )


@pytest.mark.parametrize("test", [pytest.param(test, id=test["name"]) for test in RECORDING["test"]])
def test_the_recording_of_two_hosts(test: dict[str, Any], estimator: EstimatorClient) -> None:
    extra = recorded(estimator, test).extra_ttft_seconds
    assert extra is not None
    assert extra.upper is not None
    before, after = test["old_ttft_seconds"], test["new_ttft_seconds"]
    measured = statistics.median(after) - statistics.median(before)
    assert extra.lower < measured
    assert (measured <= extra.upper) is test["holds"]
    # Where the median is above the bound, it is by less than the rounds themselves lie apart.
    assert measured - extra.upper < (max(after) - min(after)) + (max(before) - min(before))


def test_the_recording_sends_what_the_formula_says(estimator: EstimatorClient) -> None:
    assert recorded(estimator, RECORDING["test"][0]).sent_bytes_per_prompt_token == (2 * 8 + 1) * 1024 * 2


@pytest.mark.parametrize("row", [pytest.param(row, id=row["source"][:40]) for row in MEASURED["speedup"]])
def test_prompts_speed_up_by_less_than_the_link(row: dict[str, Any], estimator: EstimatorClient) -> None:
    answer = estimator.compare_links(
        workload=PrefillWorkload(model="deepseek-v3.2", tensor_parallel_size=2, prompt_tokens=8192),
        old_link=measured_link(row["slow_bits_per_second"]),
        new_link=measured_link(row["fast_bits_per_second"]),
    )
    assert answer.speedup_ratio.upper is not None
    assert answer.speedup_ratio.upper == pytest.approx(row["fast_bits_per_second"] / row["slow_bits_per_second"])
    for measured in row["measured_ratio"]:
        assert 1 <= measured <= answer.speedup_ratio.upper


def floors(kind: str) -> list[Any]:
    """Each measured row of `kind` with what stands for all rows of its source."""
    return [
        pytest.param(entry, row, id=f"{entry['source'][:24]} {row.get('tokens_per_second', row.get('ttft_seconds'))}")
        for entry in MEASURED["floor"]
        for row in entry.get(kind, ())
    ]


def measured_on(entry: dict[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    """Model, cut and link of a row, as every question takes them."""
    return {
        "model": entry.get("model", ""),
        "model_config_json": entry.get("model_config", ""),
        "tensor_parallel_size": row["tensor_parallel_size"],
        "pipeline_parallel_size": row.get("pipeline_parallel_size", 1),
        "link": measured_link(entry["bits_per_second"]),
    }


@pytest.mark.parametrize(("entry", "row"), floors("prompt"))
def test_no_prompt_is_faster_than_its_floor(
    entry: dict[str, Any], row: dict[str, Any], estimator: EstimatorClient
) -> None:
    answer = estimator.estimate_prefill(prompt_tokens=row["prompt_tokens"], **measured_on(entry, row))
    measured_seconds = row.get("ttft_seconds") or row["prompt_tokens"] / row["tokens_per_second"]
    assert 0 < answer.ttft_seconds.lower < measured_seconds


@pytest.mark.parametrize(("entry", "row"), floors("pass"))
def test_no_pass_is_faster_than_its_floor(
    entry: dict[str, Any], row: dict[str, Any], estimator: EstimatorClient
) -> None:
    drafts = row.get("draft_token_count", 0)
    answer = estimator.estimate_decode(
        draft_token_count=drafts, acceptance_length_tokens=1.0 + drafts, **measured_on(entry, row)
    )
    assert answer.pass_seconds.lower > 0
    assert answer.output_tokens_per_second is not None
    assert answer.output_tokens_per_second.upper is not None
    assert row["tokens_per_second"] < answer.output_tokens_per_second.upper


@pytest.mark.skipif(REFERENCE_DATA is None, reason="LINKBOUND_REFERENCE_DATA is not set")
def test_every_public_row_is_tested_or_says_why_not() -> None:
    assert REFERENCE_DATA is not None
    with (Path(REFERENCE_DATA) / "public_data.csv").open(encoding="utf-8", newline="") as file:
        rows = [row["value"] for row in csv.DictReader(file) if row["kind"] == "link_rate_ab"]
    named = [value for entry in MEASURED["not_testable"] for value in entry["rows"]]
    named += [f"{ratio:g}" for entry in MEASURED["speedup"] for ratio in entry["measured_ratio"]]
    tested = [row for entry in MEASURED["floor"] for kind in ("prompt", "pass") for row in entry.get(kind, ())]
    named += [str(row.get("tokens_per_second", row.get("ttft_seconds"))).removesuffix(".0") for row in tested]
    assert len(rows) > 40
    assert sorted(named) == sorted(rows)
