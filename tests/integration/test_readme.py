"""The README's examples work as printed."""

import re
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.command_line import environment, shell
from tests.integration.readme import README, Example, blocks, examples

pytestmark = pytest.mark.storage

CONSOLE_BLOCKS = blocks("console")
DEMO, *COMMAND_BLOCKS = CONSOLE_BLOCKS
SERVE = next(block for block in COMMAND_BLOCKS if " &\n" in block)
COMMANDS = [example for block in COMMAND_BLOCKS if block is not SERVE for example in examples(block)]


def without_ports(output: str) -> str:
    return re.sub(r"(127\.0\.0\.1):\d+", r"\1:PORT", output)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all examples run one after the other, as a reader would run them."""
    return tmp_path_factory.mktemp("readme")


@pytest.fixture(scope="module")
def demo(folder: Path) -> subprocess.CompletedProcess[str]:
    """What `make demo` runs once the environment is there."""
    return shell("linkbound demo --out demo-output 2>&1", folder)


def test_the_output_of_the_demo_is_that_of_a_real_run(demo: subprocess.CompletedProcess[str]) -> None:
    (example,) = examples(DEMO)
    assert example.command == "make demo"
    assert demo.returncode == 0, demo.stdout
    assert without_ports(demo.stdout) == without_ports(example.output)


def test_make_demo_is_the_command_that_was_run() -> None:
    makefile = README.with_name("Makefile").read_text("utf-8")
    assert "OUT ?= demo-output\n" in makefile
    assert "linkbound demo --out $(OUT)\n" in makefile


@pytest.mark.parametrize("example", COMMANDS, ids=lambda example: example.command[:40])
def test_a_command_prints_what_is_shown(example: Example, folder: Path, demo: subprocess.CompletedProcess[str]) -> None:
    result = shell(example.command, folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == example.output


def free_ports(count: int) -> list[str]:
    """Different ports that were free just now: the script names them in several commands, so it cannot use 0."""
    with ExitStack() as probes:
        sockets = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in sockets:
            probe.bind(("127.0.0.1", 0))
        return [str(probe.getsockname()[1]) for probe in sockets]


def test_the_services_start_answer_and_stop(folder: Path) -> None:
    script, shown = "set -me\n", ""
    ports = dict(zip(("50051", "50052"), free_ports(2), strict=True))
    block = re.sub("|".join(ports), lambda match: ports[match[0]], SERVE)
    for example in examples(block):
        script += f"{example.command}\n"
        shown += example.output
    result = shell(f"{script}wait\n", folder)
    assert result.returncode == 0, result.stderr
    # The servers say where they listen while the other commands run.
    answers = [line for line in result.stdout.splitlines(keepends=True) if " serving on " not in line]
    assert "".join(answers) == shown


def test_the_first_example_is_short() -> None:
    assert len(blocks("python")[0].splitlines()) == 10


@pytest.mark.parametrize(
    ("code", "shown"), list(zip(blocks("python"), blocks("text"), strict=True)), ids=["short", "run"]
)
def test_a_python_example_works_as_printed(code: str, shown: str, folder: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == shown


def test_every_linked_file_exists() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text("utf-8"))
    assert links
    for link in links:
        assert README.parent.joinpath(link).exists(), link
