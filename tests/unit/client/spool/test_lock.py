import os
import subprocess
import sys
from pathlib import Path

import pytest

from linkbound import UnavailableError
from linkbound.client.spool.lock import SpoolLock, holder_of

HOLD = """
import sys, pathlib
from linkbound.client.spool.lock import SpoolLock
lock = SpoolLock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_holder_is_told_the_pid_of_the_first(tmp_path: Path) -> None:
    assert holder_of(tmp_path) is None
    lock = SpoolLock(tmp_path)
    assert holder_of(tmp_path) == os.getpid()
    with pytest.raises(UnavailableError, match=str(os.getpid())) as caught:
        SpoolLock(tmp_path)
    assert (caught.value.reason, caught.value.metadata["pid"]) == ("SPOOL_LOCKED", str(os.getpid()))
    lock.release()
    assert holder_of(tmp_path) is None
    SpoolLock(tmp_path).release()


def test_a_process_that_is_killed_lets_go(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert holder_of(tmp_path) == process.pid
        with pytest.raises(UnavailableError) as caught:
            SpoolLock(tmp_path)
        assert caught.value.metadata["pid"] == str(process.pid)
        process.kill()
    SpoolLock(tmp_path).release()
