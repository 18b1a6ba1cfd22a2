"""The ingest service under agents: rows that become durable, how long acknowledgements take, what the server takes.

A row is one reading with both of its times. Agents and server have a process each and share the cores of this machine.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attrs import field, frozen

from linkbound import IngestClient
from linkbound.client.local.blocking import STORE_FILE_NAME
from tests.bench.ingest_agent import RUN
from tests.bench.ingest_floor import ROWS_PER_TRANSACTION, fill, raw_rows_per_second
from tests.bench.measure import Result, alternating, median_ratio
from tests.bench.processes import IngestServer, ingest_server, line_of, started

MILLION = 1e6
MILLISECONDS = 1e3
ROUND_COUNT = 5

FLAT_OUT_SECONDS = 2.0
FLAT_OUT_AGENT_COUNT = 8
FLAT_OUT_BATCH_ROWS = 8_000

PACED_AGENT_COUNT = 32
PACED_ROWS_PER_SECOND = 256_000
PACED_BATCHES_PER_SECOND = 10

QUIET_AGENT_COUNT = 64
QUIET_ROWS_PER_SECOND = 1_000
STEADY_SECONDS = 10.0

STORE_BYTES = 10**9


@frozen(kw_only=True)
class Load:
    """Agents in processes. `batches_per_second` is that of each; 0: as many as its window lets through."""

    process_count: int
    agents_per_process: int
    encoding: str
    batch_rows: int
    series_count: int
    batches_per_second: float = 0


@frozen(kw_only=True)
class Round:
    """What the agents of a load measured together."""

    row_count: int
    seconds: float
    waits: Sequence[float] = field(repr=False)

    @property
    def rows_per_second(self) -> float:
        """Rows that became durable, until the last one was."""
        return self.row_count / self.seconds


@frozen
class Agents:
    """The processes of a load, which are connected and wait."""

    load: Load
    processes: Sequence[subprocess.Popen[str]]

    def round(self, seconds: float) -> Round:
        """One round of all agents at once."""
        for process in self.processes:
            if process.stdin is None:
                raise RuntimeError("an agent has no standard input")
            process.stdin.write(f"{seconds} {self.load.batches_per_second}\n")
            process.stdin.flush()
        answers = [json.loads(line_of(process)) for process in self.processes]
        return Round(
            row_count=sum(answer["rows"] for answer in answers),
            seconds=max(answer["seconds"] for answer in answers),
            waits=[wait for answer in answers for wait in answer["waits"]],
        )


@contextmanager
def agents_at(target: str, load: Load) -> Iterator[Agents]:
    """The agents of `load`, each with its stream to `target` open."""
    with IngestClient(target) as client:
        client.create_run(RUN)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                started(
                    [
                        *("-m", "tests.bench.ingest_agent", target),
                        *(str(index * load.agents_per_process), str(load.agents_per_process), load.encoding),
                        *(str(load.batch_rows), str(load.series_count)),
                    ]
                )
            )
            for index in range(load.process_count)
        ]
        for process in processes:
            line_of(process)
        yield Agents(load, processes)


@contextmanager
def served(load: Load) -> Iterator[tuple[IngestServer, Agents]]:
    """A server with a new store, and the agents of `load` at it, warm."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ingest_server(Path(folder)) as server,
        agents_at(server.target, load) as agents,
    ):
        agents.round(1.0)
        yield server, agents


def _flat_out(encoding: str) -> Result:
    """Durable rows a second of agents that send as fast as they may, over DuckDB alone in one process."""
    load = Load(
        process_count=FLAT_OUT_AGENT_COUNT,
        agents_per_process=1,
        encoding=encoding,
        batch_rows=FLAT_OUT_BATCH_ROWS,
        series_count=4,
    )
    with served(load) as (_, agents):
        ours, floor = alternating(
            lambda: agents.round(FLAT_OUT_SECONDS).rows_per_second, _floor, round_count=ROUND_COUNT
        )
    return Result(
        name=f"samples flat out, {encoding}, {FLAT_OUT_AGENT_COUNT} agents",
        value=f"{max(ours) / MILLION:.2f} million rows/s",
        ratio=median_ratio(ours, floor),
        ratio_of=f"DuckDB alone, {max(floor) / MILLION:.2f} million rows/s in transactions of 8,000",
        goal="at least 1 million rows/s, and 0.5" if encoding == "arrow" else "",
    )


def flat_out_arrow() -> Result:
    """In the bulk encoding."""
    return _flat_out("arrow")


def flat_out_columns() -> Result:
    """In packed columns."""
    return _flat_out("columns")


def paced() -> Result:
    """How long acknowledgements take at 256,000 rows a second, over one transaction of DuckDB alone."""
    batch_rows = PACED_ROWS_PER_SECOND // PACED_AGENT_COUNT // PACED_BATCHES_PER_SECOND
    load = Load(
        process_count=4,
        agents_per_process=PACED_AGENT_COUNT // 4,
        encoding="columns",
        batch_rows=batch_rows,
        series_count=8,
        batches_per_second=PACED_BATCHES_PER_SECOND,
    )
    with served(load) as (_, agents):
        slowest, floor = alternating(
            lambda: _percentile(agents.round(STEADY_SECONDS).waits, 0.99),
            lambda: ROWS_PER_TRANSACTION / _floor(),
            round_count=3,
        )
    return Result(
        name=f"acknowledgements at {PACED_ROWS_PER_SECOND:,} rows/s, {PACED_AGENT_COUNT} agents",
        value=f"p99 {min(slowest) * MILLISECONDS:.0f} ms",
        ratio=median_ratio(slowest, floor),
        ratio_of=f"one transaction of DuckDB alone, {min(floor) * MILLISECONDS:.1f} ms for 8,000 rows",
        goal="p99 below 40 ms",
    )


def quiet() -> Result:
    """What the server takes of a core under agents at 1 kHz."""
    load = Load(
        process_count=4,
        agents_per_process=QUIET_AGENT_COUNT // 4,
        encoding="columns",
        batch_rows=QUIET_ROWS_PER_SECOND // 10,
        series_count=1,
        batches_per_second=10,
    )
    with served(load) as (server, agents):
        shares = []
        for _ in range(3):
            before, begun = _cpu_seconds(server.pid), time.perf_counter()
            agents.round(STEADY_SECONDS)
            shares.append((_cpu_seconds(server.pid) - before) / (time.perf_counter() - begun))
    return Result(
        name=f"{QUIET_AGENT_COUNT} agents at 1 kHz",
        value=f"{min(shares):.2f} of a core",
        ratio=statistics.median(shares),
        ratio_of="one core",
        goal="at most 0.35",
    )


def cold_start() -> Result:
    """From the start of the process to serving, with a store file of 1 GB, over a new one."""
    with tempfile.TemporaryDirectory() as full, tempfile.TemporaryDirectory() as empty:
        fill(Path(full) / STORE_FILE_NAME, STORE_BYTES)
        _start_seconds(Path(empty))
        large, small = alternating(
            lambda: _start_seconds(Path(full)), lambda: _start_seconds(Path(empty)), round_count=3
        )
    return Result(
        name="cold start with a store of 1 GB",
        value=f"{min(large):.2f} s",
        ratio=median_ratio(large, small),
        ratio_of=f"that with an empty one, {min(small):.2f} s",
        goal="at most 3 s",
    )


def _floor() -> float:
    with tempfile.TemporaryDirectory() as folder:
        return raw_rows_per_second(Path(folder))


def _start_seconds(folder: Path) -> float:
    begun = time.perf_counter()
    # Its line comes once health says SERVING.
    with ingest_server(folder):
        return time.perf_counter() - begun


def _percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _cpu_seconds(pid: int) -> float:
    """What a process took of the cores so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
