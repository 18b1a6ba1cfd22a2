"""Reads of counter samples: which series there are, and their readings in the order in which they were stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import duckdb
import numpy as np
import pyarrow as pa
from attrs import frozen

from ingest_service.core.traffic.curve import LARGEST_NS, Int64Column
from ingest_service.core.traffic.ports import StoredSeries
from ingest_service.core.traffic.unwrap import Readings
from ingest_service.store.queries import select
from linkbound.domain.run import Run, RunState
from linkbound.domain.samples import SeriesDescriptor

BATCH_ROW_COUNT = 2**17
"""Rows that DuckDB hands over at a time: about one of its row groups."""

PORTION_ROW_COUNT = 2**19
LARGEST_PORTION_ROW_COUNT = 2**21
"""Rows that are sorted by series at a time; what a read holds in memory is a small multiple of them."""

PORTION_ROWS_PER_SERIES = 2**13
"""Rows of one series that are worth a step of the core: with many series, portions are larger."""

SHORT_RUN_ROW_COUNT = 32
"""Where rows of one series stand together in stretches shorter than this on average, sorting them is faster."""

_DESCRIPTOR_NAMES = tuple(attribute.name for attribute in attrs.fields(SeriesDescriptor))


@frozen(kw_only=True)
class TimeBounds:
    """What is asked for, as CLOCK_MONOTONIC; None: no bound. It takes readings on both sides to tell of a bound."""

    start_ns: int | None = None
    end_ns: int | None = None


@frozen(kw_only=True)
class SeriesSelection:
    """Series with readings, and the times between which their readings are needed."""

    series: tuple[StoredSeries, ...]
    low_ns: int
    high_ns: int


def select_descriptors(
    cursor: duckdb.DuckDBPyConnection, run_id: str, *, node: str = "", metric: str = ""
) -> dict[int, SeriesDescriptor]:
    """The series of a run by their ids, of `node` and `metric` alone where they are not empty."""
    conditions, parameters = ["run_id = ?"], [run_id]
    for name, value in (("node", node), ("metric", metric)):
        if value:
            conditions.append(f"{name} = ?")
            parameters.append(value)
    rows = select(
        cursor,
        f"SELECT series_id, {', '.join(_DESCRIPTOR_NAMES)} FROM series WHERE {' AND '.join(conditions)}",
        parameters,
    )
    return {row[0]: SeriesDescriptor(**dict(zip(_DESCRIPTOR_NAMES, row[1:], strict=True))) for row in rows}


def select_series(
    cursor: duckdb.DuckDBPyConnection, run: Run, descriptors: dict[int, SeriesDescriptor], bounds: TimeBounds
) -> SeriesSelection:
    """Which of the series have readings within `bounds`.

    Readings around them are needed too: the last before the start, and behind the end the next and, since it bounds
    that one, the one that follows.
    """
    if not descriptors:
        return SeriesSelection(series=(), low_ns=0, high_ns=0)
    start_ns = 0 if bounds.start_ns is None else bounds.start_ns
    end_ns = LARGEST_NS if bounds.end_ns is None else bounds.end_ns
    before = "NULL"
    if bounds.start_ns is not None:
        before = f"max(time_ns) FILTER (time_ns <= {start_ns} - coalesce(read_duration_ns, 0) // 2)"
    behind = "NULL" if bounds.end_ns is None else f"min(time_ns, 2) FILTER (time_ns >= {end_ns})"
    rows = select(
        cursor,
        "SELECT series_id, count(*), min(time_ns),"
        f" max(time_ns + least(coalesce(read_duration_ns, 0) // 2, {LARGEST_NS} - time_ns)), max(time_ns),"
        f" {before}, {behind} FROM {_samples_of(run)} WHERE {_is_one_of(descriptors)} GROUP BY series_id",
    )
    found = [row for row in rows if row[2] <= end_ns and row[3] >= start_ns]
    return SeriesSelection(
        series=tuple(
            StoredSeries(
                series_id=series_id,
                descriptor=descriptors[series_id],
                sample_count=count,
                first_ns=first_ns,
                last_ns=last_ns,
            )
            for series_id, count, first_ns, last_ns, *_ in found
        ),
        low_ns=min((row[2] if row[5] is None else row[5] for row in found), default=0),
        high_ns=max((row[4] if not row[6] else row[6][-1] for row in found), default=0),
    )


def stream_readings(
    cursor: duckdb.DuckDBPyConnection, run: Run, series_ids: Sequence[int], selection: SeriesSelection
) -> Iterator[Readings]:
    """The readings of the series, those of each in the order in which they were stored, portion by portion.

    The iterator has the cursor to itself until its end. Raises OSError where the query is interrupted.
    """
    if not series_ids:
        return
    # Only names and whole numbers stand in it; a query with parameters would be answered whole, not bit by bit.
    query = (
        "SELECT series_id, time_ns, value, coalesce(read_duration_ns, 0) AS read_duration_ns"
        f" FROM {_samples_of(run)} WHERE {_is_one_of(series_ids)}"
        f" AND time_ns BETWEEN {selection.low_ns} AND {selection.high_ns}"
    )
    portion = max(PORTION_ROW_COUNT, min(PORTION_ROWS_PER_SERIES * len(series_ids), LARGEST_PORTION_ROW_COUNT))
    batches: list[pa.RecordBatch] = []
    row_count = 0
    with cursor.sql(query).to_arrow_reader(BATCH_ROW_COUNT) as reader:
        for batch in reader:
            batches.append(batch)
            row_count += batch.num_rows
            if row_count >= portion:
                yield from _by_series(batches)
                batches, row_count = [], 0
    yield from _by_series(batches)


def _samples_of(run: Run) -> str:
    """Where the samples of a run are: a table or a file by itself, whose rows come in the order in which they stand.

    The view over all of them would join, and a join is free to mix its rows.
    """
    return "hot.counter_samples" if run.state is RunState.OPEN else "counter_samples"


def _is_one_of(series_ids: Sequence[int] | dict[int, SeriesDescriptor]) -> str:
    return f"series_id IN ({', '.join(str(series_id) for series_id in series_ids)})"


def _by_series(batches: Sequence[pa.RecordBatch]) -> Iterator[Readings]:
    """The rows of the batches series by series."""
    series_id, *columns = (
        np.concatenate([batch.column(index).to_numpy() for batch in batches]) if batches else np.empty(0, np.int64)
        for index in range(4)
    )
    if not len(series_id):
        return
    starts = np.concatenate([[0], np.flatnonzero(np.diff(series_id)) + 1])
    if len(series_id) < SHORT_RUN_ROW_COUNT * len(starts):
        order = np.argsort(series_id, kind="stable")
        series_id, columns = series_id[order], [column[order] for column in columns]
        starts = np.concatenate([[0], np.flatnonzero(np.diff(series_id)) + 1])
    stretches: dict[int, list[slice]] = {}
    for one, start, stop in zip(
        series_id[starts].tolist(), starts.tolist(), [*starts[1:].tolist(), len(series_id)], strict=True
    ):
        stretches.setdefault(one, []).append(slice(start, stop))
    for one, parts in stretches.items():
        time_ns, value, read_duration_ns = (_gathered(column, parts) for column in columns)
        yield Readings(series_id=one, time_ns=time_ns, value=value, read_duration_ns=read_duration_ns)


def _gathered(column: Int64Column, parts: Sequence[slice]) -> Int64Column:
    return column[parts[0]] if len(parts) == 1 else np.concatenate([column[part] for part in parts])
