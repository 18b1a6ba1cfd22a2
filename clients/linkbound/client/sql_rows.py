"""The rows of a query as Arrow. pyarrow is imported here, when a query is asked, and nowhere before."""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Generator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from linkbound.domain.errors import FailedPreconditionError, UnavailableError
from linkbound.domain.sql import SqlPart, SqlSummary, TruncatedAnswerWarning

if TYPE_CHECKING:
    import pyarrow as pa


def check_pyarrow() -> None:
    """Raises FailedPreconditionError (PYARROW_MISSING) where it is not installed."""
    try:
        import pyarrow.ipc  # noqa: F401 - the question is whether it is there
    except ModuleNotFoundError as error:
        raise FailedPreconditionError(
            f"the rows of a query need {error.name}: pip install 'linkbound[services]', or pyarrow alone",
            reason="PYARROW_MISSING",
            metadata={"module": error.name or ""},
        ) from error


def rows_of(parts: Generator[SqlPart, None, None]) -> pa.RecordBatchReader:
    """A reader of the rows of one answer; closing it, or letting go of it, ends the query."""
    import pyarrow as pa

    rows = _Rows(next(parts, None))
    return pa.RecordBatchReader.from_batches(rows.schema, _batches(rows, parts))


async def async_rows_of(parts: AsyncGenerator[SqlPart, None]) -> AsyncRecordBatchReader:
    """The same on an event loop."""
    return AsyncRecordBatchReader(_Rows(await anext(parts, None)), parts)


class AsyncRecordBatchReader:
    """The rows of a query, to be iterated over once: `async for batch in reader`, or `await reader.read_all()`.

    A context manager; `close` ends a query early.
    """

    def __init__(self, rows: _Rows, parts: AsyncGenerator[SqlPart, None]) -> None:
        self._rows = rows
        self._parts = parts

    async def __aenter__(self) -> Self:
        """The reader itself, closed at the end of the block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        """The reader itself: its rows come once."""
        return self

    async def __anext__(self) -> pa.RecordBatch:
        """The next batch of rows."""
        batch = self._rows.take(await anext(self._parts, None))
        if batch is None:
            await self.close()
            raise StopAsyncIteration
        return batch

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._rows.schema

    @property
    def summary(self) -> SqlSummary | None:
        """What the query came to; None before its last row was read."""
        return self._rows.summary

    async def read_all(self) -> pa.Table:
        """All rows that were not read yet."""
        import pyarrow as pa

        return pa.Table.from_batches([batch async for batch in self], self.schema)

    async def close(self) -> None:
        """End the query. Repeating it is fine."""
        await self._parts.aclose()


class _Rows:
    """Puts the parts of an answer together."""

    def __init__(self, first: SqlPart | None) -> None:
        import pyarrow as pa

        if not isinstance(first, bytes):
            raise _broken()
        self.schema: pa.Schema = pa.ipc.read_schema(pa.py_buffer(first))
        self.summary: SqlSummary | None = None

    def take(self, part: SqlPart | None) -> pa.RecordBatch | None:
        """The rows of the next part; None at the end, where a warning says what was left out.

        Raises UnavailableError (STREAM_ENDED) where the answer ends before its summary.
        """
        import pyarrow as pa

        if isinstance(part, bytes):
            return pa.ipc.read_record_batch(pa.py_buffer(part), self.schema)
        if part is None and self.summary is None:
            raise _broken()
        if part is not None:
            self.summary = part
            if part.truncated:
                warnings.warn(TruncatedAnswerWarning(part), stacklevel=2)
        return None


def _batches(rows: _Rows, parts: Generator[SqlPart, None, None]) -> Iterator[pa.RecordBatch]:
    try:
        while (batch := rows.take(next(parts, None))) is not None:
            yield batch
    finally:
        parts.close()


def _broken() -> UnavailableError:
    return UnavailableError("the answer broke off before its end", reason="STREAM_ENDED")
