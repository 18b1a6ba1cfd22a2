"""Rates over windows of ten million readings, in the process of the store."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from ingest_service.store.database import open_database
from ingest_service.store.timestamps import utc_now
from linkbound.domain.traffic import TrafficRequest
from tests.bench.measure import Result, alternating, median_ratio, seconds_of

RUN = "bench"
READING_COUNT = 10_000_000
SERIES_COUNT = 4
BATCH_READING_COUNT = 1_000
"""Readings of one series that stand together, as one batch brings them."""
ROUND_COUNT = 5
REQUEST = TrafficRequest(run=RUN)
"""Its four windows are the usual ones: 1 ms, 5 ms, 100 ms and 1 s."""


def query_of_four_windows() -> Result:
    """The whole question, over a loop that fetches the same columns and looks for the largest step of each series."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.duckdb"
        _fill(path)
        settings = StoreSettings(path=path)
        root = open_database(settings, utc_now)
        with Ingest(root, settings, utc_now) as ingest:
            whole, floor = alternating(
                lambda: seconds_of(lambda: ingest.query_traffic(REQUEST)),
                lambda: seconds_of(lambda: _fetch(root)),
                round_count=1 + ROUND_COUNT,
            )
    # The first round also reads the file.
    seconds, fetch_seconds = whole[1:], floor[1:]
    return Result(
        name="four windows over 10 million readings",
        value=f"{min(seconds):.2f} s",
        ratio=median_ratio(seconds, fetch_seconds),
        ratio_of=f"fetching them and taking differences, {min(fetch_seconds):.2f} s",
        goal="at most 1.5 s",
    )


def _fill(path: Path) -> None:
    """Two ports of two functions, at 1 kHz with jitter, in the order in which batches of all four come."""
    with open_database(StoreSettings(path=path), utc_now) as connection:
        connection.execute(
            "INSERT INTO hot.runs (run_id, display_name, state, create_time_utc, source, content_digest)"
            f" VALUES ('{RUN}', '', 'OPEN', '{datetime(2026, 1, 1, tzinfo=UTC):%Y-%m-%d}', '', '')"
        )
        connection.execute(
            f"INSERT INTO hot.series SELECT range, '{RUN}', 'sampler', 'port_xmit_data', 'node', 'mlx5_' || range, 1,"
            f" 4, 64, 'boot', 'port' || (range // 2) FROM range({SERIES_COUNT})"
        )
        connection.execute(
            "INSERT INTO hot.counter_samples"
            f" SELECT range // {BATCH_READING_COUNT} % {SERIES_COUNT} AS series_id,"
            " reading * 1000000 + hash(range) % 60000, reading * 750000 + hash(range) % 100000,"
            " 3000 + hash(range) % 5000"
            f" FROM (SELECT range, range // {BATCH_READING_COUNT * SERIES_COUNT} * {BATCH_READING_COUNT}"
            f" + range % {BATCH_READING_COUNT} AS reading FROM range({READING_COUNT}))"
        )
        connection.execute("CHECKPOINT")


def _fetch(root: duckdb.DuckDBPyConnection) -> int:
    largest = 0
    with root.cursor() as connection:
        for series_id in range(SERIES_COUNT):
            query = f"SELECT time_ns, value, read_duration_ns FROM hot.counter_samples WHERE series_id = {series_id}"
            with connection.sql(query).to_arrow_reader(2**17) as reader:
                for batch in reader:
                    largest = max(largest, int(np.diff(batch.column(1).to_numpy()).max(initial=0)))
    return largest
