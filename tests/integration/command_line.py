"""The command as a process of its own, the way a person or a script runs it."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import attrs

COMMAND = str(Path(sys.executable).parent / "linkbound")
LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.05

_SERVING = re.compile(r"(estimator|ingest) serving on (\S+)")


@attrs.frozen
class Outcome:
    """What a command did."""

    exit_code: int
    out: str
    err: str

    @property
    def answer(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


def environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The test's environment with `settings` of Linkbound and no others."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("LINKBOUND_")}
    return {**others, **(settings or {})}


def linkbound(*arguments: str, settings: Mapping[str, str] | None = None, cwd: Path | None = None) -> Outcome:
    """Runs the command to its end."""
    result = subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment(settings),
        cwd=cwd,
        timeout=LIMIT_SECONDS,
    )
    return Outcome(result.returncode, result.stdout, result.stderr)


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script in `folder` with the command of this environment on the path."""
    path = os.pathsep.join([str(Path(COMMAND).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**environment(), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )


def start(
    *arguments: str,
    settings: Mapping[str, str] | None = None,
    stdin: int | None = None,
    stderr: int | IO[str] = subprocess.PIPE,
) -> subprocess.Popen[str]:
    """Starts the command in a process group of its own, so that a signal can be sent to it alone."""
    return subprocess.Popen(
        [COMMAND, *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env=environment(settings),
        start_new_session=True,
    )


@contextmanager
def serving(*arguments: str, settings: Mapping[str, str] | None = None) -> Iterator[dict[str, str]]:
    """Servers as long as the block runs; the address of each service by its name."""
    part_count = 1 if "--only" in arguments else 2
    # A pipe that nobody reads fills with the lines of some hundred calls, and then the server waits for ever.
    with tempfile.TemporaryFile("w+") as log:
        process = start(
            "serve", "--estimator-port", "0", "--ingest-port", "0", *arguments, settings=settings, stderr=log
        )
        try:
            assert process.stdout is not None
            matches = [_SERVING.fullmatch(process.stdout.readline().strip()) for _ in range(part_count)]
            yield {match[1]: match[2] for match in matches if match is not None}
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=LIMIT_SECONDS)
            log.seek(0)
            assert process.returncode == 0, log.read()
        finally:
            process.kill()
            process.communicate()


def children_of(pid: int) -> list[int]:
    """Process ids of the children that `pid` has now."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end while it is looked at.
        with suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in task.joinpath("children").read_text().split()]
    return found


def runs(pid: int) -> bool:
    """Whether `pid` is a process that has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


def wait_until_ended(pids: list[int]) -> None:
    """Returns once none of `pids` runs; fails after a while."""
    give_up = time.monotonic() + LIMIT_SECONDS
    while any(runs(pid) for pid in pids):
        assert time.monotonic() < give_up, [pid for pid in pids if runs(pid)]
        time.sleep(POLL_SECONDS)
