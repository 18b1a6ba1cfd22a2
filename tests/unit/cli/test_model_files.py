"""`--model` with the path of a config.json: answered as the model that it describes, or refused in words."""

import json
from pathlib import Path
from typing import Any

import pytest

from linkbound.cli.failures import USAGE
from tests.unit.architecture.configs import SMALL_MOE
from tests.unit.cli.command import Command

ON_TWO = ("--tp", "2")
PROMPT = ("--prompt-tokens", "1k")
LINK = ("--link", "10g")
COMMANDS: dict[str, tuple[str, ...]] = {
    "prefill": (*ON_TWO, *PROMPT, *LINK),
    "decode": (*ON_TWO, *LINK),
    "memory": (*ON_TWO, "--hardware", "dgx-spark", "--context", "1k"),
    "target": (*ON_TWO, *PROMPT, "--target-ttft", "1s"),
    "sweep": (*ON_TWO, *PROMPT, *LINK),
    "tp": (*PROMPT, *LINK, "--to-link", "1g", "--baseline-tp", "2", "--baseline-ttft", "1s", "--tp-sizes", "2"),
    "training": ("--nodes", "2", "--bandwidth", "10g", "--compute-step-seconds", "1"),
    "layouts": (*PROMPT, *LINK, "--nodes", "2"),
    "recommend": (*PROMPT, *LINK, "--nodes", "2", "--reference-link", "100g"),
}
"""Every command that asks about a model, with what it needs besides."""
INLINE = "inline-deepseek_v32"


@pytest.fixture(name="config")
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SMALL_MOE))
    return path


def without_names(answer: Any) -> Any:
    """`answer` without what names the model or its source."""
    if isinstance(answer, dict):
        return {key: without_names(value) for key, value in answer.items() if key not in ("model", "sources")}
    return [without_names(value) for value in answer] if isinstance(answer, list) else answer


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_is_answered_as_its_model_is_by_name(
    linkbound: Command, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("LINKBOUND_DATA", str(tmp_path / "data"))
    assert linkbound("models", "import", str(config), "--name", "kept").exit_code == 0
    by_name = linkbound("estimate", command, "--model", "kept", *COMMANDS[command], "--json").answer
    by_file = linkbound("estimate", command, "--model", str(config), *COMMANDS[command], "--json").answer
    assert without_names(by_file) == without_names(by_name)


@pytest.mark.parametrize("command", COMMANDS)
def test_people_read_an_answer_too_and_nothing_is_kept(
    linkbound: Command, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("LINKBOUND_DATA", str(tmp_path / "data"))
    outcome = linkbound("estimate", command, "--model", str(config), *COMMANDS[command])
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert not (tmp_path / "data").exists()


def test_the_answer_names_the_type_of_the_model(linkbound: Command, config: Path) -> None:
    command = ("estimate", "prefill", "--model", str(config), *COMMANDS["prefill"])
    assert linkbound(*command, "--json").answer["model"] == f"models/{INLINE}"
    assert f"1,024 prompt tokens of {INLINE} on TP2" in linkbound(*command).out


@pytest.mark.parametrize(
    "typed", ["config.json", "./config.json", "./", ".", "renamed.json", "folder/plain", "folder/../config.json"]
)
def test_what_is_taken_for_a_file(
    linkbound: Command, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    (tmp_path / "folder").mkdir()
    for copy in ("renamed.json", "folder/plain"):
        (tmp_path / copy).write_text(config.read_text())
    monkeypatch.chdir(tmp_path)
    answer = linkbound("estimate", "prefill", "--model", typed, *COMMANDS["prefill"], "--json").answer
    assert answer["model"] == f"models/{INLINE}"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("glm-5.4", "model 'glm-5.4' does not exist; did you mean glm-5.3"),
        ("models/glm-5.4", "model 'glm-5.4' does not exist"),
        ("zai-org/GLM-5.1", "model 'zai-org/GLM-5.1' does not exist; did you mean glm-5.1"),
        ("a\0/b", "a name of 1 to 64 printable ASCII characters"),
    ],
)
def test_what_is_taken_for_a_name(linkbound: Command, typed: str, told: str) -> None:
    refused = linkbound("estimate", "prefill", "--model", typed, *COMMANDS["prefill"])
    assert (refused.exit_code, refused.out) == (USAGE, "")
    assert refused.err.startswith("linkbound: --model: ")
    assert told in refused.err


@pytest.mark.parametrize(
    ("typed", "kind"), [("q", "folder"), ("plain", "file"), ("models/q", ""), ("glm-5.3", ""), ("other", "")]
)
def test_a_name_that_is_also_a_path(
    linkbound: Command, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, kind: str
) -> None:
    """Names of the catalogue win, whatever lies in the working directory; what is there is told."""
    for folder in ("q", "glm-5.3"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(config.read_text())
    (tmp_path / "plain").write_text(config.read_text())
    monkeypatch.chdir(tmp_path)
    asked = linkbound("estimate", "prefill", "--model", typed, *COMMANDS["prefill"])
    assert asked.exit_code == (0 if typed == "glm-5.3" else USAGE)
    hint = f"; there is a {kind} {typed!r} here, which is meant by ./{typed}"
    assert (hint in asked.err) == bool(kind)
    if kind:
        assert linkbound("estimate", "prefill", "--model", f"./{typed}", *COMMANDS["prefill"]).exit_code == 0


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("", "is empty"),
        (" ", "is empty"),
        ("gone.json", "cannot read 'gone.json': No such file or directory"),
        ("./gone", "cannot read 'gone': No such file or directory"),
        ("~/gone", "cannot read '~/gone': No such file or directory"),
        ("empty/", "cannot read 'empty/config.json': No such file or directory"),
        ("a\0.json", "cannot read 'a\\x00.json': embedded null byte"),
    ],
)
def test_a_file_that_cannot_be_read(
    linkbound: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, told: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    refused = linkbound("estimate", "prefill", "--model", typed, *COMMANDS["prefill"], "--json")
    assert (refused.exit_code, refused.out) == (USAGE, "")
    assert f"linkbound: --model: {told}" in refused.err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "--model: '{file}' is empty"),
        (b"x" * (4 * 2**20 + 1), "--model: '{file}' has more than 4194304 bytes, and is no config.json"),
        (b"GGUF\x03\x00\x00\x00", "--model: is a GGUF file"),
        (b"{", "--model: is not JSON"),
        (b'{"a": 1}', "--model: is no config of a language model"),
        (b'{"hidden_size": "64", "num_hidden_layers": -1}', "--model: hidden_size: '64' is not a whole number"),
    ],
)
def test_what_is_no_config(linkbound: Command, config: Path, command: str, content: bytes, told: str) -> None:
    config.write_bytes(content)
    refused = linkbound("estimate", command, "--model", str(config), *COMMANDS[command], "--json")
    assert (refused.exit_code, refused.out) == (USAGE, "")
    assert told.format(file=config) in refused.err
    assert "model_config_json" not in refused.err


def test_a_command_that_takes_names_alone_says_how_to_make_one(linkbound: Command, config: Path) -> None:
    refused = linkbound("plan", "check", "--nodes", "2", "--link", "10g", "--model", str(config))
    assert refused.exit_code == USAGE
    assert "takes names; `linkbound models import FILE --name NAME` keeps its model under one" in refused.err
