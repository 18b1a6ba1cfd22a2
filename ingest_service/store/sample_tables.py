"""Counter samples in `series` and `counter_samples`."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import attrs
import duckdb
import numpy as np
import pyarrow as pa
from attrs import define, field, frozen
from numpy.typing import NDArray

from ingest_service.core.samples import SeriesReadings, as_numbers
from ingest_service.store.arrow_rows import arrow_table, insert_arrow, insert_in_order
from ingest_service.store.queries import select
from linkbound.domain.samples import INT64_TYPECODE, UNKNOWN_READ_DURATION_NS, SeriesDescriptor

Int64Column = NDArray[np.int64]

_NO_PARTS = (array(INT64_TYPECODE),)
_DESCRIPTOR_NAMES = tuple(attribute.name for attribute in attrs.fields(SeriesDescriptor))
_SERIES_SCHEMA = pa.schema(
    [
        ("series_id", pa.int32()),
        ("run_id", pa.string()),
        ("writer_id", pa.string()),
        ("metric", pa.string()),
        ("node", pa.string()),
        ("device", pa.string()),
        ("port", pa.int32()),
        ("unit_bytes", pa.int32()),
        ("counter_bits", pa.int32()),
        ("boot_id", pa.string()),
        ("physical_port", pa.string()),
    ]
)


@frozen(eq=False)
class SampleRows:
    """The readings of one batch as columns, one series after the other; the ids of the series come at commit."""

    series: tuple[SeriesDescriptor, ...]
    reading_counts: tuple[int, ...]
    time_ns: Int64Column
    value: Int64Column
    read_duration_ns: Int64Column


@frozen
class SeriesKey:
    """What tells series apart within the store."""

    run_id: str
    writer_id: str
    descriptor: SeriesDescriptor


@frozen
class WriterSamples:
    """The rows of one batch with the writer that they belong to."""

    run_id: str
    writer_id: str
    rows: SampleRows

    @property
    def keys(self) -> tuple[SeriesKey, ...]:
        """The series of the batch, in the order of its readings."""
        return tuple(SeriesKey(self.run_id, self.writer_id, descriptor) for descriptor in self.rows.series)


def sample_rows(readings: Sequence[SeriesReadings]) -> SampleRows:
    """Puts the readings of several series together."""
    unknown = array(INT64_TYPECODE, [UNKNOWN_READ_DURATION_NS])
    return SampleRows(
        series=tuple(series.series for series in readings),
        reading_counts=tuple(len(series.time_ns) for series in readings),
        time_ns=_joined([series.time_ns for series in readings]),
        value=_joined([series.value for series in readings]),
        read_duration_ns=_joined([series.read_duration_ns or unknown * len(series.time_ns) for series in readings]),
    )


def _joined(parts: Sequence[array[int]]) -> Int64Column:
    if len(parts) == 1:
        return as_numbers(parts[0])
    return np.concatenate([as_numbers(part) for part in parts or _NO_PARTS])


@define
class SeriesRegistry:
    """Ids of series, read from the database when first asked for. Belongs to the thread that commits."""

    _connection: duckdb.DuckDBPyConnection
    _ids: dict[SeriesKey, int] = field(init=False, factory=dict)
    _known_runs: set[str] = field(init=False, factory=set)

    def forget(self, run_id: str) -> None:
        """Drops what is known of a run that changed or was deleted."""
        self._known_runs.discard(run_id)
        self._ids = {key: series_id for key, series_id in self._ids.items() if key.run_id != run_id}

    def forget_all(self) -> None:
        """Drops everything: a transaction that registered series did not happen."""
        self._known_runs.clear()
        self._ids.clear()

    def register(self, keys: Sequence[SeriesKey]) -> list[int]:
        """Ids of the series, in the order of `keys`; new ones are stored within the current transaction."""
        for run_id in {key.run_id for key in keys} - self._known_runs:
            self._load(run_id)
        new_keys = [key for key in dict.fromkeys(keys) if key not in self._ids]
        if new_keys:
            self._insert(new_keys)
        return [self._ids[key] for key in keys]

    def _load(self, run_id: str) -> None:
        rows = select(
            self._connection,
            f"SELECT series_id, writer_id, {', '.join(_DESCRIPTOR_NAMES)} FROM series WHERE run_id = ?",
            [run_id],
        )
        for series_id, writer_id, *values in rows:
            descriptor = SeriesDescriptor(**dict(zip(_DESCRIPTOR_NAMES, values, strict=True)))
            self._ids[SeriesKey(run_id, writer_id, descriptor)] = series_id
        self._known_runs.add(run_id)

    def _insert(self, keys: Sequence[SeriesKey]) -> None:
        new_ids = select(self._connection, "SELECT nextval('hot.series_ids') FROM range(?)", [len(keys)])
        rows: list[tuple[object, ...]] = []
        for (series_id,), key in zip(new_ids, keys, strict=True):
            self._ids[key] = series_id
            values = attrs.astuple(key.descriptor)
            rows.append((series_id, key.run_id, key.writer_id, *values))
        insert_arrow(self._connection, "hot.series", arrow_table(_SERIES_SCHEMA, rows))


def insert_samples(
    connection: duckdb.DuckDBPyConnection, registry: SeriesRegistry, batches: Sequence[WriterSamples]
) -> None:
    """Stores the batches within the current transaction, all with one INSERT."""
    keys = [key for batch in batches for key in batch.keys]
    counts = [count for batch in batches for count in batch.rows.reading_counts]
    if not keys:
        return
    series_ids = np.repeat(np.array(registry.register(keys), dtype=np.int32), np.array(counts, dtype=np.int64))
    durations_ns = np.concatenate([batch.rows.read_duration_ns for batch in batches])
    columns = {
        "series_id": pa.array(series_ids),
        "time_ns": pa.array(np.concatenate([batch.rows.time_ns for batch in batches])),
        "value": pa.array(np.concatenate([batch.rows.value for batch in batches])),
        "read_duration_ns": pa.array(durations_ns, mask=durations_ns == UNKNOWN_READ_DURATION_NS),
    }
    insert_in_order(connection, "hot.counter_samples", pa.table(columns))
