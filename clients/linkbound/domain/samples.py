"""Raw readings of counters, as a stream carries them."""

from __future__ import annotations

from attrs import field, frozen

from linkbound.domain.errors import (
    AbortedError,
    Error,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
)
from linkbound.domain.names import RUN_ID, WRITER_ID
from linkbound.domain.records import BOOT_ID, LARGEST_SEQUENCE_NUMBER, SEQUENCE_NUMBER
from linkbound.domain.rules import Checked, instance, one_of, sequence, text, whole

LARGEST_SERIES_COUNT = 1024
LARGEST_SAMPLE_COUNT = 100_000


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


@frozen(kw_only=True)
class OpenStreamRequest(Checked):
    """Opens a sample stream; `last_acked_sequence_number` is 0 where the writer does not know."""

    run: str = field(metadata=RUN_ID)
    writer_id: str = field(metadata=WRITER_ID)
    series: tuple[SeriesDescriptor, ...] = field(metadata=sequence(1, LARGEST_SERIES_COUNT, instance(SeriesDescriptor)))
    last_acked_sequence_number: int = field(default=0, metadata=whole(0, LARGEST_SEQUENCE_NUMBER))


@frozen(kw_only=True)
class SampleColumns:
    """Readings of one series as equal-length columns of absolute values.

    `time_ns` is CLOCK_MONOTONIC before each read; `read_duration_ns` is empty where it is not known. Shape rules are
    checked by `ingest_service.core.samples`, which counts bad samples instead of refusing the batch.
    """

    series_index: int
    time_ns: tuple[int, ...]
    value: tuple[int, ...]
    read_duration_ns: tuple[int, ...] = ()


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
class BatchOutcome:
    """A batch is durable, and so is everything below its number: how many of its samples were not stored and why."""

    committed_sequence_number: int
    rejected_sample_count: int = 0
    rejection_message: str = ""


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
