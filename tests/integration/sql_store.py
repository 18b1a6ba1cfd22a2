"""The store that the examples of docs/sql.md ask: the studies' records, a part of a recording, tests of links.

All of it comes from files of this repository. The clock of the store is set before each append, so that its times are
the same whenever it is built.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from attrs import define

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from linkbound.client import ingest_questions
from linkbound.client.estimator import EstimatorClient
from linkbound.client.ingest import IngestClient
from linkbound.client.question import Question
from linkbound.data.study import load_study
from linkbound.demo.runner import Loader
from linkbound.domain.records import AppendRequest, Event, LinkTest, LinkTestDirection
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import OpenStreamRequest, SampleBatch, SampleColumns, SeriesDescriptor
from tests.golden.lab_recording import BOOT, DEVICES, METRICS, NODE, REDUCED, Recording

RATE_MEGABITS_PER_SECOND = 400
MONOTONIC_NS, REALTIME_NS = 4180383715908, 1796034851531970751
"""Both clocks of the recording at one moment: its counters begin with them."""

BATCH_READING_COUNT = 1000
COMMIT_DELAY = timedelta(milliseconds=12)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

LINK_TESTS = (
    LinkTest(
        subject="one function of the port",
        tool="ib_write_bw",
        direction=LinkTestDirection.ONE_WAY,
        bits_per_second=109.07e9,
        source="tensor-parallel network study, appendix A",
    ),
    LinkTest(
        subject="both functions of the port",
        tool="ib_write_bw",
        direction=LinkTestDirection.ONE_WAY,
        bits_per_second=185e9,
        source="public runs of ib_write_bw over both functions",
    ),
    LinkTest(
        subject="400G breakout cable, one leg",
        tool="ib_write_bw",
        direction=LinkTestDirection.ONE_WAY,
        bits_per_second=98e9,
        source="public runbook of DGX Spark on a CRS804",
    ),
    LinkTest(
        subject="a degraded port",
        tool="ib_write_bw",
        direction=LinkTestDirection.ONE_WAY,
        bits_per_second=13e9,
        source="public reports of a link that is up and slow",
    ),
)


@define
class SetClock:
    """A clock that tells what it was set to."""

    now: datetime = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def set_behind(self, monotonic_ns: int) -> None:
        """Some milliseconds behind a moment of the recording."""
        unix_ns = REALTIME_NS + monotonic_ns - MONOTONIC_NS
        self.now = EPOCH + timedelta(microseconds=unix_ns // 1000) + COMMIT_DELAY


@define
class _AsClient:
    """Asks a store what the demo asks a client."""

    _ingest: Ingest

    def __getattr__(self, name: str) -> Any:
        ask = getattr(ingest_questions, name)

        def method(*arguments: Any, **keywords: Any) -> Any:
            asked: Question[Any] = ask(*arguments, **keywords)
            answer = getattr(self._ingest, asked.operation.name)(
                getattr(asked.request, "run", asked.request) if name in ("get_run", "compare_run") else asked.request
            )
            return answer.result() if name == "append" else answer

        return method


def build(folder: Path) -> Path:
    """Fills a store in `folder`, closes it, and returns its file."""
    path = folder / "linkbound.duckdb"
    clock = SetClock()
    with Ingest.open(StoreSettings(path=path), clock) as ingest:
        with EstimatorClient("local:") as estimator:
            Loader(estimator, cast("IngestClient", _AsClient(ingest)), lambda _line: None).load(load_study())
        _add_link_tests(ingest)
        _add_recording(ingest, clock)
    return path


def _add_link_tests(ingest: Ingest) -> None:
    ingest.create_run(CreateRunRequest(run_id="links"))
    ingest.append(AppendRequest(run="links", writer_id="bench", sequence_number=1, records=LINK_TESTS)).result()


def _add_recording(ingest: Ingest, clock: SetClock) -> None:
    recording = Recording(REDUCED, RATE_MEGABITS_PER_SECOND)
    clock.set_behind(MONOTONIC_NS)
    ingest.create_run(CreateRunRequest(run_id=recording.run, source="tests/golden/lab_recording"))
    anchor = Event(kind="clock_anchor", node=NODE, boot_id=BOOT, time_ns=MONOTONIC_NS, time_unix_ns=REALTIME_NS)
    ingest.append(AppendRequest(run=recording.run, writer_id="clock", sequence_number=1, records=(anchor,))).result()
    for device in DEVICES:
        _add_counters(ingest, clock, recording, device)
    records = tuple(recording.requests())
    ingest.append(AppendRequest(run=recording.run, writer_id="driver", sequence_number=1, records=records)).result()


def _add_counters(ingest: Ingest, clock: SetClock, recording: Recording, device: str) -> None:
    readings = recording.counters(device)
    series = tuple(
        SeriesDescriptor(metric=metric, node=NODE, device=device, unit_bytes=1, boot_id=BOOT) for metric in METRICS
    )
    session = ingest.open_stream(OpenStreamRequest(run=recording.run, writer_id=f"sampler-{device}", series=series))
    for number, start in enumerate(range(0, len(readings), BATCH_READING_COUNT), 1):
        before_ns, after_ns, *counted = readings[start : start + BATCH_READING_COUNT].T.tolist()
        durations_ns = [after - before for before, after in zip(before_ns, after_ns, strict=True)]
        clock.set_behind(before_ns[-1])
        columns = tuple(
            SampleColumns(series_index=index, time_ns=before_ns, value=values, read_duration_ns=durations_ns)
            for index, values in enumerate(counted)
        )
        session.submit(SampleBatch(sequence_number=number, columns=columns)).result()
    session.close()


if __name__ == "__main__":
    build(Path(sys.argv[1]))
