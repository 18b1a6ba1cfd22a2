"""Several processes of one server: started together, replaced when one ends, stopped together, never left behind.

A worker is a command that prints one line once it serves, stops on SIGTERM, and stops when its standard input ends. So
it does not outlive this process, however that ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog
from attrs import field, frozen

from linkbound.domain.errors import UnavailableError
from serving.logging import WORKER_ENDED, WORKER_NOT_STARTED, WORKER_SERVING

SHORTEST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A worker that served this long and ends is replaced as soon as a first one would be."""
STOP_MARGIN_SECONDS = 5.0
"""Beyond the grace of its calls, before a worker that does not stop is killed."""

_LOG = structlog.get_logger("serving")


@frozen(kw_only=True)
class WorkerPool:
    """`process_count` workers that run `command`."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    process_count: int
    grace_seconds: float


@frozen
class _End:
    """How a worker ended: the event of the log line, in words, and as fields of the line."""

    event: str
    text: str
    facts: Mapping[str, object]


async def supervise(pool: WorkerPool, *, stop: asyncio.Event, on_serving: Callable[[], None]) -> None:
    """Run the workers of `pool` until `stop` is set; `on_serving` is called once all of them serve.

    A worker that ends afterwards, or that cannot be started again, is replaced after a pause that grows while its
    successors fail too. Raises UnavailableError (WORKER_FAILED) where one ends, or cannot be started, before all of
    them have served: its log says why.
    """
    all_serve = asyncio.Event()
    workers = [_Worker(index, pool, stop, all_serve) for index in range(pool.process_count)]

    async def announce() -> None:
        await _first_of(stop.wait(), asyncio.gather(*(worker.has_served.wait() for worker in workers)))
        if not stop.is_set():
            all_serve.set()
            on_serving()

    tasks = [asyncio.ensure_future(announce()), *(asyncio.ensure_future(worker.run()) for worker in workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Worker:
    """One place in a pool, and the process that has it."""

    def __init__(self, index: int, pool: WorkerPool, stop: asyncio.Event, all_serve: asyncio.Event) -> None:
        self._pool = pool
        self._stop = stop
        self._all_serve = all_serve
        self._log = _LOG.bind(worker=index)
        self.has_served = asyncio.Event()

    async def run(self) -> None:
        """Fill the place until the pool stops."""
        pause = SHORTEST_PAUSE_SECONDS
        while True:
            started = time.monotonic()
            end = await self._end_of_one()
            if self._stop.is_set():
                return
            if not self._all_serve.is_set():
                raise UnavailableError(f"{end.text} while the workers started", reason="WORKER_FAILED")
            if time.monotonic() - started >= STEADY_SECONDS:
                pause = SHORTEST_PAUSE_SECONDS
            self._log.error(end.event, **end.facts, pause_seconds=pause)
            if await _within(pause, self._stop.wait()):
                return
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _end_of_one(self) -> _End:
        """How the next process ended, or that there was none: a machine may be short of memory for a while."""
        try:
            exit_code = await self._run_one()
        except OSError as error:
            problem = error.strerror or str(error)
            return _End(WORKER_NOT_STARTED, f"a worker could not be started: {problem}", {"error": problem})
        return _End(WORKER_ENDED, f"a worker ended with exit code {exit_code}", {"exit_code": exit_code})

    async def _run_one(self) -> int:
        """One process from start to end; its exit code, negative for a signal."""
        process = await asyncio.create_subprocess_exec(
            *self._pool.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=self._pool.environment,
            # A signal from the terminal reaches this process alone, which then stops the workers in order.
            start_new_session=True,
        )
        watching = asyncio.ensure_future(self._watch(process))
        try:
            await _first_of(process.wait(), self._stop.wait())
        finally:
            await self._end(process)
            watching.cancel()
        return await process.wait()

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Note the line that says that `process` serves."""
        if process.stdout is not None and await process.stdout.readline():
            self._log.info(WORKER_SERVING, pid=process.pid)
            self.has_served.set()

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        """Stop `process` if it runs: gently, and after its grace at once."""
        if process.returncode is None:
            process.terminate()
            if not await _within(self._pool.grace_seconds + STOP_MARGIN_SECONDS, process.wait()):
                process.kill()


async def _first_of(*waits: Awaitable[object]) -> None:
    """Return once one of `waits` is done; the others are given up."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _within(limit_seconds: float, wait: Awaitable[object]) -> bool:
    """Whether `wait` is done within `limit_seconds`; it is given up else."""
    try:
        async with asyncio.timeout(limit_seconds):
            await wait
    except TimeoutError:
        return False
    return True
