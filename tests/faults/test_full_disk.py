"""A file system that is full below a spool, for real."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.full_disk import MORE_THAN_FIT, SAMPLES_PER_BATCH
from tests.integration.command_line import LIMIT_SECONDS, environment

ROOT = Path(__file__).parents[2]
SMALL_DISK = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
MOUNT = "mount -t tmpfs -o size=2m none '{directory}'"


def on_a_small_disk(directory: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run `command` with a tmpfs of 2 MB at `directory`, which nobody else sees."""
    script = f"{MOUNT.format(directory=directory)} && {command}"
    return subprocess.run(
        [*SMALL_DISK, script],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )


def test_a_full_disk_drops_the_newest_and_empties_itself(tmp_path: Path) -> None:
    if shutil.which("unshare") is None or on_a_small_disk(tmp_path, "true").returncode != 0:
        pytest.skip("this system lets nobody mount a small file system")
    result = on_a_small_disk(tmp_path, f"{sys.executable} -m tests.faults.full_disk '{tmp_path}'")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert 10 < len(found["kept"]) < MORE_THAN_FIT
    assert found["first_dropped"] == (MORE_THAN_FIT - len(found["kept"])) * SAMPLES_PER_BATCH
    assert found["second_dropped"] == SAMPLES_PER_BATCH
    assert found["stored"] == [*found["kept"], -1]
    assert found["last_dropped"] == 0
