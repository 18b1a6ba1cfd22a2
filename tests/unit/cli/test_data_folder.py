"""`--data` names the folder of what was imported, for every command that answers in this process."""

import json
from pathlib import Path

import click
import pytest

from linkbound.cli.main import linkbound as root
from tests.unit.architecture.configs import SMALL
from tests.unit.cli.command import Command

LINK = ("--link", "10g")
TARGET = ("--target-ttft", "5")
BASELINE = ("--baseline-tp", "2", "--baseline-ttft", "6")
OF_A_MODEL = [
    ("estimate", "prefill", "--tp", "2", "--prompt-tokens", "1k", *LINK),
    ("estimate", "decode", "--tp", "2", *LINK),
    ("estimate", "tp", "--prompt-tokens", "1k", *BASELINE, *LINK, "--to-link", "5g", "--tp-sizes", "2"),
    ("estimate", "training", "--nodes", "2", "--bandwidth", "10g", "--compute-step-seconds", "2"),
    ("estimate", "memory", "--tp", "2", "--hardware", "dgx-spark", "--context", "1k"),
    ("estimate", "target", "--tp", "2", "--prompt-tokens", "1k", *TARGET),
    ("estimate", "layouts", "--nodes", "2", "--prompt-tokens", "1k", *LINK),
    ("estimate", "recommend", "--nodes", "2", "--prompt-tokens", "1k", *LINK, "--reference-link", "20g", *BASELINE),
    ("estimate", "sweep", "--tp", "2", "--prompt-tokens", "1k,2k", *LINK),
    ("plan", "check", "--nodes", "2", *LINK),
]


@pytest.fixture(name="data")
def data_with_a_model(linkbound: Command, tmp_path: Path) -> str:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(SMALL))
    data = str(tmp_path / "data")
    assert linkbound("models", "import", str(config), "--name", "mine", "--data", data).exit_code == 0
    return data


@pytest.mark.parametrize("command", OF_A_MODEL, ids=lambda command: " ".join(command[:2]))
def test_an_imported_model_is_found(
    command: tuple[str, ...], data: str, linkbound: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = linkbound(*command, "--model", "mine", "--data", f"{data}-other")
    assert (elsewhere.exit_code, "model 'mine' does not exist" in elsewhere.err) == (2, True)
    found = linkbound(*command, "--model", "mine", "--data", data)
    assert (found.exit_code, found.err) == (0, "")
    monkeypatch.setenv("LINKBOUND_DATA", data)
    assert linkbound(*command, "--model", "mine").out == found.out


def test_a_fit_is_found(data: str, linkbound: Command, tmp_path: Path) -> None:
    times = tmp_path / "times.csv"
    times.write_text("message_bytes,seconds\n1024,20e-6\n1048576,80e-6\n67108864,3e-3\n")
    fit = ("calibrations", "fit", str(times), "--kind", "all-reduce", "--ranks", "2", "--name", "mine", "--data", data)
    assert linkbound(*fit).exit_code == 0
    collective = ("estimate", "collective", "--ranks", "2", "--message-bytes", "64k", "--link", "200g")
    outcome = linkbound(*collective, "--calibration", "mine", "--data", data)
    assert outcome.out.startswith("about ")


def commands(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    found = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            found += commands(command, (*path, name))
        else:
            found.append(((*path, name), command))
    return found


@pytest.mark.parametrize(
    ("path", "command"), commands(root), ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_whatever_asks_a_service_takes_a_folder_for_local(path: tuple[str, ...], command: click.Command) -> None:
    options = {option for parameter in command.params for option in parameter.opts}
    # `health` asks whether a server is there, and none is in this process; `store` looks at files here.
    of_this_machine = path == ("serve",) or path[0] == "store"
    assert ("--data" in options) == ("--target" in options or of_this_machine) or path == ("health",)
