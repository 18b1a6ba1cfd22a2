"""Headlines say on what a floor or a missing byte hangs, where a config does not say how its weights are stored."""

import json
from pathlib import Path

import pytest

from linkbound.domain.words import IF_OF_THE_DATA_TYPE
from tests.unit.architecture.configs import PUBLISHED
from tests.unit.cli.command import Command

# 45 GB in BF16, above what two of these accelerators of 24 GB hold.
CONFIG = {**PUBLISHED["llama-2-7b"]["config"], "hidden_size": 5120, "intermediate_size": 20480, "num_hidden_layers": 52}
CONFIG |= {"num_attention_heads": 40, "num_key_value_heads": 40}
SMALL_HARDWARE = ("--hardware", "rtx-4090")
PROMPT = ("--prompt-tokens", "1k", "--link", "200g")
COMMANDS: dict[str, tuple[str, ...]] = {
    "decode": ("--tp", "2", "--link", "200g"),
    "memory": ("--tp", "2", "--context", "1k", *SMALL_HARDWARE),
    "layouts": ("--nodes", "2", *PROMPT, *SMALL_HARDWARE),
    "recommend": ("--nodes", "2", *PROMPT, "--reference-link", "200g", *SMALL_HARDWARE),
    "tp": (
        *PROMPT,
        "--to-link",
        "100g",
        "--baseline-tp",
        "8",
        "--baseline-ttft",
        "9s",
        "--tp-sizes",
        "2,8",
        *SMALL_HARDWARE,
    ),
}
"""Commands whose first line rests on the bytes of the weights."""


@pytest.fixture(name="config")
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("is_stated", [False, True])
def test_the_first_line_says_on_what_it_hangs(
    linkbound: Command, config: Path, command: str, *, is_stated: bool
) -> None:
    if is_stated:
        config.write_text(json.dumps({**CONFIG, "quantization_config": {"quant_algo": None}}))
    first, *_ = linkbound("estimate", command, "--model", str(config), *COMMANDS[command]).out.splitlines()
    assert (IF_OF_THE_DATA_TYPE in first) != is_stated


def test_a_floor_that_the_network_sets_hangs_on_no_format(linkbound: Command, config: Path) -> None:
    slow = ("--tp", "2", "--requests", "4096", "--link", "1g")
    out = linkbound("estimate", "decode", "--model", str(config), *slow).out
    assert "weight format" in out
    conditional = [line.split("  ")[0] for line in out.splitlines() if IF_OF_THE_DATA_TYPE in line]
    assert conditional == ["reads of a pass", "weights read per pass, one rank"]


WEIGHT_ROWS = [
    *("reads of a pass", "pass", "traffic, one rank", "weights read per pass, one rank"),
    *("extra pass time over the pass", "output of one request"),
]
CHANGE = ("--tp", "2", "--link", "25g", *SMALL_HARDWARE)


@pytest.mark.parametrize("to_link", ["1g", "100g"])
@pytest.mark.parametrize("is_stated", [False, True])
def test_every_row_that_rests_on_weights_says_on_what_it_hangs(
    linkbound: Command, config: Path, to_link: str, *, is_stated: bool
) -> None:
    if is_stated:
        config.write_text(json.dumps({**CONFIG, "quantization_config": {"quant_algo": None}}))
    first, *rows = linkbound(
        "estimate", "decode", "--model", str(config), *CHANGE, "--to-link", to_link
    ).out.splitlines()
    conditional = [line.split("  ")[0] for line in rows if IF_OF_THE_DATA_TYPE in line]
    assert conditional == ([] if is_stated else WEIGHT_ROWS)
    # A share of the pass rests on its floor: the condition comes before the first percentage.
    before_the_share = first.split("%")[0]
    assert "%" in first
    assert (IF_OF_THE_DATA_TYPE in before_the_share) != is_stated


def test_bytes_of_a_rank_and_what_follows_say_on_what_they_hang(linkbound: Command, config: Path) -> None:
    fits = ("--tp", "8", "--context", "1k", *SMALL_HARDWARE)
    rows = linkbound("estimate", "memory", "--model", str(config), *fits).out.splitlines()
    conditional = [line.split("  ")[0] for line in rows if IF_OF_THE_DATA_TYPE in line]
    weights = ["weights, cut over ranks", "weights, whole on every rank"]
    assert conditional == [*weights, "in all", "requests that fit", "smallest size that fits"]


def test_passes_and_memory_of_layouts_say_on_what_they_hang(linkbound: Command, config: Path) -> None:
    rows = linkbound("estimate", "layouts", "--model", str(config), *COMMANDS["layouts"]).out.splitlines()
    (note,) = [line for line in rows if line.startswith("pass, memory")]
    assert note.endswith(IF_OF_THE_DATA_TYPE)


def test_what_fits_hangs_on_no_format(linkbound: Command, config: Path) -> None:
    first, *_ = linkbound(
        "estimate", "memory", "--model", str(config), "--tp", "8", "--context", "1k", *SMALL_HARDWARE
    ).out.splitlines()
    assert first.startswith("fits: ")
    assert IF_OF_THE_DATA_TYPE not in first


@pytest.mark.parametrize("model", ["llama-3.1-70b", "qwen3-235b-a22b", "nemotron-3-super-120b"])
def test_models_of_the_catalogue_leave_nothing_open(linkbound: Command, model: str) -> None:
    out = linkbound("estimate", "decode", "--model", model, "--tp", "2", "--link", "200g").out
    assert "a pass takes at least" in out
    assert IF_OF_THE_DATA_TYPE not in out
