"""The tables of records: which record goes into which columns, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Generic, TypeVar

import duckdb
import pyarrow as pa
from attrs import frozen

from ingest_service.core.page_token import RecordPosition
from ingest_service.store.arrow_rows import arrow_table
from ingest_service.store.queries import select
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.records import (
    AppendRequest,
    CollectiveResult,
    Event,
    LinkTest,
    LinkTestDirection,
    MetricAggregate,
    Record,
    RequestRecord,
    TrainingStep,
)

R = TypeVar("R", bound=Record)

_APPEND_COLUMNS = (
    ("run_id", pa.string()),
    ("writer_id", pa.string()),
    ("sequence_number", pa.int64()),
    ("record_index", pa.int32()),
)


@frozen(kw_only=True)
class RecordTable(Generic[R]):
    """One table of records, written as `hot_name` and read as `name`.

    `columns` leaves out those that say which append brought a row, and its place there.
    """

    name: str
    columns: tuple[tuple[str, pa.DataType], ...]
    to_row: Callable[[R], tuple[object, ...]]
    from_row: Callable[[Sequence[Any]], R]

    @property
    def hot_name(self) -> str:
        """The table that appends go into."""
        return f"hot.{self.name}"

    def rows(self, run_id: str, writer_id: str, sequence_number: int, records: Sequence[R]) -> pa.Table:
        """The records of one append as rows of this table."""
        schema = pa.schema([*_APPEND_COLUMNS, *self.columns])
        rows = [
            (run_id, writer_id, sequence_number, index, *self.to_row(record)) for index, record in enumerate(records)
        ]
        return arrow_table(schema, rows)

    def select(self, connection: duckdb.DuckDBPyConnection, run_id: str) -> tuple[R, ...]:
        """The records of a run in the order in which they were stored."""
        names = ", ".join(name for name, _ in self.columns)
        rows = select(connection, f"SELECT {names} FROM {self.name} WHERE run_id = ? ORDER BY stored_index", [run_id])
        return tuple(map(self.from_row, rows))


def _aggregate_row(aggregate: MetricAggregate) -> tuple[object, ...]:
    value = aggregate.value
    return (
        aggregate.metric.name,
        aggregate.subject,
        value.mean,
        value.minimum,
        value.maximum,
        value.round_count,
        aggregate.source,
    )


def _aggregate(row: Sequence[Any]) -> MetricAggregate:
    metric, subject, mean, minimum, maximum, round_count, source = row
    value = Spread(mean=mean, minimum=minimum, maximum=maximum, round_count=round_count)
    return MetricAggregate(metric=Metric[metric], subject=subject, value=value, source=source)


def _collective_row(result: CollectiveResult) -> tuple[object, ...]:
    return (
        result.subject,
        result.kind.name,
        result.rank_count,
        result.message_bytes,
        result.seconds,
        result.bus_bandwidth_bytes_per_second,
        result.error_count,
        result.source,
    )


def _collective(row: Sequence[Any]) -> CollectiveResult:
    subject, kind, rank_count, message_bytes, seconds, bus_bandwidth_bytes_per_second, error_count, source = row
    return CollectiveResult(
        subject=subject,
        kind=CollectiveKind[kind],
        rank_count=rank_count,
        message_bytes=message_bytes,
        seconds=seconds,
        bus_bandwidth_bytes_per_second=bus_bandwidth_bytes_per_second,
        error_count=error_count,
        source=source,
    )


def _link_test_row(test: LinkTest) -> tuple[object, ...]:
    row = [getattr(test, name) for name in _LINK_TEST_NAMES]
    row[_DIRECTION_POSITION] = test.direction.name
    return tuple(row)


def _link_test(row: Sequence[Any]) -> LinkTest:
    values = dict(zip(_LINK_TEST_NAMES, row, strict=True))
    return LinkTest(**{**values, "direction": LinkTestDirection[values["direction"]]})


_REQUEST_COLUMNS = (
    ("subject", pa.string()),
    ("round_index", pa.int32()),
    ("request_index", pa.int32()),
    ("prompt_tokens", pa.int64()),
    ("output_tokens", pa.int64()),
    ("send_ns", pa.int64()),
    ("ttft_ns", pa.int64()),
    ("last_token_ns", pa.int64()),
    ("first_chunk_tokens", pa.int32()),
    ("send_time_unix_ns", pa.int64()),
    ("node", pa.string()),
    ("boot_id", pa.string()),
)
_STEP_COLUMNS = (
    ("subject", pa.string()),
    ("node_count", pa.int32()),
    ("step_index", pa.int64()),
    ("step_seconds", pa.float64()),
    ("samples_per_second", pa.float64()),
    ("tokens_per_second", pa.float64()),
    ("elapsed_seconds", pa.float64()),
    ("source", pa.string()),
)
_LINK_TEST_COLUMNS = (
    ("subject", pa.string()),
    ("tool", pa.string()),
    ("source_node", pa.string()),
    ("destination_node", pa.string()),
    ("device", pa.string()),
    ("direction", pa.string()),
    ("message_bytes", pa.int64()),
    ("bits_per_second", pa.float64()),
    ("latency_seconds", pa.float64()),
    ("mtu_bytes", pa.int32()),
    ("source", pa.string()),
)
_EVENT_COLUMNS = (
    ("kind", pa.string()),
    ("subject", pa.string()),
    ("node", pa.string()),
    ("boot_id", pa.string()),
    ("time_ns", pa.int64()),
    ("time_unix_ns", pa.int64()),
    ("event_count", pa.int64()),
    ("text", pa.string()),
)
_REQUEST_NAMES = tuple(name for name, _ in _REQUEST_COLUMNS)
_STEP_NAMES = tuple(name for name, _ in _STEP_COLUMNS)
_LINK_TEST_NAMES = tuple(name for name, _ in _LINK_TEST_COLUMNS)
_DIRECTION_POSITION = _LINK_TEST_NAMES.index("direction")
_EVENT_NAMES = tuple(name for name, _ in _EVENT_COLUMNS)

REQUEST_RECORDS: RecordTable[RequestRecord] = RecordTable(
    name="requests",
    columns=_REQUEST_COLUMNS,
    to_row=attrgetter(*_REQUEST_NAMES),
    from_row=lambda row: RequestRecord(**dict(zip(_REQUEST_NAMES, row, strict=True))),
)
METRIC_AGGREGATES: RecordTable[MetricAggregate] = RecordTable(
    name="metric_aggregates",
    columns=(
        ("metric", pa.string()),
        ("subject", pa.string()),
        ("mean", pa.float64()),
        ("minimum", pa.float64()),
        ("maximum", pa.float64()),
        ("round_count", pa.int32()),
        ("source", pa.string()),
    ),
    to_row=_aggregate_row,
    from_row=_aggregate,
)
COLLECTIVE_RESULTS: RecordTable[CollectiveResult] = RecordTable(
    name="collectives",
    columns=(
        ("subject", pa.string()),
        ("kind", pa.string()),
        ("rank_count", pa.int32()),
        ("message_bytes", pa.int64()),
        ("seconds", pa.float64()),
        ("bus_bandwidth_bytes_per_second", pa.float64()),
        ("error_count", pa.int64()),
        ("source", pa.string()),
    ),
    to_row=_collective_row,
    from_row=_collective,
)
TRAINING_STEPS: RecordTable[TrainingStep] = RecordTable(
    name="training_steps",
    columns=_STEP_COLUMNS,
    to_row=attrgetter(*_STEP_NAMES),
    from_row=lambda row: TrainingStep(**dict(zip(_STEP_NAMES, row, strict=True))),
)

LINK_TESTS: RecordTable[LinkTest] = RecordTable(
    name="link_tests", columns=_LINK_TEST_COLUMNS, to_row=_link_test_row, from_row=_link_test
)
EVENTS: RecordTable[Event] = RecordTable(
    name="events",
    columns=_EVENT_COLUMNS,
    to_row=attrgetter(*_EVENT_NAMES),
    from_row=lambda row: Event(**dict(zip(_EVENT_NAMES, row, strict=True))),
)

RECORD_TABLES: tuple[RecordTable[Any], ...] = (
    REQUEST_RECORDS,
    METRIC_AGGREGATES,
    COLLECTIVE_RESULTS,
    TRAINING_STEPS,
    LINK_TESTS,
    EVENTS,
)

_TABLE_OF_RECORD: dict[type[Record], RecordTable[Any]] = {
    RequestRecord: REQUEST_RECORDS,
    MetricAggregate: METRIC_AGGREGATES,
    CollectiveResult: COLLECTIVE_RESULTS,
    TrainingStep: TRAINING_STEPS,
    LinkTest: LINK_TESTS,
    Event: EVENTS,
}


def select_request_records(
    connection: duckdb.DuckDBPyConnection, run_id: str, subject: str, after: RecordPosition | None, limit: int
) -> tuple[RequestRecord, ...]:
    """Up to `limit` request records of a run with their writers, those behind `after`, of `subject` alone if not empty.

    By subject, round and position in the round; those that agree in them in the order in which they were stored.
    """
    conditions = ["run_id = ?"]
    parameters: list[object] = [run_id]
    if subject:
        conditions.append("subject = ?")
        parameters.append(subject)
    if after is not None:
        conditions.append("(subject, round_index, request_index) >= (?, ?, ?)")
        parameters += [after.subject, after.round_index, after.request_index]
    # Those at the position itself come first, and are passed over.
    passed_count = 0 if after is None else after.passed_count
    names = (*_REQUEST_NAMES, "writer_id")
    rows = select(
        connection,
        f"SELECT {', '.join(names)} FROM {REQUEST_RECORDS.name} WHERE {' AND '.join(conditions)}"
        " ORDER BY subject, round_index, request_index, stored_index LIMIT ? OFFSET ?",
        [*parameters, limit, passed_count],
    )
    return tuple(RequestRecord(**dict(zip(names, row, strict=True))) for row in rows)


def table_of(request: AppendRequest) -> RecordTable[Any]:
    """The table that the records of `request`, all of one kind, belong to."""
    return _TABLE_OF_RECORD[type(request.records[0])]
