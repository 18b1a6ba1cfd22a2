"""The tutorial of sizing works as printed: every command runs, and prints what stands below it."""

import re
from pathlib import Path

import pytest

from tests.integration.command_line import shell
from tests.integration.readme import Example, blocks, examples

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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.command[:60])
def test_a_command_prints_what_is_shown(example: Example, tmp_path: Path) -> None:
    result = shell(example.command, tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == example.output
    assert result.stdout.strip()


def test_every_command_of_the_page_is_run() -> None:
    shown = re.findall(r"^\$ ", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(EXAMPLES) == len(shown) >= 20
    assert all("linkbound " in example.command for example in EXAMPLES)


def test_the_questions_are_the_headings() -> None:
    headings = " ".join(re.findall(r"^## (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)).casefold()
    assert [question for question in QUESTIONS if question not in headings] == []
