"""The estimator beside the second study: theoretical bandwidths, and which training steps the exchange explains."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from estimator_service.service import default_estimator
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.link import Link
from linkbound.domain.training import TrainingStepRequest
from tests.golden.printed import as_printed

STUDY: dict[str, Any] = tomllib.loads(Path(__file__).with_name("study_2_figures.toml").read_text("utf-8"))
TRAINING: dict[str, Any] = STUDY["full_fine_tuning"]
GRADIENT_BYTES: int = TRAINING["trainable_parameters"] * TRAINING["gradient_bytes_per_parameter"]


@pytest.mark.parametrize("row", STUDY["nccl"])
def test_part_6_theoretical_bus_bandwidth(row: dict[str, Any]) -> None:
    answer = default_estimator().estimate_collective(
        CollectiveRequest(
            kind=CollectiveKind.ALL_REDUCE,
            rank_count=row["node_count"],
            link=Link(line_rate_bits_per_second=row["link_gigabits_per_second"] * 10**9),
        )
    )
    printed = row["theoretical_gigabytes_per_second"]
    assert answer.bus_bandwidth_bytes_per_second.upper is not None
    assert as_printed(answer.bus_bandwidth_bytes_per_second.upper / 1e9, printed) == printed


def test_part_7_2_gradient_bytes_of_the_shipped_model() -> None:
    """The catalogue's Qwen2.5-7B has as many parameters as the study trains."""
    assert default_estimator().get_model("qwen2.5-7b").total_parameters == TRAINING["trainable_parameters"]
    assert as_printed(GRADIENT_BYTES / 2**30, TRAINING["gradient_gibibytes"]) == TRAINING["gradient_gibibytes"]


@pytest.mark.parametrize("row", TRAINING["rows"], ids=lambda row: f"{row['node_count']} nodes, {row['link']}")
def test_part_7_2_step_at_the_bandwidth_of_nccl_tests(row: dict[str, Any]) -> None:
    rate = round(row["nccl_gigabytes_per_second"] * 8e9)
    answer = default_estimator().estimate_training_step(
        TrainingStepRequest(
            gradient_bytes=GRADIENT_BYTES,
            rank_count=row["node_count"],
            link=Link(line_rate_bits_per_second=rate, measured_bits_per_second=rate),
            compute_step_seconds=TRAINING["one_node_step_seconds"],
        )
    )
    assert answer.step_seconds.contains(row["step_seconds"]) is row["explained"]
    if not row["explained"]:
        assert answer.step_seconds.upper is not None
        assert row["step_seconds"] > 3 * answer.step_seconds.upper
