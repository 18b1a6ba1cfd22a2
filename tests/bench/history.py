"""The machine, and the committed page of earlier results."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.bench.measure import Result

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "bench-history.md"
PACKAGES = ("grpcio", "protobuf", "numpy", "attrs")


def machine() -> str:
    """What the results were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}"


def versions() -> str:
    """The interpreter and the packages that count."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in PACKAGES)])


def load() -> str:
    """What else the machine was doing: its load average over the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def add_to_page(results: Sequence[Result], load_before: str) -> None:
    """Write `results` at the end of the page."""
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    day = datetime.now(UTC).date().isoformat()
    lines = [
        "",
        f"## {day}, {commit}",
        "",
        f"{machine()}; {versions()}; load before {load_before}.",
        "",
        "| what | value | ratio | of |",
        "| --- | --- | --- | --- |",
        *(f"| {r.name} | {r.value} | {r.ratio:.2f} | {r.ratio_of} |" for r in results),
    ]
    with PAGE.open("a", encoding="utf-8") as page:
        page.write("\n".join(lines) + "\n")
