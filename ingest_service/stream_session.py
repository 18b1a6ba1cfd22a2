"""One open sample stream: checks batches and hands them to the writer thread."""

from __future__ import annotations

from concurrent.futures import Future

from attrs import field, frozen

from ingest_service.core.append import Append, AppendKind
from ingest_service.core.digest import digest_of_batch, digest_of_refused
from ingest_service.core.samples import check_batch
from ingest_service.store.append_committer import AppendRows
from ingest_service.store.sample_tables import sample_rows
from ingest_service.store.writer import Writer
from linkbound.domain.errors import FailedPreconditionError, InvalidArgumentError
from linkbound.domain.records import SEQUENCE_NUMBER
from linkbound.domain.rules import Checked
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, SampleBatch, StreamLimits

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


class StreamSession:
    """A stream that `Ingest.open_stream` opened. Its limits are kept by who feeds it; the queue is bounded anyway."""

    def __init__(
        self, writer: Writer, request: OpenStreamRequest, committed_sequence_number: int, limits: StreamLimits
    ) -> None:
        self._writer = writer
        self._request = request
        self._closed = False
        self.committed_sequence_number = committed_sequence_number
        """Highest number that was stored when the stream was opened; the next batch has the next one."""
        self.limits = limits

    def submit(self, batch: SampleBatch) -> Future[BatchOutcome]:
        """Queues a batch; the future resolves after its COMMIT.

        Raises ResourceExhaustedError (QUEUE_FULL, nothing is queued), FailedPreconditionError (STREAM_CLOSED) and
        UnavailableError. The future raises InvalidArgumentError (malformed; its number is used up), OutOfRangeError
        (SEQUENCE_GAP), AbortedError (WRITER_CONFLICT), FailedPreconditionError (RUN_SEALED, WRITER_KIND_MISMATCH),
        NotFoundError (the run was deleted), ResourceExhaustedError (DISK_FULL) and UnavailableError.
        """
        request = self._request
        checked = check_batch(batch, request.series)
        rows = AppendRows(
            append=self._append(batch.sequence_number, digest_of_batch(batch, request.series)),
            rows=sample_rows(checked.readings) if checked.error is None else None,
            row_count=checked.sample_count,
            rejected_row_count=checked.rejected_sample_count,
            rejection_message=checked.rejection_message,
            refusal=checked.error,
        )
        return self._queue(rows, BATCH_BYTES + SAMPLE_BYTES * checked.sample_count)

    def refuse(self, batch: RefusedBatch) -> Future[BatchOutcome]:
        """Queues a refusal under the number of a batch, so that its writer can go on; like a malformed `submit`."""
        rows = AppendRows(
            append=self._append(batch.sequence_number, digest_of_refused(batch.content)),
            rows=None,
            row_count=0,
            rejected_row_count=batch.sample_count,
            rejection_message=batch.error.message,
            refusal=batch.error,
        )
        return self._queue(rows, BATCH_BYTES)

    def _append(self, sequence_number: int, digest: bytes) -> Append:
        return Append(
            run_id=self._request.run,
            writer_id=self._request.writer_id,
            sequence_number=sequence_number,
            kind=AppendKind.STREAM,
            digest=digest,
        )

    def _queue(self, rows: AppendRows, byte_count: int) -> Future[BatchOutcome]:
        if self._closed:
            raise FailedPreconditionError("the stream is closed", reason="STREAM_CLOSED")
        return self._writer.append(rows, byte_count)

    def close(self) -> None:
        """Lets no more batches in; those queued are still stored. Repeating it is fine."""
        self._closed = True
