"""One of a thing is not called several, and no time reads as nothing."""

import pytest

from tests.unit.cli.command import PREFILL, TRAINING, Command

COLLECTIVE = ("estimate", "collective", "--ranks")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["estimate", "sweep", "--model", "glm-5.3", "--tp", "8", "--prompt-tokens", "1k", "--link", "10g"],
            "1 point of",
        ),
        ([*TRAINING, "--nodes", "1"], "on 1 node"),
        ([*TRAINING, "--nodes", "1024"], "on 1,024 nodes"),
        ([*COLLECTIVE, "2", "--message-bytes", "1", "--link", "200g"], "all-reduce of 1 byte among 2 ranks"),
        ([*PREFILL, "--prompt-tokens", "1"], "1 prompt token of glm-5.3"),
        ([*PREFILL, "--max-num-batched-tokens", "1", "--prompt-tokens", "1"], "all-reduce of 1 token "),
        (["plan", "check", "--nodes", "1", "--link", "200g", "--tp", "1", "--prompt-tokens", "1"], "of TP1 on 1 node."),
        (
            ["plan", "check", "--nodes", "9", "--link", "200g", "--tp", "8"],
            "1 instance of TP8 on 9 nodes; 1 stays idle.",
        ),
        ([*COLLECTIVE, "2", "--message-bytes", "1", "--link", "1000t"], "at least 8e-15 s: "),
        ([*TRAINING, "--compute-step-seconds", "1000000"], "a step takes 1,000,000 s to"),
    ],
)
def test_numbers_of_things(arguments: list[str], told: str, linkbound: Command) -> None:
    outcome = linkbound(*arguments)
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert told in outcome.out
