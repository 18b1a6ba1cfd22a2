"""The record writer for code that blocks: the asyncio writer on an event loop in one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from linkbound.client.aio_record_writer import AsyncRecordWriter
from linkbound.client.blocking_writer import BlockingWriter
from linkbound.client.closing import Closing
from linkbound.client.record_delivery import Append
from linkbound.client.writer_options import WriterIdentity, WriterOptions
from linkbound.domain.records import Record


class RecordWriter(BlockingWriter[AsyncRecordWriter]):
    """Writes records of one writer, each stored exactly once. Used as a context manager; made by `record_writer`.

    `write` numbers appends and keeps them until a checkpoint of the service holds them, in memory, or with a spool on
    disk, for this process or the next one with the same spool and writer id. They are sent one after the other, again
    after a break, and where the service lost the end of its log. `flush` and leaving the block wait until everything is
    stored.

    Without a spool, `write`, `flush` and leaving the block raise the error of a service that refuses or stays away for
    longer than the timeout, with `undeliveredRecordCount` in the metadata. With a spool the service may be away for as
    long as the spool has room; the timeout is how long `flush`, leaving and a `write` into a full spool wait while
    nothing is stored; then they raise, with `spooledRecordCount` in the metadata for what stays in the spool.

    After the client was closed all three raise FailedPreconditionError (CLIENT_CLOSED).
    """

    _noun = "writer"
    _thread_name = "linkbound-record-writer"

    def __init__(self, append: Append, identity: WriterIdentity, options: WriterOptions, closing: Closing) -> None:
        super().__init__(AsyncRecordWriter(append, identity, options, closing))

    @property
    def committed(self) -> int:
        """Highest sequence number that is known to be stored."""
        return self._writer.committed

    @property
    def checkpointed(self) -> int:
        """Highest sequence number that no damage to the log of the service can take any more, as far as is known."""
        return self._writer.checkpointed

    @property
    def pending(self) -> int:
        """Records that were written, by this process or into its spool before, and are not known to be stored."""
        return self._writer.pending

    @property
    def rejected(self) -> int:
        """Records that the service did not store because they are malformed; `rejection_message` says why."""
        return self._writer.rejected

    @property
    def rejection_message(self) -> str:
        """Why the last rejected records were not stored; empty where none were."""
        return self._writer.rejection_message

    @property
    def dropped(self) -> int:
        """Records that were dropped because the spool was full."""
        return self._writer.dropped

    @property
    def damaged(self) -> int:
        """Appends of the spool that could not be read any more when they were to be sent."""
        return self._writer.damaged

    def __enter__(self) -> Self:
        """The writer; nothing is asked of the service before something is written."""
        return self._enter()

    def write(self, records: Sequence[Record]) -> None:
        """Take records of any kinds; they are kept when this returns, and cut into appends that are not too large.

        Raises InvalidArgumentError with every violation, ResourceExhaustedError (SPOOL_FULL) where a full spool is
        waited for, and the error that ended the writer.
        """
        self._open_loop().run(self._writer.write(records))
