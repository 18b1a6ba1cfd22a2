"""Digests that stand for the content of an append or of a run, so that a repetition is told from other content.

Equal content has an equal digest in every process and on every machine. A field at its default does not count, so that
a field added later leaves older digests as they are; a whole number counts the same as int and as float, since the
wire knows only one of the two for each field.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Iterable, Sequence
from enum import Enum

import attrs

from linkbound.domain.records import Record
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import UNKNOWN_READ_DURATION_NS, SampleBatch, SeriesDescriptor

DIGEST_BYTES = 16
"""128 bits: two different contents under one number never meet by chance."""

LARGEST_EXACT_FLOAT = 2**53
"""Whole numbers up to here are the same as int and as float."""


def digest_of_records(records: Sequence[Record]) -> bytes:
    """Digest of the records of one append, in their order."""
    return _hash(_canonical(record).encode() for record in records)


def names_of_series(series: Sequence[SeriesDescriptor]) -> tuple[bytes, ...]:
    """What `digest_of_batch` knows the series of a stream by."""
    return tuple(_canonical(descriptor).encode() for descriptor in series)


def digest_of_batch(batch: SampleBatch, names: Sequence[bytes]) -> bytes:
    """Digest of a batch of a stream whose series have these `names_of_series`.

    What counts is which readings each series brings: neither its index nor its place in the batch, so that a stream
    opened anew may announce the series in other order, nor how the batch is encoded. Columns of unequal length and
    series that were not announced, as malformed batches have them, count too.
    """
    entries = sorted(
        (_name_of(columns.series_index, names), position)
        for position, columns in enumerate(batch.columns)
        if columns.time_ns or columns.value or columns.read_duration_ns
    )
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for name, position in entries:
        columns = batch.columns[position]
        durations = columns.read_duration_ns
        _add(digest, name)
        _add(digest, _bytes_of(columns.time_ns))
        _add(digest, _bytes_of(columns.value))
        _add(digest, _bytes_of(durations) if any_known(durations) else b"")
    return digest.digest()


def any_known(read_duration_ns: array[int]) -> bool:
    """Whether any duration of the column is known: one without says as much as no column."""
    return len(read_duration_ns) > 0 and (
        read_duration_ns[0] != UNKNOWN_READ_DURATION_NS
        or read_duration_ns.count(UNKNOWN_READ_DURATION_NS) < len(read_duration_ns)
    )


def digest_of_refused(content: bytes) -> bytes:
    """Digest of the bytes of a batch that could not be made a batch. It equals that of no batch."""
    return _hash([b"refused", content])


def digest_of_run(request: CreateRunRequest) -> bytes:
    """Digest of what a run is created with: without the time at which it is stored."""
    prediction = request.prediction
    content = attrs.evolve(
        request,
        settings=tuple(sorted(request.settings, key=lambda setting: setting.key)),
        prediction=attrs.evolve(prediction, store_time=None) if prediction is not None else None,
    )
    return _hash([_canonical(content).encode()])


def _hash(parts: Iterable[bytes]) -> bytes:
    """Digest of a sequence of byte strings; each counts with its length, so that no two sequences run together."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        _add(digest, part)
    return digest.digest()


def _add(digest: hashlib.blake2b, part: bytes | memoryview) -> None:
    digest.update(len(part).to_bytes(8, "big"))
    digest.update(part)


def _name_of(series_index: int, names: Sequence[bytes]) -> bytes:
    return names[series_index] if 0 <= series_index < len(names) else b"series %d" % series_index


def _bytes_of(column: array[int]) -> memoryview:
    """The numbers as they are on the wire of a column: little-endian, 64 bits each."""
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    # A view without entries cannot be cast.
    return memoryview(column).cast("B") if column else memoryview(b"")


def _canonical(value: object) -> str:
    """One text per content: attrs instances by the fields that are not at their default, enums by name."""
    if isinstance(value, str):
        return ascii(value)
    if value is None or isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) <= LARGEST_EXACT_FLOAT
        return str(int(value)) if whole else repr(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple):
        return f"({','.join(map(_canonical, value))})"
    kind = type(value)
    if attrs.has(kind):
        attributes = sorted(attrs.fields(kind), key=lambda attribute: attribute.name)
        fields = ((attribute.name, getattr(value, attribute.name), attribute.default) for attribute in attributes)
        return f"{kind.__name__}({','.join(f'{n}={_canonical(v)}' for n, v, default in fields if v != default)})"
    raise TypeError(f"{kind.__name__} has no canonical form")
