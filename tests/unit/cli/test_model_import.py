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


FP8 = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
OPEN = "the number type of the config"


@pytest.fixture(name="plain")
def plain_config(tmp_path: Path) -> Path:
    path = tmp_path / "plain.json"
    path.write_text(json.dumps(SMALL))
    return path


@pytest.fixture(name="quantization")
def quantization_file(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere" / "q.json"
    path.parent.mkdir()
    path.write_text(json.dumps(FP8))
    return path


def test_a_config_that_leaves_its_format_open_says_so(linkbound: Command, plain: Path) -> None:
    assert OPEN in linkbound("models", "import", str(plain)).out
    assert linkbound("models", "import", str(plain), "--json").answer["weight_format_source"].endswith("DATA_TYPE")


def test_a_quantisation_in_a_file_of_its_own(linkbound: Command, plain: Path, quantization: Path) -> None:
    alone = linkbound("models", "import", str(plain), "--json").answer
    both = linkbound("models", "import", str(plain), "--quantization", str(quantization), "--json").answer
    assert both["weight_format_source"].endswith("STATED")
    assert both["weight_bits_per_parameter"] < alone["weight_bits_per_parameter"] == 16
    assert OPEN not in linkbound("models", "import", str(plain), "--quantization", str(quantization)).out


@pytest.mark.parametrize("name", ["hf_quant_config.json", "quantize_config.json", "quant_config.json"])
@pytest.mark.parametrize("given", ["", "config.json"])
def test_a_folder_is_read_as_engines_read_it(linkbound: Command, tmp_path: Path, name: str, given: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    (tmp_path / name).write_text(json.dumps(FP8))
    read = linkbound("models", "import", str(tmp_path / given), "--json").answer
    assert read["weight_format_source"].endswith("STATED")
    prompt = ("estimate", "memory", "--tp", "1", "--hardware", "dgx-spark", "--context", "1k", "--json")
    need = linkbound(*prompt, "--model", str(tmp_path / given)).answer["need"]
    assert need["weight_format_source"].endswith("STATED")


def test_a_config_by_another_name_is_read_alone(linkbound: Command, plain: Path) -> None:
    plain.with_name("hf_quant_config.json").write_text(json.dumps(FP8))
    assert OPEN in linkbound("models", "import", str(plain)).out


def test_bits_that_are_given_settle_it(linkbound: Command, plain: Path) -> None:
    read = linkbound("models", "import", str(plain), "--weight-bits", "4.5", "--json").answer
    assert (read["weight_bits_per_parameter"], read["weight_format_source"][-6:]) == (4.5, "STATED")
    refused = linkbound("models", "import", str(plain), "--weight-bits", "65")
    assert refused.exit_code == USAGE
    assert refused.err.startswith("linkbound: --weight-bits: 65.0 is not")


def test_a_quantisation_alone_is_told_what_it_is(linkbound: Command, quantization: Path) -> None:
    refused = linkbound("models", "import", str(quantization))
    assert refused.exit_code == USAGE
    assert refused.err.startswith(f"linkbound: FILE '{quantization}': says how the weights")
    assert "--quantization" in refused.err
    estimate = linkbound("estimate", "decode", "--model", str(quantization), "--tp", "1", "--link", "10g")
    assert estimate.exit_code == USAGE
    assert "says how the weights" in estimate.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{}", "is an empty object"),
        (b"{", "is not JSON"),
        (b'{"a": 1}', "names no quantisation"),
        (b'{"bits": "four"}', "bits: 'four' is not a whole number"),
        (b"", "is empty"),
    ],
)
def test_what_is_no_quantisation_is_told_by_its_file(
    linkbound: Command, plain: Path, quantization: Path, content: bytes, told: str
) -> None:
    quantization.write_bytes(content)
    refused = linkbound("models", "import", str(plain), "--quantization", str(quantization))
    assert (refused.exit_code, refused.out) == (USAGE, "")
    assert refused.err.startswith(
        "linkbound: --quantization: " if not content else f"linkbound: --quantization '{quantization}': "
    )
    assert told in refused.err


IN_FOLDER = (("models", "import"), ("estimate", "decode", "--tp", "1", "--link", "10g", "--model"))
"""Commands that read a folder, each with what goes before its path."""


@pytest.mark.parametrize("command", IN_FOLDER)
@pytest.mark.parametrize("content", ["{}", '{"a": 1}', "[]"])
@pytest.mark.parametrize("is_stated", [False, True])
def test_a_file_in_the_folder_that_names_no_quantisation_is_told_and_left_aside(
    linkbound: Command, tmp_path: Path, command: tuple[str, ...], content: str, *, is_stated: bool
) -> None:
    own = {"quantization_config": {"quant_method": "fp8"}} if is_stated else {}
    (tmp_path / "config.json").write_text(json.dumps({**SMALL, **own}))
    alone = linkbound(*command, str(tmp_path), "--json")
    beside = tmp_path / "quant_config.json"
    beside.write_text(content)
    asked = linkbound(*command, str(tmp_path), "--json")
    assert (asked.exit_code, asked.answer) == (0, alone.answer)
    assert asked.err == f"linkbound: {str(beside)!a} names no quantisation, and is left aside\n"


@pytest.mark.parametrize("command", IN_FOLDER)
def test_a_later_file_in_the_folder_may_name_it(linkbound: Command, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    (tmp_path / "quant_config.json").write_text(json.dumps(FP8))
    alone = linkbound(*command, str(tmp_path), "--json")
    (tmp_path / "hf_quant_config.json").write_text("{}")
    assert linkbound(*command, str(tmp_path), "--json").answer == alone.answer


@pytest.mark.parametrize("command", IN_FOLDER)
@pytest.mark.parametrize(("content", "told"), [("{", "is not JSON"), ("", "is empty"), ('{"bits": "four"}', "")])
def test_a_file_in_the_folder_that_is_broken_is_told_by_its_name_where_it_counts(
    linkbound: Command, tmp_path: Path, command: tuple[str, ...], content: str, told: str
) -> None:
    config, beside = tmp_path / "config.json", tmp_path / "hf_quant_config.json"
    config.write_text(json.dumps(SMALL))
    beside.write_text(content)
    refused = linkbound(*command, str(tmp_path))
    assert (refused.exit_code, refused.out) == (USAGE, "")
    assert told in refused.err
    assert not told or str(beside) in refused.err
    config.write_text(json.dumps({**SMALL, "quantization_config": {"quant_method": "fp8"}}))
    assert linkbound(*command, str(tmp_path)).exit_code == 0
