"""The sample writer for code that blocks: the asyncio writer on an event loop in one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.blocking_writer import BlockingWriter
from linkbound.client.closing import Closing
from linkbound.client.sample_stream import SampleConnector
from linkbound.client.writer_options import WriterOptions
from linkbound.domain.samples import OpenStreamRequest, SampleColumns


class SampleWriter(BlockingWriter[AsyncSampleWriter]):
    """Writes samples of one writer, each stored exactly once. Used as a context manager; made by `writer`.

    `write` puts samples together into batches and numbers them. Batches are kept until the service holds them for good,
    beyond damage to its log, and are sent again after a break or where the service lost them. `flush` and leaving the
    block wait until everything is stored.

    Without a spool, batches are kept in memory; entering waits for the service, and if it stays away for longer than
    the timeout, or refuses, then `write`, `flush` and leaving the block raise its error, with `undeliveredSampleCount`
    in the metadata where samples are lost.

    With a spool, batches are kept on disk, for this process or the next one with the same spool and writer id. The
    service may be away for as long as the spool has room; what then becomes of new samples says the spool. The timeout
    is how long `flush`, leaving the block and a `write` into a full spool wait while nothing is stored; then they
    raise, with `spooledSampleCount` in the metadata for what stays in the spool. A refusal raises from `write` too.

    After the client was closed all three raise FailedPreconditionError (CLIENT_CLOSED).
    """

    _noun = "sample writer"
    _thread_name = "linkbound-sample-writer"

    def __init__(
        self, connector: SampleConnector, request: OpenStreamRequest, options: WriterOptions, closing: Closing
    ) -> None:
        super().__init__(AsyncSampleWriter(connector, request, options, closing))

    @property
    def committed(self) -> int:
        """Highest sequence number that is known to be stored."""
        return self._writer.committed

    @property
    def checkpointed(self) -> int:
        """Highest sequence number that is known to be stored beyond damage to the log of the service."""
        return self._writer.checkpointed

    @property
    def pending(self) -> int:
        """Samples that were written, by this process or into its spool before, and are not known to be stored."""
        return self._writer.pending

    @property
    def rejected(self) -> int:
        """Samples that the service did not store because they are bad; `rejection_message` says why."""
        return self._writer.rejected

    @property
    def rejection_message(self) -> str:
        """Why the last rejected samples were not stored; empty where none were."""
        return self._writer.rejection_message

    @property
    def dropped(self) -> int:
        """Samples that were dropped because the spool was full."""
        return self._writer.dropped

    @property
    def damaged(self) -> int:
        """Batches of the spool that could not be read any more when they were to be sent."""
        return self._writer.damaged

    def __enter__(self) -> Self:
        """The writer; without a spool, once its stream is open."""
        return self._enter()

    def write(self, columns: Sequence[SampleColumns]) -> None:
        """Take samples of the series that the writer was opened with, waiting while much waits to be kept.

        They wait for others to share a batch with, as long as the writer was told to; with a `linger_seconds` of 0 they
        are kept when this returns. What is too large for one batch is cut into several. Raises InvalidArgumentError for
        columns of unequal length or an unknown series, ResourceExhaustedError (SPOOL_FULL) where a full spool is waited
        for, and the error that ended the writer.
        """
        self._open_loop().run(self._writer.write(columns))
