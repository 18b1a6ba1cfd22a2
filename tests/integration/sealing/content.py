"""Runs with rows in every table, and how tests look at what becomes of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import duckdb
import pyarrow as pa

from ingest_service.service import Ingest
from ingest_service.store.public_views import KEPT_TABLES, PUBLIC_TABLES
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.estimate import Estimate
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.paging import PageRequest
from linkbound.domain.prediction import Baseline, PredictedValue, Prediction
from linkbound.domain.records import (
    CollectiveResult,
    Event,
    LinkTest,
    ListRequestRecordsRequest,
    MetricAggregate,
    Record,
    RequestRecord,
    TrainingStep,
)
from linkbound.domain.run import CreateRunRequest, Run, RunRowCounts, Setting
from linkbound.domain.run_comparison import RunComparison
from linkbound.domain.samples import SampleColumns
from linkbound.domain.traffic import ListPhaseTrafficRequest, PhaseTraffic, PortTraffic, TrafficRequest
from tests.integration.store_content import RUN, batch, stream

SEALED_TABLES = tuple(name for name in PUBLIC_TABLES if name not in ("findings",))
"""Tables that `filled` puts rows into."""

BATCH_COUNT = 4
ROWS_PER_SERIES = 50

PREDICTION = Prediction(
    estimator_version="0.1.0",
    values=(
        PredictedValue(metric=Metric.TTFT_SECONDS, subject="P1", estimate=Estimate(lower=0.1, upper=2.0)),
        PredictedValue(
            metric=Metric.EXTRA_TTFT_SECONDS,
            subject="P1",
            estimate=Estimate(lower=0.0, upper=1.0),
            baseline=Baseline(value=Spread(mean=0.5)),
        ),
    ),
)


def request_record(subject: str, round_index: int, request_index: int, ttft_ns: int = 900_000_001) -> RequestRecord:
    """A request with three chunks."""
    last_ns = ttft_ns + 2_000_003
    return RequestRecord(
        subject=subject,
        round_index=round_index,
        request_index=request_index,
        prompt_tokens=1024,
        output_tokens=12,
        send_ns=10**9 * (round_index + 2) + request_index,
        ttft_ns=ttft_ns,
        last_token_ns=last_ns,
        node="spark1",
        boot_id="b1",
        chunk_offset_ns=(ttft_ns, ttft_ns + 1_000_000, last_ns),
        chunk_tokens=(1, 5, 6),
    )


REQUESTS = [
    request_record(subject, round_index, request_index, 900_000_001 + 7 * round_index + 1_000_003 * request_index)
    for subject in ("P2", "P1")
    for round_index in (2, 0, 1, -1)
    for request_index in (1, 0)
]
# The last one agrees with the first in everything that sorts them.
REQUESTS.append(attrs.evolve(REQUESTS[0], prompt_tokens=2048))

RECORDS: dict[str, tuple[Record, ...]] = {
    "bench": tuple(REQUESTS),
    "aggregates": (
        MetricAggregate(metric=Metric.MEAN_TTFT_SECONDS, subject="P6", value=Spread(mean=40.03), source="ü 'quoted'"),
        MetricAggregate(metric=Metric.MEAN_TTFT_SECONDS, subject="P6", value=Spread(mean=41.5)),
    ),
    "nccl": (
        CollectiveResult(subject="4 nodes", rank_count=4, bus_bandwidth_bytes_per_second=22.07e9),
        CollectiveResult(
            subject="4 nodes", kind=CollectiveKind.ALL_REDUCE, rank_count=4, bus_bandwidth_bytes_per_second=1e9
        ),
    ),
    "steps": (TrainingStep(subject="full", node_count=4, step_index=1, step_seconds=14.501),),
    "links": (LinkTest(subject="a to b", tool="ping", latency_seconds=1e-4),),
    "events": (Event(kind="note", text="started"), Event(kind="note", node="spark1", time_ns=5)),
}

COUNTS = RunRowCounts(
    request_record_count=len(REQUESTS),
    metric_aggregate_count=2,
    collective_result_count=2,
    training_step_count=1,
    sample_count=2 * 2 * BATCH_COUNT * ROWS_PER_SERIES,
    link_test_count=1,
    event_count=2,
    chunk_count=3 * len(REQUESTS),
)


def filled(ingest: Ingest, run_id: str = RUN) -> Ingest:
    """The same store with a run that has rows in every table: two samplers in turns, and a writer for each record."""
    ingest.create_run(
        CreateRunRequest(
            run_id=run_id,
            display_name="Größe 'x'",
            source="here",
            settings=(Setting(key="engine", value="vLLM"), Setting(key="link", value="109g")),
            prediction=PREDICTION,
        )
    )
    for writer, records in RECORDS.items():
        # Two appends each, so that the order in which they came matters.
        for number, record in enumerate((records[:1], records[1:]), 1):
            if record:
                append(ingest, run_id, writer, number, record)
    sessions = [ingest.open_stream(stream(run=run_id, writer=writer)) for writer in ("sampler-b", "sampler-a")]
    for number in range(1, BATCH_COUNT + 1):
        for session in sessions:
            session.submit(sample_batch(number)).result()
    for session in sessions:
        session.close()
    return ingest


def append(ingest: Ingest, run_id: str, writer: str, number: int, records: tuple[Record, ...]) -> int:
    from linkbound.domain.records import AppendRequest

    request = AppendRequest(run=run_id, writer_id=writer, sequence_number=number, records=records)
    return ingest.append(request).result().committed_sequence_number


def sample_batch(number: int) -> Any:
    """Readings of both series, the later ones of a batch first sent."""
    columns = []
    for index in (1, 0):
        times = tuple(range(number * 1000, number * 1000 + ROWS_PER_SERIES))
        values = tuple(4096 * time + index for time in times)
        durations = tuple(2000 + time % 7 for time in times) if index else ()
        columns.append(SampleColumns(series_index=index, time_ns=times, value=values, read_duration_ns=durations))
    return batch(number, *columns)


@attrs.frozen
class Seen:
    """What every read says of a run, without its state."""

    run: Run
    counts: RunRowCounts
    records: tuple[RequestRecord, ...]
    comparison: RunComparison
    traffic: tuple[PortTraffic, ...]
    phases: tuple[PhaseTraffic, ...]

    @classmethod
    def of(cls, ingest: Ingest, run_id: str = RUN) -> Seen:
        details = ingest.get_run(run_id)
        return cls(
            run=_without_state(details.run),
            counts=details.row_counts,
            records=listed(ingest, run_id),
            comparison=ingest.compare_run(run_id),
            traffic=ingest.query_traffic(TrafficRequest(run=run_id, max_point_count=10)),
            phases=ingest.list_phase_traffic(ListPhaseTrafficRequest(run=run_id)).entries,
        )


def _without_state(run: Run) -> Run:
    from linkbound.domain.run import RunState

    return attrs.evolve(run, state=RunState.UNSPECIFIED, seal_time=None, sealed_path="", sealed_size_bytes=0)


def listed(ingest: Ingest, run_id: str = RUN, page_size: int = 4) -> tuple[RequestRecord, ...]:
    """All request records of a run, page by page."""
    found: list[RequestRecord] = []
    token = ""
    while True:
        request = ListRequestRecordsRequest(run=run_id, page_size=page_size, page_token=token)
        page = ingest.list_request_records(request)
        found += page.entries
        token = page.next_page_token
        if not token:
            return tuple(found)


def run_ids(ingest: Ingest) -> list[str]:
    return [run.run_id for run in ingest.list_runs(PageRequest(page_size=1000)).entries]


def sealed_names(folder: Path) -> set[str]:
    """What is in the folder of sealed runs besides that which is always there."""
    path = folder / "sealed"
    return {entry.name for entry in path.iterdir()} - {"run_id=-", "views.sql"} if path.exists() else set()


def hot_row_count(folder: Path) -> int:
    """Rows that the closed store in `folder` has in the tables that sealing empties."""
    tables = [name for name in PUBLIC_TABLES if name not in KEPT_TABLES]
    with duckdb.connect(str(folder / "linkbound.duckdb"), read_only=True) as connection:
        sql = " + ".join(f"(SELECT count(*) FROM hot.{name})" for name in (*tables, "dropping_runs"))
        [(count,)] = connection.execute(f"SELECT {sql}").fetchall()
        return int(count)


def view_rows(folder: Path, table: str, run_id: str = RUN) -> pa.Table:
    """What the view of a table shows of a run in the closed store in `folder`, in an order that is always the same."""
    with duckdb.connect(str(folder / "linkbound.duckdb"), read_only=True) as connection:
        return _sorted_rows(connection, table, run_id)


def script_rows(folder: Path, table: str, run_id: str = RUN) -> pa.Table:
    """The same by a DuckDB that has nothing but `views.sql` in the folder of sealed runs."""
    before = Path.cwd()
    os.chdir(folder / "sealed")
    try:
        with duckdb.connect() as connection:
            connection.execute(Path("views.sql").read_text(encoding="utf-8"))
            return _sorted_rows(connection, table, run_id)
    finally:
        os.chdir(before)


def _sorted_rows(connection: duckdb.DuckDBPyConnection, table: str, run_id: str) -> pa.Table:
    rows = f"SELECT * EXCLUDE (run_id), run_id FROM {table} WHERE run_id = ?"
    names = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()]
    if "stored_index" in names:
        rows = f"SELECT * EXCLUDE (stored_index) FROM ({rows})"
    return connection.sql(f"SELECT * FROM ({rows}) ORDER BY ALL", params=[run_id]).to_arrow_table()
