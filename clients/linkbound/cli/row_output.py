"""The rows of a query on stdout or in a file: a table of the first ones, CSV, one JSON object, Arrow or Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

from linkbound.cli.failures import USAGE, Failure
from linkbound.cli.table import Align, Column, table
from linkbound.domain.sql import SqlSummary, TruncatedAnswerWarning
from linkbound.domain.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ROW_COUNT = 40
LARGEST_JSON_ROW_COUNT = 100_000
SHOWN_CELL_CHARACTERS = 60
ROWS_AT_ONCE = 1_000


class RowFormat(Enum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"
    PARQUET = "parquet"


FILE_FORMATS = (RowFormat.CSV, RowFormat.JSON, RowFormat.ARROW, RowFormat.PARQUET)
"""Formats that the end of a file's name tells."""


def write_rows(reader: pa.RecordBatchReader, kind: RowFormat, out: Path | None) -> SqlSummary:
    """Writes every row of `reader` and returns what it came to; a file is whole or not there."""
    with _sink(out) as sink, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", TruncatedAnswerWarning)
        rows = _Rows(reader, told)
        _WRITERS[kind](rows, sink)
    return rows.summary


class _Rows:
    """The rows of a reader; `told` has the warnings that come while they are read."""

    def __init__(self, reader: pa.RecordBatchReader, told: Sequence[warnings.WarningMessage]) -> None:
        self._reader = reader
        self._told = told
        self._count = 0
        self.schema: pa.Schema = reader.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as they come."""
        for batch in self._reader:
            self._count += batch.num_rows
            yield batch

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows, one by one."""
        for batch in self.batches():
            for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                part = batch.slice(start, ROWS_AT_ONCE)
                yield from zip(*(column.to_pylist() for column in part.columns), strict=True)

    @property
    def summary(self) -> SqlSummary:
        """How many have come, and whether there were more."""
        is_cut = any(isinstance(warning.message, TruncatedAnswerWarning) for warning in self._told)
        return SqlSummary(row_count=self._count, truncated=is_cut)


@contextmanager
def _sink(out: Path | None) -> Iterator[BinaryIO]:
    """Where the rows go: stdout, or a file that gets its name at the end."""
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    partial = out.with_name(f".{out.name}-{uuid.uuid4().hex[:8]}")
    try:
        with partial.open("xb") as file:
            yield file
        partial.replace(out)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _write_table(rows: _Rows, sink: BinaryIO) -> None:
    cells = [[_shown(cell) for cell in row] for row in rows]
    columns = [Column(field.name, Align.RIGHT if _is_number(field.type) else Align.LEFT) for field in rows.schema]
    with _text(sink) as stream:
        stream.write(table(columns, cells) + f"\n\n{counted(len(cells), 'row')}\n")


def _write_csv(rows: _Rows, sink: BinaryIO) -> None:
    with _text(sink) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(rows.schema.names)
        for row in rows:
            writer.writerow([_cell(value) for value in row])


def _write_json(rows: _Rows, sink: BinaryIO) -> None:
    """One object; the keys of a row are the names of the columns, a second one of a name has a number behind it."""
    names = _unique(rows.schema.names)
    written: list[dict[str, Any]] = []
    for row in rows:
        if len(written) == LARGEST_JSON_ROW_COUNT:
            raise Failure(f"more than {LARGEST_JSON_ROW_COUNT} rows in one object; --limit, or --format csv", USAGE)
        written.append(dict(zip(names, map(_json_value, row), strict=True)))
    columns = [{"name": name, "type": str(field.type)} for name, field in zip(names, rows.schema, strict=True)]
    summary = {"row_count": rows.summary.row_count, "truncated": rows.summary.truncated}
    answer = {"columns": columns, "rows": written, **summary}
    sink.write(json.dumps(answer, indent=2, allow_nan=False).encode() + b"\n")


def _write_arrow(rows: _Rows, sink: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.ipc

    with pa.ipc.new_stream(sink, rows.schema) as writer:
        for batch in rows.batches():
            writer.write_batch(batch)


def _write_parquet(rows: _Rows, sink: BinaryIO) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(sink, rows.schema, compression="zstd") as writer:
        for batch in rows.batches():
            writer.write_batch(batch)


_WRITERS: Mapping[RowFormat, Callable[[_Rows, BinaryIO], None]] = {
    RowFormat.TABLE: _write_table,
    RowFormat.CSV: _write_csv,
    RowFormat.JSON: _write_json,
    RowFormat.ARROW: _write_arrow,
    RowFormat.PARQUET: _write_parquet,
}


@contextmanager
def _text(sink: BinaryIO) -> Iterator[TextIO]:
    stream = io.TextIOWrapper(sink, encoding="utf-8", errors="replace", newline="", write_through=False)
    try:
        yield stream
        stream.flush()
    finally:
        # Not closed with it: whoever opened the sink does that.
        stream.detach()


def _unique(names: list[str]) -> list[str]:
    found: dict[str, int] = {}
    unique = []
    for name in names:
        found[name] = found.get(name, 0) + 1
        unique.append(name if found[name] == 1 else f"{name}_{found[name]}")
    return unique


def _is_number(data_type: pa.DataType) -> bool:
    import pyarrow as pa

    return any(check(data_type) for check in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _shown(value: Any) -> str:
    shown = "NULL" if value is None else _cell(value)
    one_line = " ".join(shown.split("\n"))
    return one_line if len(one_line) <= SHOWN_CELL_CHARACTERS else f"{one_line[: SHOWN_CELL_CHARACTERS - 3]}..."


def _cell(value: Any) -> str:
    plain = _json_value(value)
    if plain is None:
        return "" if value is None else str(value)
    if isinstance(plain, bool):
        return str(plain).lower()
    return json.dumps(plain) if isinstance(plain, dict | list) else str(plain)


def _json_value(value: Any) -> Any:
    """`value` as JSON has it: instants as ISO 8601, bytes in hexadecimal, no NaN and no infinity."""
    for kind, convert in _JSON_VALUES.items():
        if isinstance(value, kind):
            return convert(value)
    return str(value)


_JSON_VALUES: Mapping[Any, Callable[[Any], Any]] = {
    (NoneType, int, str): lambda value: value,
    float: lambda value: value if math.isfinite(value) else None,
    Decimal: lambda value: int(value) if value == value.to_integral_value() else float(value),
    (date, time): lambda value: value.isoformat(),
    timedelta: lambda value: value.total_seconds(),
    bytes: lambda value: value.hex(),
    Mapping: lambda value: {str(key): _json_value(entry) for key, entry in value.items()},
    (list, tuple): lambda value: [_json_value(entry) for entry in value],
}
