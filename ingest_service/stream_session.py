"""One open sample stream: checks batches and hands them to the writer thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from attrs import field, frozen

from ingest_service.core.append import Append, AppendKind, StreamPosition
from ingest_service.core.append_errors import writer_fenced
from ingest_service.core.digest import digest_of_batch, digest_of_refused, names_of_series
from ingest_service.core.samples import check_batch
from ingest_service.store.append_committer import AppendRows
from ingest_service.store.sample_tables import sample_rows
from ingest_service.store.writer import Writer
from linkbound.domain.errors import AbortedError, FailedPreconditionError, InvalidArgumentError
from linkbound.domain.records import SEQUENCE_NUMBER
from linkbound.domain.rules import Checked
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, SampleBatch, StreamLimits, StreamStart

SAMPLE_BYTES = 32
"""What a queued sample takes in memory: three 64-bit columns and its share of the rest."""

BATCH_BYTES = 2048
"""What a queued batch takes besides its samples."""


@frozen(kw_only=True)
class RefusedBatch(Checked):
    """A batch that never became one: too large, or its `content`, the bytes as they came, cannot be converted.

    Raises InvalidArgumentError on construction for a number that no batch can have.
    """

    sequence_number: int = field(metadata=SEQUENCE_NUMBER)
    sample_count: int
    content: bytes = field(repr=False)
    error: InvalidArgumentError


@frozen
class PreparedAppend:
    """A batch that is ready to be queued. `byte_count` is what it takes in memory."""

    rows: AppendRows
    sample_count: int
    byte_count: int


class StreamListener(Protocol):
    """Told what happens to an open stream besides its own batches, on any thread."""

    def on_checkpointed(self, sequence_number: int) -> None:
        """No damage to the log can take this number any more, nor any below it."""
        ...

    def on_fenced(self, error: AbortedError) -> None:
        """The writer opened another stream, which ends this one with `error`."""
        ...


class StreamSession:
    """A stream that `Ingest.open_stream` opened. Its limits are kept by who feeds it; the queue is bounded anyway."""

    def __init__(
        self,
        writer: Writer,
        request: OpenStreamRequest,
        position: StreamPosition,
        limits: StreamLimits,
        on_closed: Callable[[StreamSession], None],
    ) -> None:
        self._writer = writer
        self._request = request
        self._epoch = position.epoch
        self._names = names_of_series(request.series)
        self._on_closed = on_closed
        self._lock = threading.Lock()
        self._closed = False
        self._fenced_by: AbortedError | None = None
        self._listener: StreamListener | None = None
        self.start = StreamStart(
            committed_sequence_number=position.committed_sequence_number,
            checkpointed_sequence_number=position.checkpointed_sequence_number,
            rejected_sample_count=position.rejected_row_count,
            limits=limits,
        )
        """Where the stream goes on: the next batch has the next number."""
        self.lost_append_count = position.lost_append_count
        """Appends that were acknowledged and are gone; the writer sends them again."""
        self._checkpointed_sequence_number = position.checkpointed_sequence_number

    @property
    def key(self) -> tuple[str, str]:
        """Run and writer."""
        return self._request.run, self._request.writer_id

    @property
    def checkpointed_sequence_number(self) -> int:
        """Highest number that no damage to the log can take any more."""
        return self._checkpointed_sequence_number

    def listen(self, listener: StreamListener) -> None:
        """Tells `listener` from now on, and at once what happened before."""
        with self._lock:
            self._listener = listener
            fenced_by = self._fenced_by
        if fenced_by is not None:
            listener.on_fenced(fenced_by)
        listener.on_checkpointed(self._checkpointed_sequence_number)

    def note_checkpointed(self, sequence_number: int) -> None:
        """Everything up to this number is in the file."""
        with self._lock:
            self._checkpointed_sequence_number = sequence_number
            listener = self._listener
        if listener is not None:
            listener.on_checkpointed(sequence_number)

    def fence(self, error: AbortedError) -> None:
        """Lets no more batches in, since the writer opened another stream; those queued are still stored."""
        with self._lock:
            self._fenced_by = error
            listener = self._listener
        if listener is not None:
            listener.on_fenced(error)

    def submit(self, batch: SampleBatch) -> Future[BatchOutcome]:
        """Queues a batch; the future resolves after its COMMIT.

        Raises ResourceExhaustedError (QUEUE_FULL, nothing is queued; DISK_FULL), FailedPreconditionError
        (STREAM_CLOSED), AbortedError (WRITER_FENCED) and UnavailableError. The future raises InvalidArgumentError
        (malformed; its number is used up), OutOfRangeError (SEQUENCE_GAP), AbortedError (WRITER_CONFLICT,
        WRITER_FENCED), FailedPreconditionError (RUN_SEALED, WRITER_KIND_MISMATCH), NotFoundError (the run was deleted),
        ResourceExhaustedError (DISK_FULL) and UnavailableError.
        """
        return self.queue(self.prepared(batch))

    def prepared(self, batch: SampleBatch) -> PreparedAppend:
        """The work on a batch that comes before it is queued: the larger part, and the same each time."""
        checked = check_batch(batch, self._request.series)
        rows = AppendRows(
            append=self._append(batch.sequence_number, digest_of_batch(batch, self._names)),
            rows=sample_rows(checked.readings) if checked.error is None else None,
            row_count=checked.sample_count,
            rejected_row_count=checked.rejected_sample_count,
            rejection_message=checked.rejection_message,
            refusal=checked.error,
        )
        return PreparedAppend(rows, batch.sample_count, BATCH_BYTES + SAMPLE_BYTES * checked.sample_count)

    def refused(self, batch: RefusedBatch) -> PreparedAppend:
        """A refusal under the number of a batch, so that its writer can go on; like a batch that is malformed."""
        rows = AppendRows(
            append=self._append(batch.sequence_number, digest_of_refused(batch.content)),
            rows=None,
            row_count=0,
            rejected_row_count=batch.sample_count,
            rejection_message=batch.error.message,
            refusal=batch.error,
        )
        return PreparedAppend(rows, 0, BATCH_BYTES)

    def queue(self, prepared: PreparedAppend) -> Future[BatchOutcome]:
        """Queues what was prepared; raises and resolves as `submit` does."""
        if self._closed:
            raise FailedPreconditionError("the stream is closed", reason="STREAM_CLOSED")
        if self._fenced_by is not None:
            raise writer_fenced(self._request.writer_id)
        return self._writer.append(prepared.rows, prepared.byte_count)

    @property
    def is_crowded(self) -> bool:
        """Whether so much is queued that more should wait; it is let in all the same while there is room at all."""
        return self._writer.is_crowded

    def when_room(self) -> Future[None]:
        """Resolves once a queue that was full has room again, or takes nothing any more."""
        return self._writer.when_room()

    def _append(self, sequence_number: int, digest: bytes) -> Append:
        return Append(
            run_id=self._request.run,
            writer_id=self._request.writer_id,
            sequence_number=sequence_number,
            kind=AppendKind.STREAM,
            digest=digest,
            epoch=self._epoch,
        )

    def close(self) -> None:
        """Lets no more batches in; those queued are still stored. Repeating it is fine."""
        self._closed = True
        self._on_closed(self)
