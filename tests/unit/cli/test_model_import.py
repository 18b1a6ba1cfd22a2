"""`linkbound models import`: what a config says of a model, shown or kept."""

import json
from pathlib import Path

import pytest

from linkbound.cli.failures import USAGE
from tests.unit.architecture.configs import PUBLISHED, SMALL, SMALL_MOE
from tests.unit.cli.command import Command


@pytest.fixture(name="config")
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**SMALL_MOE, "frobnicator_width": 7}))
    return path


def test_keys_of_the_answer(linkbound: Command, config: Path) -> None:
    answer = linkbound("models", "import", str(config), "--json").answer
    assert answer["all_reduce_count"] == 9
    assert [set(row) >= {"kind", "width", "count", "reason"} for row in answer["collectives"]] == [True] * 5
    assert answer["total_parameters"] + answer["mtp_parameters"] == sum(
        group["parameter_count"] for group in answer["parameter_groups"]
    )
    assert answer["active_parameters"] < answer["total_parameters"]
    assert answer["unused_keys"] == ["frobnicator_width"]
    assert answer["undetermined"] == []
    assert answer["assumptions"]
    assert answer["name"] == "models/inline-deepseek_v32"
    assert (answer["expert_count"], answer["active_expert_count"], answer["mtp_layer_count"]) == (16, 2, 1)


def test_a_table_of_parts(linkbound: Command, config: Path) -> None:
    out = linkbound("models", "import", str(config)).out
    assert "inline-deepseek_v32: 9 all-reduces per pass, hidden size 64" in out
    for words in ("routed experts", "sparse indexer", "whole on each", "latent of all heads", "frobnicator_width"):
        assert words in out


def test_without_a_name_nothing_is_kept(linkbound: Command, config: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert linkbound("models", "import", str(config), "--data", str(data)).exit_code == 0
    assert not data.exists()


def test_a_name_keeps_it_for_every_command(
    linkbound: Command, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(tmp_path / "data")
    kept = linkbound(
        "models", "import", str(config), "--name", "mine", "--display-name", "Mine", "--data", data, "--json"
    )
    assert (kept.answer["name"], kept.answer["display_name"]) == ("models/mine", "Mine")
    assert linkbound("models", "show", "mine", "--data", data, "--json").answer == kept.answer
    assert "Mine" in linkbound("models", "list", "--data", data).out
    monkeypatch.setenv("LINKBOUND_DATA", data)
    estimate = [
        "estimate",
        "prefill",
        "--model",
        "mine",
        "--tp",
        "2",
        "--prompt-tokens",
        "1k",
        "--link",
        "10g",
        "--json",
    ]
    assert linkbound(*estimate).answer["all_reduce_count"] == 9


def test_a_name_that_is_taken(linkbound: Command, config: Path, tmp_path: Path) -> None:
    named = ["--name", "mine", "--data", str(tmp_path / "data")]
    assert linkbound("models", "import", str(config), *named).exit_code == 0
    assert linkbound("models", "import", str(config), *named).exit_code == 0
    config.write_text(json.dumps(SMALL))
    refused = linkbound("models", "import", str(config), *named)
    assert refused.exit_code == USAGE
    assert "model 'mine' exists with other content" in refused.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"GGUF\x03\x00\x00\x00", "config.json': is a GGUF file"),
        (b"\x10\x27\x00\x00\x00\x00\x00\x00" + b'{"__metadata__":{}}', "config.json': is a safetensors file"),
        (b"PK\x03\x04\xff\xfe\x00", "config.json': is a zip archive"),
        (b"\xfd\xfe\x00\x01", "config.json': is not text"),
        (b"\xff\xfe{\x00}\x00", "config.json' is UTF-16 text"),
        (b'{"a":"\xff\xfe"}', "config.json' is not UTF-8 text: byte 0xff at offset 6"),
        (b"{", "config.json': is not JSON"),
        (b"", "config.json' is empty"),
        (b"x" * (4 * 2**20 + 1), "has more than 4194304 bytes"),
        (b'{"hidden_size": "64", "num_hidden_layers": -1}', "config.json': hidden_size: '64' is not a whole number"),
    ],
)
def test_what_is_no_config(linkbound: Command, config: Path, content: bytes, told: str) -> None:
    config.write_bytes(content)
    refused = linkbound("models", "import", str(config))
    assert (refused.exit_code, refused.out) == (USAGE, "")
    assert told in refused.err


def test_an_empty_name_is_refused_in_words_of_the_command_line(linkbound: Command, config: Path) -> None:
    refused = linkbound("models", "import", str(config), "--name", "")
    assert refused.exit_code == USAGE
    assert "--name: is empty" in refused.err
    assert "validate_only" not in refused.err


def test_a_file_that_is_not_there(linkbound: Command, tmp_path: Path) -> None:
    refused = linkbound("models", "import", str(tmp_path / "gone.json"))
    assert refused.exit_code == USAGE
    assert "FILE: cannot read" in refused.err


@pytest.mark.parametrize("name", ["llama-2-7b", "mamba-2-2.7b", "jamba-v0.1", "gpt2"])
def test_published_sizes_are_shown(linkbound: Command, config: Path, name: str) -> None:
    config.write_text(json.dumps(PUBLISHED[name]["config"]))
    total = PUBLISHED[name]["total_parameters"]
    assert f"parameters without MTP layers  {total / 1e9:,.2f} B" in linkbound("models", "import", str(config)).out
