"""What the command and the estimator cost to load."""

from __future__ import annotations

import subprocess
import sys

from tests.bench.measure import Result, alternating, median_ratio, seconds_of

COMMAND = ["-m", "linkbound.cli.main", "estimate", "prefill", "--model", "glm-5.3", "--tp", "8"]
ARGUMENTS = ["--prompt-tokens", "8192", "--link", "200g"]
MILLISECONDS = 1e3


def start_of_the_command() -> Result:
    """One local estimate from the command line, over an interpreter that does nothing."""

    def run(*arguments: str) -> float:
        command = [sys.executable, *arguments]
        return seconds_of(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True))

    ours, bare = alternating(lambda: run(*COMMAND, *ARGUMENTS), lambda: run("-c", "pass"))
    return Result(
        name="one local estimate, command and all",
        value=f"{min(ours) * MILLISECONDS:.0f} ms",
        ratio=median_ratio(ours, bare),
        ratio_of=f"an interpreter that does nothing, {min(bare) * MILLISECONDS:.0f} ms",
    )
