"""Digests that stand for the content of an append or of a run, so that a repetition is told from other content.

Equal content has an equal digest in every process and on every machine. A field at its default does not count, so that
a field added later leaves older digests as they are; a whole number counts the same as int and as float, since the
wire knows only one of the two for each field.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from enum import Enum

import attrs

from linkbound.domain.records import Record
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import SampleBatch, SeriesDescriptor

DIGEST_BYTES = 16
"""128 bits: two different contents under one number never meet by chance."""

LARGEST_EXACT_FLOAT = 2**53
"""Whole numbers up to here are the same as int and as float."""


def digest_of_records(records: Sequence[Record]) -> bytes:
    """Digest of the records of one append, in their order."""
    return _hash(_canonical(record).encode() for record in records)


def digest_of_batch(batch: SampleBatch, series: Sequence[SeriesDescriptor]) -> bytes:
    """Digest of a batch. Series count by what they are, so that a stream opened anew may announce them in other order.

    Readings that are outside 64 bits and series that were not announced, as malformed batches have them, count too.
    """
    parts: list[bytes] = []
    for columns in batch.columns:
        known = 0 <= columns.series_index < len(series)
        name = _canonical(series[columns.series_index]) if known else f"series {columns.series_index}"
        parts += [name.encode(), *map(_column, (columns.time_ns, columns.value, columns.read_duration_ns))]
    return _hash(parts)


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
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def _column(numbers: tuple[int, ...]) -> bytes:
    """The numbers as 64-bit integers, or as text where they do not fit; the first byte says which."""
    try:
        return b"q" + struct.pack(f"<{len(numbers)}q", *numbers)
    except struct.error:
        return b"t" + ",".join(map(str, numbers)).encode()


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
