"""The keys that scripts rely on, and the figures of the first study behind them."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.command import DECODE, MEMORY, PREFILL, TP, TRAINING, Command

INTERVAL_KEYS = {"lower", "lower_basis", "expected_basis", "upper_basis", "binding_constraint", "effects_left_out"}
TO_109G = ["--to-link", "109g"]


def holds_interval(value: Any) -> bool:
    return isinstance(value, dict) and set(value) >= INTERVAL_KEYS and isinstance(value["lower"], float)


def test_prefill(linkbound: Command) -> None:
    outcome = linkbound(*PREFILL, "--json")
    answer = outcome.answer
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert answer["all_reduce_count"] == 157
    assert answer["sent_bytes_per_prompt_token"] == 3_376_128
    assert answer["sent_bytes_per_rank"] == 27_657_240_576
    assert answer["counter_bytes_per_rank"] > answer["sent_bytes_per_rank"]
    assert answer["logits_gather_bytes_per_rank"] > 0
    assert holds_interval(answer["network_seconds"])
    assert "upper" in answer["network_seconds"]
    assert not {"extra_ttft_seconds", "extra_ttft_fraction", "network_share_fraction", "to_link"} & set(answer)


def test_prefill_over_another_link_with_a_baseline(linkbound: Command) -> None:
    answer = linkbound(*PREFILL, *TO_109G, "--baseline-ttft", "6.36", "--json").answer
    extra_seconds, extra_fraction = answer["extra_ttft_seconds"], answer["extra_ttft_fraction"]
    assert holds_interval(extra_seconds)
    assert holds_interval(extra_fraction)
    assert round(extra_seconds["upper"], 2) == 0.92
    assert extra_fraction["upper"] == pytest.approx(extra_seconds["upper"] / 6.36)
    assert round(answer["network_share_fraction"], 3) == 0.174
    assert answer["link"]["rate_source"] == "RATE_SOURCE_GIVEN"


def test_several_prompt_sizes_give_results_with_the_same_keys(linkbound: Command) -> None:
    several = linkbound(*PREFILL[:7], "1024,8k,64k", *PREFILL[8:], *TO_109G, "--json").answer
    one = linkbound(*PREFILL, *TO_109G, "--json").answer
    assert set(several) == {"results"}
    assert [result["prompt_tokens"] for result in several["results"]] == [1024, 8192, 65536]
    assert several["results"][1] == one


def test_what_refines_a_link_is_used_and_named(linkbound: Command) -> None:
    answer = linkbound(
        *PREFILL, "--measured", "22.14GB/s", *TO_109G, "--to-pcie-functions", "1", "--to-roce-mtu", "1024", "--json"
    ).answer
    assert answer["link"]["effective_bits_per_second"] == 177_120_000_000
    assert answer["link"]["rate_source"] == "RATE_SOURCE_MEASURED"
    assert answer["to_link"]["link"]["pcie_function_count"] == 1
    assert answer["to_link"]["roce_mtu_bytes"] == 1024
    assert answer["to_link"]["effective_bits_per_second"] < 109_000_000_000


def test_one_pass_is_shown_where_its_size_is_given(linkbound: Command) -> None:
    answer = linkbound(*PREFILL, "--max-num-batched-tokens", "4k", "--json").answer
    assert answer["largest_pass"]["tokens"] == 4096
    assert answer["largest_pass"]["sent_bytes_per_all_reduce"] == 88_080_384
    assert answer["largest_pass"]["ring_step_count"] == 14


def test_decode(linkbound: Command) -> None:
    answer = linkbound(*DECODE, "--draft-tokens", "4", "--to-link", "100g", "--json").answer
    assert answer["rows_per_pass"] == 5
    assert answer["message_bytes_per_all_reduce"] == 61_440
    assert answer["sent_bytes_per_all_reduce"] == 107_520
    assert round(answer["sent_bytes_per_pass"] / 1e6) == 18
    for key in ("pass_seconds", "traffic_bits_per_second", "extra_pass_seconds"):
        assert holds_interval(answer[key])
    # The study's floor of a pass: 2.8 GB of weights at the 273 GB/s of the default hardware.
    assert round(answer["pass_seconds"]["lower"] * 1e3) == 10
    assert "output_tokens_per_second" not in answer


def test_decode_without_hardware_has_no_memory_floor(linkbound: Command) -> None:
    answer = linkbound(*DECODE, "--hardware", "", "--json").answer
    assert answer["pass_seconds"]["lower"] < 1e-3
    assert "active_weight_bytes_per_rank" not in answer


def test_tp(linkbound: Command) -> None:
    projections = linkbound(*TP, "--json").answer["projections"]
    assert [projection["tensor_parallel_size"] for projection in projections] == [2, 4, 8, 16]
    assert [round(100 * projection["extra_ttft_fraction"]["upper"]) for projection in projections] == [3, 8, 17, 31]
    assert all(projection["feasible"] is True and projection["reasons"] == [] for projection in projections)


def test_a_size_that_cannot_be_cut_is_an_answer(linkbound: Command) -> None:
    outcome = linkbound(*TP[:-1], "8,6", "--json")
    assert outcome.exit_code == 0
    projection = outcome.answer["projections"][1]
    assert projection["feasible"] is False
    assert any("64 attention heads" in reason for reason in projection["reasons"])


def test_training(linkbound: Command) -> None:
    answer = linkbound(*TRAINING, "--json").answer
    assert answer["sent_bytes_per_rank"] == 22_846_849_536
    for key in ("sync_seconds", "step_seconds", "scaling_efficiency_fraction"):
        assert holds_interval(answer[key])
    assert round(answer["step_seconds"]["upper"], 1) == 21.7


def test_training_of_adapters(linkbound: Command) -> None:
    """The second study: LoRA of a 7 B model exchanges 5 MB a step, invisible on any link."""
    trained = ["--nodes", "4", "--model", "qwen2.5-7b", "--bandwidth", "1.18GB/s", "--compute-step-seconds", "2.289"]
    adapters = linkbound("estimate", "training", *trained, "--lora-parameters", "2500000", "--json").answer
    assert adapters["gradient_bytes"] == 5_000_000
    assert round(adapters["step_seconds"]["upper"], 2) == 2.3
    whole = linkbound("estimate", "training", *trained, "--json").answer
    assert whole["gradient_bytes"] == 15_231_233_024
    sharded = linkbound("estimate", "training", *trained, "--sharding", "full", "--json").answer
    assert 2 * sharded["sent_bytes_per_rank"] == 3 * whole["sent_bytes_per_rank"]


def test_memory(linkbound: Command) -> None:
    """What the first study ran: GLM-5.3 on 8 DGX Spark, 0.726 of the memory, an FP8 cache for 262,144 tokens."""
    answer = linkbound(*MEMORY, "--json").answer
    assert {"fits", "weight_bytes", "kv_cache_bytes", "headroom_bytes", "smallest_tp_that_fits"} <= set(answer)
    assert answer["fits"] is True
    need = answer["need"]
    assert answer["headroom_bytes"] == need["usable_bytes"] - need["total_bytes"]
    assert answer["weight_bytes"] == need["sliced_weight_bytes"] + need["replicated_weight_bytes"]
    # 78 layers of 656 bytes and 21 of 132, for every token, on every rank.
    assert answer["kv_cache_bytes"] == 262_144 * (78 * 656 + 21 * 132)


def test_not_fitting_is_an_answer(linkbound: Command) -> None:
    outcome = linkbound(*MEMORY, "--tp", "2", "--json")
    assert outcome.exit_code == 0
    assert outcome.answer["fits"] is False
    assert outcome.answer["headroom_bytes"] < 0
    assert outcome.answer["largest_request_count"] == 0
    assert outcome.answer["smallest_tp_that_fits"] == 8


def test_memory_makes_sizes_infeasible(linkbound: Command) -> None:
    projections = linkbound(*TP, "--hardware", "dgx-spark", "--json").answer["projections"]
    assert [projection["feasible"] for projection in projections] == [False, False, True, True]
    assert "of memory" in projections[0]["reasons"][0]


def test_models_list(linkbound: Command) -> None:
    names = [model["name"] for model in linkbound("models", "list", "--json").answer["models"]]
    assert names == sorted(names)
    assert {"models/glm-5.3", "models/qwen2.5-7b", "models/llama-3.1-70b"} <= set(names)


def test_models_show(linkbound: Command) -> None:
    model = linkbound("models", "show", "glm-5.3", "--json").answer
    assert model["all_reduce_count"] == 157
    assert {"kind", "width", "count", "reason"} <= set(model["collectives"][0])
    assert model["active_parameters"] == 40_000_000_000
    assert model["unused_keys"] == []
    assert model["assumptions"]


def test_absent_parameters_are_left_out(linkbound: Command, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"hidden_size": 4096, "num_hidden_layers": 32}')
    answer = linkbound("models", "import", str(config), "--json").answer
    assert answer["all_reduce_count"] == 65
    assert not {"active_parameters", "total_parameters", "weight_bits_per_parameter"} & set(answer)


def test_health_of_this_process(linkbound: Command) -> None:
    answer = linkbound("health", "--json").answer
    assert answer == {
        "services": [
            {"service": "estimator", "target": "local:", "serving": True},
            {"service": "ingest", "target": "local:", "serving": True},
        ]
    }


def test_a_measured_rate_may_stand_alone(linkbound: Command) -> None:
    measured = linkbound(*PREFILL[:-2], "--measured", "109g", "--to-measured", "100g", "--json").answer
    assert "line_rate_bits_per_second" not in measured["link"]["link"]
    assert (measured["link"]["effective_bits_per_second"], measured["link"]["rate_source"]) == (
        109_000_000_000,
        "RATE_SOURCE_MEASURED",
    )
    assert measured["to_link"]["effective_bits_per_second"] == 100_000_000_000
