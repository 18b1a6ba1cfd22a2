"""Processes that a measurement needs: a server, or callers that keep one busy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

STOP_LIMIT_SECONDS = 30.0


@contextmanager
def started(arguments: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A Python process with `arguments` that stops when its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that `process` prints. Raises RuntimeError where it ended instead."""
    line = process.stdout.readline().strip() if process.stdout is not None else ""
    if not line:
        raise RuntimeError(f"{process.args!r} ended")
    return line


@contextmanager
def bench_server() -> Iterator[str]:
    """The estimator with an empty handler; its address."""
    with started(["-m", "tests.bench.server"]) as process:
        yield f"127.0.0.1:{line_of(process)}"


@contextmanager
def estimator_processes(count: int) -> Iterator[str]:
    """`linkbound serve --only estimator --processes COUNT`; its address."""
    serve = ["-m", "linkbound.cli.main", "serve", "--only", "estimator", "--estimator-port", "0"]
    with started([*serve, "--processes", str(count), "--until-stdin-closes"]) as process:
        yield line_of(process).rpartition(" ")[2]


@frozen
class IngestServer:
    """An ingest service in a process."""

    target: str
    pid: int


@contextmanager
def ingest_server(folder: Path) -> Iterator[IngestServer]:
    """`linkbound serve --only ingest` over the store in `folder`."""
    serve = ["-m", "linkbound.cli.main", "serve", "--only", "ingest", "--ingest-port", "0", "--data", str(folder)]
    with started([*serve, "--until-stdin-closes"]) as process:
        yield IngestServer(line_of(process).rpartition(" ")[2], process.pid)
