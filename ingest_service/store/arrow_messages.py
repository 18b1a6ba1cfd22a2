"""Record batches as messages of a bounded size, in the Arrow IPC format.

Every message stands alone beside the schema: columns that Arrow would send with dictionaries (ENUM) travel as what they
stand for.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from linkbound.domain.errors import ResourceExhaustedError
from linkbound.domain.words import counted

USUAL_MESSAGE_BYTES = 2**20
"""Size at which rows are sent: large enough that messages cost little, small enough that a slow reader holds little."""

LARGEST_MESSAGE_BYTES = 4 * 2**20 - 2**16
"""What a client of gRPC takes that does not ask for more, less what a message has around its content."""


class ArrowMessages:
    """Makes messages of the rows of one answer."""

    def __init__(self, schema: pa.Schema) -> None:
        """Raises ResourceExhaustedError (QUERY_TOO_LARGE) for a schema that does not fit into a message."""
        self._schema = pa.schema([_plain_field(field) for field in schema])
        self._is_plain = self._schema.equals(schema)
        self.schema: bytes = self._schema.serialize().to_pybytes()
        if len(self.schema) > LARGEST_MESSAGE_BYTES:
            raise _too_large(f"its {counted(len(self._schema), 'column')} take", len(self.schema))

    def of(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        """The messages of `batches`, none of which is empty. Raises ResourceExhaustedError (QUERY_TOO_LARGE)."""
        waiting: list[pa.RecordBatch] = []
        size_bytes = 0
        for given in batches:
            batch = given if self._is_plain else self._as_plain(given)
            if waiting and size_bytes + batch.nbytes > USUAL_MESSAGE_BYTES:
                yield from self._messages(waiting)
                waiting, size_bytes = [], 0
            waiting.append(batch)
            size_bytes += batch.nbytes
        if waiting:
            yield from self._messages(waiting)

    def _messages(self, batches: list[pa.RecordBatch]) -> Iterator[bytes]:
        if len(batches) == 1:
            yield from _split(batches[0])
            return
        for batch in pa.Table.from_batches(batches, self._schema).combine_chunks().to_batches():
            yield from _split(batch)

    def _as_plain(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [column.cast(field.type) for column, field in zip(batch.columns, self._schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _split(batch: pa.RecordBatch) -> Iterator[bytes]:
    """`batch` in as many messages as it takes."""
    # Sizes are asked for before anything is written: one that is far too large would be written in vain.
    parts = -(-batch.nbytes // USUAL_MESSAGE_BYTES) if batch.nbytes > LARGEST_MESSAGE_BYTES else 1
    if parts > 1 and batch.num_rows > 1:
        step = max(1, batch.num_rows // parts)
        for start in range(0, batch.num_rows, step):
            yield from _split_in_halves(batch.slice(start, step))
        return
    yield from _split_in_halves(batch)


def _split_in_halves(batch: pa.RecordBatch) -> Iterator[bytes]:
    if batch.num_rows == 1 and batch.nbytes > LARGEST_MESSAGE_BYTES:
        raise _too_large("a row takes", batch.nbytes)
    if batch.nbytes <= LARGEST_MESSAGE_BYTES:
        message: bytes = batch.serialize().to_pybytes()
        if len(message) <= LARGEST_MESSAGE_BYTES:
            yield message
            return
        if batch.num_rows == 1:
            raise _too_large("a row takes", len(message))
    half = batch.num_rows // 2
    yield from _split_in_halves(batch.slice(0, half))
    yield from _split_in_halves(batch.slice(half))


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain_type(field.type))


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    """`data_type` without dictionaries, at any depth."""
    if pa.types.is_dictionary(data_type):
        plain = data_type.value_type
    elif pa.types.is_struct(data_type):
        plain = pa.struct([_plain_field(data_type.field(index)) for index in range(data_type.num_fields)])
    elif pa.types.is_map(data_type):
        plain = pa.map_(_plain_field(data_type.key_field), _plain_field(data_type.item_field))
    elif pa.types.is_fixed_size_list(data_type):
        plain = pa.list_(_plain_field(data_type.value_field), data_type.list_size)
    elif pa.types.is_list(data_type):
        plain = pa.list_(_plain_field(data_type.value_field))
    else:
        plain = data_type
    return plain


def _too_large(what: str, size_bytes: int) -> ResourceExhaustedError:
    return ResourceExhaustedError(
        f"{what} {size_bytes} bytes, more than the {LARGEST_MESSAGE_BYTES} of one message",
        reason="QUERY_TOO_LARGE",
        metadata={"sizeBytes": str(size_bytes), "limitBytes": str(LARGEST_MESSAGE_BYTES)},
    )
