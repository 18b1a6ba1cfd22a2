"""What the store tests put into a store, and how they look into it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
from attrs import define, field

from ingest_service.service import Ingest, StoreSettings
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.records import AppendRequest, MetricAggregate, Record, RequestRecord
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import OpenStreamRequest, SampleBatch, SampleColumns, SeriesDescriptor
from tests.new_store import MIGRATION_COUNT, START, laid

RUN = "study-109g"
TX = SeriesDescriptor(metric="port_xmit_data", node="spark1", device="mlx5_0", port=1, unit_bytes=4)
RX = SeriesDescriptor(metric="port_rcv_data", node="spark1", device="mlx5_0", port=1, unit_bytes=4)


@define
class TickingClock:
    """A clock that is one second later at every look."""

    seconds: int = 0

    def __call__(self) -> datetime:
        self.seconds += 1
        return START + timedelta(seconds=self.seconds)


@define
class GatedClock:
    """A ticking clock at which the writer thread waits while the gate is closed: nothing is committed meanwhile."""

    gate: threading.Event = field(factory=threading.Event)
    reached: threading.Event = field(factory=threading.Event)
    _clock: TickingClock = field(factory=TickingClock)

    def __attrs_post_init__(self) -> None:
        self.gate.set()

    def __call__(self) -> datetime:
        self.reached.set()
        assert self.gate.wait(60)
        return self._clock()

    def close_gate(self) -> None:
        """From here on the writer waits at its next transaction."""
        self.reached.clear()
        self.gate.clear()


def opened(folder: Path, clock: Callable[[], datetime] | None = None, **limits: Any) -> Ingest:
    """The store in `folder`; the clock of a new one is as late as if it had been made just now."""
    path = folder / "linkbound.duckdb"
    clock = clock or TickingClock(0 if path.exists() else MIGRATION_COUNT)
    return made_or_opened(laid(path).parent, clock, **limits)


def made_or_opened(folder: Path, clock: Callable[[], datetime] | None = None, **limits: Any) -> Ingest:
    """The same for tests of how a store is made."""
    return Ingest.open(StoreSettings(path=folder / "linkbound.duckdb", **limits), clock or TickingClock())


def with_run(ingest: Ingest, run_id: str = RUN) -> Ingest:
    """The same store with one open run."""
    ingest.create_run(CreateRunRequest(run_id=run_id))
    return ingest


def aggregate(subject: str = "P1", mean: float = 7.24) -> MetricAggregate:
    return MetricAggregate(metric=Metric.TTFT_SECONDS, subject=subject, value=Spread(mean=mean))


def request_record(subject: str = "P1", round_index: int = 0) -> RequestRecord:
    return RequestRecord(
        subject=subject,
        round_index=round_index,
        request_index=0,
        prompt_tokens=1024,
        output_tokens=1024,
        send_ns=1,
        ttft_ns=970_000_000,
        last_token_ns=46_000_000_000,
    )


def appended(number: int, *records: Record, writer: str = "bench", run: str = RUN) -> AppendRequest:
    return AppendRequest(
        run=run, writer_id=writer, sequence_number=number, records=records or (aggregate(f"P{number}"),)
    )


def stream(
    *series: SeriesDescriptor, writer: str = "sampler", run: str = RUN, last_acked: int = 0, first_kept: int = 0
) -> OpenStreamRequest:
    return OpenStreamRequest(
        run=run,
        writer_id=writer,
        series=series or (TX, RX),
        last_acked_sequence_number=last_acked,
        first_kept_sequence_number=first_kept,
    )


def batch(number: int, *columns: SampleColumns, sample_count: int = 3) -> SampleBatch:
    """A batch of given columns, or of `sample_count` readings of the first series whose values tell the number."""
    if not columns:
        times = tuple(range(number * 1000, number * 1000 + sample_count))
        columns = (SampleColumns(series_index=0, time_ns=times, value=times),)
    return SampleBatch(sequence_number=number, columns=columns)


def rows(folder: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a query yields on the closed store in `folder`."""
    with duckdb.connect(str(folder / "linkbound.duckdb"), read_only=True) as connection:
        found: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
        return found
