"""Raw readings of counters, as a stream carries them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import field, frozen

from linkbound.domain.errors import (
    AbortedError,
    Error,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    Violation,
)
from linkbound.domain.names import RUN_ID, WRITER_ID
from linkbound.domain.records import BOOT_ID, LARGEST_SEQUENCE_NUMBER, SEQUENCE_NUMBER
from linkbound.domain.rules import Checked, instance, one_of, sequence, shown, text, whole

LARGEST_SERIES_COUNT = 1024
LARGEST_SAMPLE_COUNT = 100_000

INT64_TYPECODE = "q"
SMALLEST_INT64 = -(2**63)
LARGEST_INT64 = 2**63 - 1

UNKNOWN_READ_DURATION_NS = SMALLEST_INT64
"""Stands in `SampleColumns.read_duration_ns` for a read whose duration is not known where others are."""


@frozen(kw_only=True)
class SeriesDescriptor:
    """A counter or gauge of one device. `counter_bits` is 0 for a gauge, `unit_bytes` 0 where it counts no bytes."""

    metric: str = field(metadata=text(128, minimum_length=1))
    node: str = field(metadata=text(256, minimum_length=1))
    device: str = field(default="", metadata=text(128))
    port: int = field(default=0, metadata=whole(0, 10**6))
    unit_bytes: int = field(default=0, metadata=whole(0, 4096))
    counter_bits: int = field(default=64, metadata=one_of(0, 32, 64))
    boot_id: str = field(default="", metadata=BOOT_ID)
    physical_port: str = field(default="", metadata=text(128))


@frozen(kw_only=True)
class OpenStreamRequest(Checked):
    """Opens a sample stream; `last_acked_sequence_number` is 0 where the writer does not know.

    `first_kept_sequence_number` is the lowest number that it can still send; 0: the one after the last acknowledged.
    """

    run: str = field(metadata=RUN_ID)
    writer_id: str = field(metadata=WRITER_ID)
    series: tuple[SeriesDescriptor, ...] = field(metadata=sequence(1, LARGEST_SERIES_COUNT, instance(SeriesDescriptor)))
    last_acked_sequence_number: int = field(default=0, metadata=whole(0, LARGEST_SEQUENCE_NUMBER))
    first_kept_sequence_number: int = field(default=0, metadata=whole(0, LARGEST_SEQUENCE_NUMBER))


Numbers = Sequence[int] | memoryview
"""What a column is made of: any sequence of integers, fastest where it is an array or a buffer of 64-bit ones."""


def _times(numbers: Numbers) -> array[int]:
    return _column("time_ns", numbers)


def _values(numbers: Numbers) -> array[int]:
    return _column("value", numbers)


def _read_durations(numbers: Numbers) -> array[int]:
    return _column("read_duration_ns", numbers)


@frozen(kw_only=True)
class SampleColumns:
    """Readings of one series as equal-length columns of absolute values, signed and of 64 bits.

    `time_ns` is CLOCK_MONOTONIC before each read; `read_duration_ns` is empty where it is not known. What is given is
    copied. Rules between readings are checked by `ingest_service.core.samples`, which counts bad samples instead of
    refusing the batch.

    Raises InvalidArgumentError on construction for what is not a signed 64-bit integer.
    """

    series_index: int
    time_ns: array[int] = field(converter=_times)
    value: array[int] = field(converter=_values)
    read_duration_ns: array[int] = field(default=(), converter=_read_durations)


@frozen(kw_only=True)
class SampleBatch(Checked):
    """Samples under one number."""

    sequence_number: int = field(metadata=SEQUENCE_NUMBER)
    columns: tuple[SampleColumns, ...] = field(metadata=sequence(0, LARGEST_SERIES_COUNT, instance(SampleColumns)))

    @property
    def sample_count(self) -> int:
        """Samples of all series."""
        return sum(len(columns.time_ns) for columns in self.columns)


@frozen(kw_only=True)
class StreamLimits:
    """What the service lets one stream have under way."""

    max_in_flight_batches: int
    max_batch_bytes: int


@frozen(kw_only=True)
class StreamStart:
    """Where a stream goes on: behind `committed_sequence_number`; the rest as in `BatchOutcome`.

    `rejected_sample_count` is that of all batches up to there, those of earlier streams included.
    """

    committed_sequence_number: int
    checkpointed_sequence_number: int = 0
    rejected_sample_count: int = 0
    limits: StreamLimits


@frozen(kw_only=True)
class BatchOutcome:
    """A batch is durable, and so is everything below its number: how many of its samples were not stored and why.

    Up to `checkpointed_sequence_number` no damage to the log can take it any more.
    """

    committed_sequence_number: int
    rejected_sample_count: int = 0
    rejection_message: str = ""
    checkpointed_sequence_number: int = 0


def concerns_one_batch(error: Error) -> bool:
    """Whether a stream goes on after `error`: the batch is at fault, or may be sent again; any other error ends it."""
    match error:
        case InvalidArgumentError() | OutOfRangeError():
            return True
        case AbortedError():
            return error.reason == "WRITER_CONFLICT"
        case ResourceExhaustedError():
            return error.retry_delay_seconds is not None
        case _:
            return False


def _column(name: str, numbers: Numbers) -> array[int]:
    """A copy of `numbers`."""
    if isinstance(numbers, array) and numbers.typecode == INT64_TYPECODE:
        return numbers[:]
    column = array(INT64_TYPECODE)
    buffer = None if isinstance(numbers, tuple | list) else _int64_buffer(numbers)
    if buffer is not None:
        column.frombytes(buffer)
        return column
    try:
        column.extend(numbers)
    except (OverflowError, TypeError, NotImplementedError) as error:
        raise InvalidArgumentError(_violations(name, numbers)) from error
    return column


def _int64_buffer(numbers: Any) -> memoryview | None:
    """The bytes of `numbers` in memory; None where these are not signed 64-bit integers, one after the other."""
    try:
        view = memoryview(numbers)
    except TypeError:
        return None
    is_column = view.format in ("q", "l") and view.itemsize == array(INT64_TYPECODE).itemsize and view.ndim == 1
    # A view without entries cannot be cast.
    return view.cast("B") if is_column and view.c_contiguous and view else None


def _violations(name: str, numbers: Iterable[object]) -> list[Violation]:
    return [
        Violation(f"{name}[{index}]", f"{shown(number)} is not a signed 64-bit integer")
        for index, number in enumerate(numbers)
        if not (isinstance(number, int) and SMALLEST_INT64 <= number <= LARGEST_INT64)
    ][:1]
