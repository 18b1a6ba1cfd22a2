"""The tutorial of sizing works as printed: every command runs, and prints what stands below it."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.integration.command_line import shell
from tests.integration.readme import Example, blocks, examples
from tests.unit.cli.command import SETTINGS, Command, Outcome

PAGE = Path(__file__).parents[2] / "docs" / "sizing.md"
EXAMPLES = [example for block in blocks("console", PAGE) for example in examples(block)]
QUESTIONS = (
    "which switch",
    "which cables",
    "100g enough for my ttft target",
    "when do the first tokens of prompts that arrive together come",
    "one pcie function of the port, or both",
    "one tp16 on 16 nodes, or two tp8",
    "does it fit",
    "tensor or pipeline parallel over a slow link",
    "what does training lose",
    "is the plan complete",
)


@pytest.fixture
def linkbound(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Command(capsys)


def done(script: str, folder: Path, linkbound: Command) -> Outcome:
    """What a script of the page does: the command in this process, and a shell for what its output goes through."""
    command, *filters = script.split(" | ")
    program, *arguments = shlex.split(command)
    if program != "linkbound":
        whole = shell(script, folder)
        return Outcome(whole.returncode, whole.stdout, whole.stderr)
    outcome = linkbound(*arguments)
    if not filters or outcome.exit_code != 0:
        return outcome
    shown = subprocess.run(
        ["bash", "-c", " | ".join(filters)], input=outcome.out, capture_output=True, text=True, check=False
    )
    return Outcome(shown.returncode, shown.stdout, outcome.err + shown.stderr)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.command[:60])
def test_a_command_prints_what_is_shown(example: Example, tmp_path: Path, linkbound: Command) -> None:
    result = done(example.command, tmp_path, linkbound)
    assert (result.exit_code, result.err) == (0, "")
    assert result.out == example.output
    assert result.out.strip()


def test_every_command_of_the_page_is_run() -> None:
    shown = re.findall(r"^\$ ", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(EXAMPLES) == len(shown) >= 20
    assert all("linkbound " in example.command for example in EXAMPLES)


def test_the_questions_are_the_headings() -> None:
    headings = " ".join(re.findall(r"^## (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)).casefold()
    assert [question for question in QUESTIONS if question not in headings] == []
