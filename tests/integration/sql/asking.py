"""What the tests of SQL share: a store with a run, and a query put together again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from ingest_service.service import Ingest, StoreSettings
from linkbound.domain.records import AppendRequest, TrainingStep
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.sql import SqlRequest, SqlSummary
from tests.new_store import laid

RUN = "study-109g"
STEP_COUNT = 100
STEPS = tuple(
    TrainingStep(subject="6 nodes", node_count=6, step_index=index, step_seconds=1 + index / 10, source="train.csv")
    for index in range(STEP_COUNT)
)


@contextmanager
def filled_store(folder: Path, **settings: Any) -> Iterator[Ingest]:
    """A store with one run and its training steps."""
    with Ingest.open(StoreSettings(path=laid(folder / "linkbound.duckdb"), **settings)) as ingest:
        ingest.create_run(CreateRunRequest(run_id=RUN))
        ingest.append(AppendRequest(run=RUN, writer_id="bench", sequence_number=1, records=STEPS)).result()
        yield ingest


def messages_of(
    ingest: Ingest, sql: str, *, row_limit: int = 0, limit_seconds: float | None = 60.0
) -> tuple[bytes, list[bytes], SqlSummary]:
    """The schema, the batches and the summary of a query."""
    with ingest.query_sql(SqlRequest(sql=sql, row_limit=row_limit), limit_seconds) as answer:
        schema = answer.begin()
        batches = []
        while (batch := answer.next_batch()) is not None:
            batches.append(batch)
        assert answer.summary is not None
        return schema, batches, answer.summary


def table_of(schema: bytes, batches: list[bytes]) -> pa.Table:
    """The rows as a client reads them: each message stands alone beside the schema."""
    arrow_schema = pa.ipc.read_schema(pa.py_buffer(schema))
    return pa.Table.from_batches(
        [pa.ipc.read_record_batch(pa.py_buffer(batch), arrow_schema) for batch in batches], arrow_schema
    )


def rows_of(ingest: Ingest, sql: str, **limits: Any) -> list[dict[str, Any]]:
    """The rows of a query."""
    schema, batches, _ = messages_of(ingest, sql, **limits)
    rows: list[dict[str, Any]] = table_of(schema, batches).to_pylist()
    return rows
