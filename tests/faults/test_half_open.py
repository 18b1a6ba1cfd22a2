"""Peers that vanish without a word: both sides notice, what they held is free again, and nothing is lost or twice."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.conftest import Report
from tests.faults.figures import FaultFigures
from tests.faults.half_open import LIMIT_SECONDS, Outcome
from tests.faults.repeats import IS_FULL
from tests.faults.truth import Verdict
from tests.integration.command_line import environment

pytestmark = pytest.mark.storage

ROOT = Path(__file__).parents[2]
OWN_NETWORK = ["unshare", "--net", "--map-root-user", "sh", "-c"]
LINK_UP = "ip link set dev lo up"
ROUNDS = 3 if IS_FULL else 1
KEEPALIVE = ["30", "10"] if IS_FULL else ["1", "1"]
"""The defaults, or as short as it goes."""


def in_own_network(command: str) -> subprocess.CompletedProcess[str]:
    """Run `command` in a network in which nobody else is."""
    return subprocess.run(
        [*OWN_NETWORK, f"{LINK_UP} && {command}"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS * (3 * ROUNDS + 1),
    )


def test_connections_whose_other_end_is_gone_are_given_up_on_both_sides(tmp_path: Path, report: Report) -> None:
    if not (shutil.which("unshare") and shutil.which("ip")) or in_own_network("true").returncode != 0:
        pytest.skip("this system lets nobody have a network of their own")
    arguments = " ".join([f"'{tmp_path}'", str(ROUNDS), *KEEPALIVE])
    result = in_own_network(f"'{sys.executable}' -m tests.faults.half_open {arguments}")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    found, outcome = Verdict(**answer["verdict"]), Outcome(**answer["outcome"])
    report(
        FaultFigures(
            fault="link lost without a word",
            times=ROUNDS + 1,
            rows=found.rows,
            recovery_seconds=outcome.recovery_seconds,
            peak_rss_bytes=max(outcome.peak_rss_bytes),
            remarks=[
                f"noticed by the service after {max(outcome.server_notice_seconds):.0f} s at most",
                f"by agents after {max(outcome.agent_notice_seconds):.0f} s",
                f"without calls after {max(outcome.idle_notice_seconds):.0f} s",
            ],
        )
    )
    assert found.is_right, found
