"""File systems that are really full, below a spool and below a store."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.conftest import Report
from tests.faults.figures import FaultFigures, Rows
from tests.faults.full_disk import MORE_THAN_FIT, SAMPLES_PER_BATCH
from tests.faults.full_store import LIMIT_SECONDS, Outcome
from tests.faults.truth import Verdict
from tests.integration.command_line import environment

ROOT = Path(__file__).parents[2]
SMALL_DISK = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
MOUNT = "mount -t tmpfs -o size={size} none '{directory}'"
UNREACHABLE = 3
"""Exit code of a service that is away."""


def on_a_small_disk(directory: Path, size: str, command: str) -> subprocess.CompletedProcess[str]:
    """Run `command` with a tmpfs of `size` at `directory`, which nobody else sees; skip where none may be mounted."""

    def run(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*SMALL_DISK, f"{MOUNT.format(size=size, directory=directory)} && {script}"],
            cwd=ROOT,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_SECONDS * 2,
        )

    if shutil.which("unshare") is None or run("true").returncode != 0:
        pytest.skip("this system lets nobody mount a small file system")
    return run(command)


def test_a_full_disk_drops_the_newest_and_empties_itself(tmp_path: Path, report: Report) -> None:
    result = on_a_small_disk(tmp_path, "2m", f"'{sys.executable}' -m tests.faults.full_disk '{tmp_path}'")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    dropped = found["first_dropped"] + found["second_dropped"]
    kept, stored = (len(found[name]) * SAMPLES_PER_BATCH for name in ("kept", "stored"))
    sent = kept + dropped + SAMPLES_PER_BATCH
    report(
        FaultFigures(
            fault="disk of a spool full",
            times=2,
            rows=Rows(sent=sent, acknowledged=stored, stored=stored, lost=kept + SAMPLES_PER_BATCH - stored, twice=0),
            remarks=[f"{dropped:,} told to the writer as dropped"],
        )
    )
    assert 10 < len(found["kept"]) < MORE_THAN_FIT
    assert found["first_dropped"] == (MORE_THAN_FIT - len(found["kept"])) * SAMPLES_PER_BATCH
    assert found["second_dropped"] == SAMPLES_PER_BATCH
    assert found["stored"] == [*found["kept"], -1]
    assert found["last_dropped"] == 0


@pytest.mark.storage
@pytest.mark.parametrize(
    ("floor_bytes", "exit_code", "fault"),
    [(0, UNREACHABLE, "disk of the store full"), (3 * 2**20, None, "disk of the store at its floor")],
    ids=["full", "floor"],
)
def test_a_store_on_a_full_disk_loses_nothing(
    tmp_path: Path, report: Report, floor_bytes: int, exit_code: int | None, fault: str
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    result = on_a_small_disk(disk, "10m", f"'{sys.executable}' -m tests.faults.full_store '{tmp_path}' {floor_bytes}")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    found, outcome = Verdict(**answer["verdict"]), Outcome(**answer["outcome"])
    report(
        FaultFigures(
            fault=fault,
            times=1,
            rows=found.rows,
            recovery_seconds=outcome.recovery_seconds,
            peak_rss_bytes=outcome.peak_rss_bytes,
            remarks=["refused, and went on" if outcome.exit_code is None else f"ended with {outcome.exit_code}"],
        )
    )
    assert outcome.exit_code == exit_code
    assert outcome.has_said_not_serving
    assert found.is_right, found
