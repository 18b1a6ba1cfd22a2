"""What DuckDB alone makes of samples: Arrow inserts into the same tables, a ledger row with each transaction."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from ingest_service.settings import StoreSettings
from ingest_service.store.database import open_database
from ingest_service.store.timestamps import utc_now

ROWS_PER_TRANSACTION = 8_000
ROUND_SECONDS = 2.0


def raw_rows_per_second(folder: Path) -> float:
    """Rows a second that become durable in one process that does nothing else."""
    dice = np.random.default_rng(1)
    rows = pa.table(
        {
            "series_id": pa.array(np.zeros(ROWS_PER_TRANSACTION, np.int32)),
            "time_ns": pa.array(
                np.arange(ROWS_PER_TRANSACTION) * 1_000_000 + dice.integers(0, 20_000, ROWS_PER_TRANSACTION)
            ),
            "value": pa.array(np.cumsum(dice.integers(0, 60_000, ROWS_PER_TRANSACTION))),
            "read_duration_ns": pa.array(dice.integers(2_000, 4_000, ROWS_PER_TRANSACTION)),
        }
    )
    with open_database(StoreSettings(path=folder / "floor.duckdb"), utc_now) as connection:
        number, started = 0, 0.0
        while number < 3 or time.perf_counter() < started + ROUND_SECONDS:
            if number == 2:
                # The first inserts of a process take longer.
                started = time.perf_counter()
            number += 1
            connection.begin()
            connection.register("incoming", rows)
            connection.execute("INSERT INTO hot.counter_samples BY NAME SELECT * FROM incoming")
            connection.unregister("incoming")
            connection.execute(
                "INSERT INTO hot.ledger VALUES ('bench', 'floor', ?, 'STREAM', ?, ?, 0, '', ?)",
                [number, number.to_bytes(16, "big"), ROWS_PER_TRANSACTION, utc_now().replace(tzinfo=None)],
            )
            connection.commit()
        return (number - 2) * ROWS_PER_TRANSACTION / (time.perf_counter() - started)


def fill(path: Path, size_bytes: int) -> None:
    """A store of at least `size_bytes`, of readings that hardly shrink, as one run of one writer."""
    with open_database(StoreSettings(path=path), utc_now) as connection:
        connection.execute(
            "INSERT INTO hot.runs (run_id, display_name, state, create_time_utc, source, content_digest)"
            " VALUES ('filled', '', 'OPEN', '2026-01-01', '', '')"
        )
        while path.stat().st_size < size_bytes:
            connection.execute(
                "INSERT INTO hot.counter_samples SELECT 1, range, (random() * 4e18)::BIGINT, (random() * 4e18)::BIGINT"
                " FROM range(5000000)"
            )
            connection.execute(
                "INSERT INTO hot.ledger SELECT 'filled', 'writer', range, 'STREAM', '0123456789abcdef'::BLOB, 1000, 0,"
                " '', '2026-01-01'"
                " FROM range((SELECT count(*) + 1 FROM hot.ledger), (SELECT count(*) + 5001 FROM hot.ledger))"
            )
            connection.execute("CHECKPOINT")
