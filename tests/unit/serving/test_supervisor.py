"""Workers of a pool: which end is replaced, which ends the pool, and what is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from structlog.testing import capture_logs

from linkbound.domain.errors import UnavailableError
from serving.supervisor import WorkerPool, supervise

PATIENCE_SECONDS = 30.0
POLL_SECONDS = 0.05

# Says which process it is, and runs until its standard input ends.
WORKER = """#!{python}
import os, sys
open({folder!r} + "/" + str(os.getpid()), "w").close()
print("serving", flush=True)
sys.stdin.read()
"""


@frozen
class Pool:
    """A pool that runs, and the file that its workers are started from."""

    program: Path
    task: asyncio.Task[None]
    stop: asyncio.Event

    @property
    def started(self) -> set[int]:
        """Every process that was ever started."""
        return {int(path.name) for path in self.program.parent.joinpath("started").iterdir()}


async def until(condition: Callable[[], bool]) -> None:
    """Returns once `condition` holds; fails after a while."""
    for _ in range(round(PATIENCE_SECONDS / POLL_SECONDS)):
        if condition():
            return
        await asyncio.sleep(POLL_SECONDS)
    pytest.fail("it never came to that")


def program(folder: Path, text: str = WORKER) -> Path:
    """A worker as a file that can be run."""
    folder.joinpath("started").mkdir()
    path = folder / "worker"
    path.write_text(text.format(python=sys.executable, folder=str(folder / "started")), "utf-8")
    path.chmod(0o700)
    return path


def pool_of(path: Path) -> WorkerPool:
    return WorkerPool(command=[str(path)], environment=os.environ, process_count=2, grace_seconds=1.0)


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[Pool]:
    """A pool of two whose workers serve."""
    stop, serving = asyncio.Event(), asyncio.Event()
    task = asyncio.ensure_future(supervise(pool_of(path), stop=stop, on_serving=serving.set))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await serving.wait()
        yield Pool(path, task, stop)
    finally:
        stop.set()
        with suppress(UnavailableError, OSError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await task


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def events(lines: list[Any], event: str) -> list[Any]:
    return [line for line in lines if line["event"] == event]


async def test_a_worker_that_cannot_be_started_again_leaves_the_others_and_is_tried_again(tmp_path: Path) -> None:
    path = program(tmp_path)
    with capture_logs() as lines:
        async with running(path) as pool:
            first, other = sorted(pool.started)
            path.rename(tmp_path / "away")
            os.kill(first, signal.SIGKILL)
            await until(lambda: bool(events(lines, "worker_not_started")) or pool.task.done())
            assert not pool.task.done()
            assert is_running(other)
            (tmp_path / "away").rename(path)
            await until(lambda: len(pool.started) == 3)
            assert not pool.task.done()
    (line, *_) = events(lines, "worker_not_started")
    assert (line["log_level"], line["error"]) == ("error", "No such file or directory")
    assert line["pause_seconds"] > 0


async def test_a_program_that_is_not_there_ends_the_pool_in_words(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        await supervise(pool_of(tmp_path / "missing"), stop=asyncio.Event(), on_serving=pytest.fail)
    assert caught.value.reason == "WORKER_FAILED"
    assert "could not be started: No such file or directory" in caught.value.message


async def test_one_that_ends_while_others_start_takes_them_along(tmp_path: Path) -> None:
    ends_if_first = """
try:
    os.mkdir({folder!r} + "/../first")
except FileExistsError:
    pass
else:
    sys.exit(7)
"""
    path = program(tmp_path, WORKER.replace("import os, sys\n", f"import os, sys\n{ends_if_first}"))
    with pytest.raises(UnavailableError) as caught:
        await supervise(pool_of(path), stop=asyncio.Event(), on_serving=pytest.fail)
    assert "a worker ended with exit code 7 while the workers started" in caught.value.message
    assert not any(is_running(int(started.name)) for started in (tmp_path / "started").iterdir())


async def test_the_pause_before_a_replacement_grows_while_replacements_end(tmp_path: Path) -> None:
    path = program(tmp_path)
    with capture_logs() as lines:
        async with running(path) as pool:
            path.write_text("#!/bin/sh\nexit 3\n", "utf-8")
            (first, _) = sorted(pool.started)
            os.kill(first, signal.SIGKILL)
            await until(lambda: len(events(lines, "worker_ended")) >= 3)
    ends = events(lines, "worker_ended")[:3]
    assert [line["pause_seconds"] for line in ends] == [0.5, 1.0, 2.0]
    assert [line["exit_code"] for line in ends] == [-signal.SIGKILL, 3, 3]
    assert {line["worker"] for line in ends} == {ends[0]["worker"]}


async def test_nothing_is_left_when_the_pool_stops_and_nothing_is_started_after(tmp_path: Path) -> None:
    async with running(program(tmp_path)) as pool:
        started = pool.started
    assert len(started) == 2
    assert pool.started == started
    assert not any(map(is_running, started))


async def test_a_pool_that_is_stopped_before_it_serves_says_nothing(tmp_path: Path) -> None:
    path = program(tmp_path, WORKER.replace('print("serving", flush=True)\n', ""))
    stop = asyncio.Event()
    task = asyncio.ensure_future(supervise(pool_of(path), stop=stop, on_serving=pytest.fail))
    pool = Pool(path, task, stop)
    await until(lambda: len(pool.started) == 2)
    stop.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await task
    assert not any(map(is_running, pool.started))
