"""One open sample stream: checks batches and hands them to the writer thread."""

from __future__ import annotations

from concurrent.futures import Future

from ingest_service.core.append import Append, AppendKind
from ingest_service.core.digest import digest_of_batch
from ingest_service.core.samples import check_batch
from ingest_service.store.append_committer import AppendRows
from ingest_service.store.sample_tables import sample_rows
from ingest_service.store.writer import Writer
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest, SampleBatch, StreamLimits

SAMPLE_BYTES = 32
"""What a queued sample takes in memory: three 64-bit columns and its share of the rest."""

BATCH_BYTES = 2048
"""What a queued batch takes besides its samples."""


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
        if self._closed:
            raise FailedPreconditionError("the stream is closed", reason="STREAM_CLOSED")
        request = self._request
        checked = check_batch(batch, request.series)
        rows = AppendRows(
            append=Append(
                run_id=request.run_id,
                writer_id=request.writer_id,
                sequence_number=batch.sequence_number,
                kind=AppendKind.STREAM,
                digest=digest_of_batch(batch, request.series),
            ),
            rows=sample_rows(checked.readings) if checked.error is None else None,
            row_count=checked.sample_count,
            rejected_row_count=checked.rejected_sample_count,
            rejection_message=checked.rejection_message,
            refusal=checked.error,
        )
        return self._writer.append(rows, BATCH_BYTES + SAMPLE_BYTES * checked.sample_count)

    def close(self) -> None:
        """Lets no more batches in; those queued are still stored. Repeating it is fine."""
        self._closed = True
