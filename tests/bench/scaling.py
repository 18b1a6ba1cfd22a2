"""What a second process brings on this machine, callers included."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack

from tests.bench.measure import Result, alternating, median_ratio
from tests.bench.processes import estimator_processes, line_of, started

CALLER_COUNT = 2
ROUND_SECONDS = 1.0


def second_process() -> Result:
    """Answers a second of two processes on one port over those of one."""
    with ExitStack() as stack:
        callers = []
        for process_count in (1, 2):
            target = stack.enter_context(estimator_processes(process_count))
            callers.append(
                [stack.enter_context(started(["-m", "tests.bench.caller", target])) for _ in range(CALLER_COUNT)]
            )
        of_one, of_two = callers
        answers_per_second(of_one)
        answers_per_second(of_two)
        one, two = alternating(lambda: answers_per_second(of_one), lambda: answers_per_second(of_two))
    return Result(
        name="two processes on one port",
        value=f"{max(two):,.0f} answers/s",
        ratio=median_ratio(two, one),
        ratio_of=f"one process, {max(one):,.0f} answers/s; {CALLER_COUNT} callers on the same {os.cpu_count()} cores",
    )


def answers_per_second(callers: list[subprocess.Popen[str]]) -> float:
    """What all of `callers` get together."""
    for caller in callers:
        if caller.stdin is None:
            raise RuntimeError("a caller has no standard input")
        caller.stdin.write(f"{ROUND_SECONDS}\n")
        caller.stdin.flush()
    return sum(int(line_of(caller)) for caller in callers) / ROUND_SECONDS
