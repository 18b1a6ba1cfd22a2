"""The record writer for code that blocks: the asyncio writer on an event loop in one thread."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from linkbound.client.aio_record_writer import AsyncRecordWriter
from linkbound.client.closing import Closing
from linkbound.client.loop_thread import LoopThread
from linkbound.client.record_delivery import Append
from linkbound.client.writer_options import WriterIdentity, WriterOptions
from linkbound.domain.errors import FailedPreconditionError
from linkbound.domain.records import Record


class RecordWriter:
    """Writes records of one writer, each stored exactly once. Used as a context manager; made by `record_writer`.

    `write` numbers appends and keeps them until the service has stored them, in memory, or with a spool on disk, for
    this process or the next one with the same spool and writer id. They are sent one after the other, again after a
    break. `flush` and leaving the block wait until everything is stored.

    Without a spool, `write`, `flush` and leaving the block raise the error of a service that refuses or stays away for
    longer than the timeout, with `undeliveredRecordCount` in the metadata. With a spool the service may be away for as
    long as the spool has room; the timeout is how long `flush`, leaving and a `write` into a full spool wait while
    nothing is stored; then they raise, with `spooledRecordCount` in the metadata for what stays in the spool.

    After the client was closed all three raise FailedPreconditionError (CLIENT_CLOSED).
    """

    def __init__(self, append: Append, identity: WriterIdentity, options: WriterOptions, closing: Closing) -> None:
        self._writer = AsyncRecordWriter(append, identity, options, closing)
        self._loop: LoopThread | None = None

    @property
    def committed(self) -> int:
        """Highest sequence number that is known to be stored."""
        return self._writer.committed

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
        if self._loop is not None:
            raise FailedPreconditionError("a writer is entered once", reason="WRITER_CLOSED")
        self._loop = LoopThread("linkbound-record-writer")
        try:
            self._loop.run(self._writer.__aenter__())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loop = self._open_loop()
        try:
            loop.run(self._writer.__aexit__(kind, error, trace))
        finally:
            loop.stop()

    def write(self, records: Sequence[Record]) -> None:
        """Take records of any kinds; they are kept when this returns, and cut into appends that are not too large.

        Raises InvalidArgumentError with every violation, ResourceExhaustedError (SPOOL_FULL) where a full spool is
        waited for, and the error that ended the writer.
        """
        self._open_loop().run(self._writer.write(records))

    def flush(self) -> None:
        """Return once everything written is stored. Raises the error that ended the writer."""
        self._open_loop().run(self._writer.flush())

    def _open_loop(self) -> LoopThread:
        if self._loop is None or self._loop.is_stopped:
            raise FailedPreconditionError("the writer is not open", reason="WRITER_CLOSED")
        return self._loop
