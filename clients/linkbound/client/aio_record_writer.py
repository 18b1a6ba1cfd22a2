"""The writer of records."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from linkbound.client.batch_keeper import BatchKeeper, PackedBatch
from linkbound.client.changes import Changes
from linkbound.client.closing import Closing
from linkbound.client.record_delivery import Append, RecordDelivery
from linkbound.client.spool.frames import FIRST_RECORDS
from linkbound.client.writer_core import WriterCore
from linkbound.client.writer_options import WriterIdentity, WriterOptions
from linkbound.client.writer_parts import Patience, RowSource, WriterRole
from linkbound.convert.record_payload import record_opening, record_parts
from linkbound.domain.records import Record


class AsyncRecordWriter:
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

    def __init__(self, append: Append, identity: WriterIdentity, options: WriterOptions, closing: Closing) -> None:
        self._append = append
        self._delivery: RecordDelivery | None = None
        self._role = WriterRole(
            run=identity.run,
            writer_id=identity.writer_id,
            opening=record_opening(identity.run, identity.writer_id),
            noun="record",
        )
        nothing = RowSource(row_count=lambda: 0, pass_on=lambda: None)
        self._core = WriterCore(self._role, options, closing, nothing, self._start_delivery, _close_nothing)

    @property
    def committed(self) -> int:
        """Highest sequence number that is known to be stored."""
        return 0 if self._delivery is None else self._delivery.committed_number

    @property
    def checkpointed(self) -> int:
        """Highest sequence number that no damage to the log of the service can take any more, as far as is known."""
        return 0 if self._delivery is None else self._delivery.released_number

    @property
    def pending(self) -> int:
        """Records that were written, by this process or into its spool before, and are not known to be stored."""
        return self._core.pending_row_count

    @property
    def rejected(self) -> int:
        """Records that the service did not store because they are malformed; `rejection_message` says why."""
        return 0 if self._delivery is None else self._delivery.rejected_row_count

    @property
    def rejection_message(self) -> str:
        """Why the last rejected records were not stored; empty where none were."""
        return "" if self._delivery is None else self._delivery.rejection_message

    @property
    def dropped(self) -> int:
        """Records that were dropped because the spool was full."""
        return self._core.keeping.dropped_row_count

    @property
    def damaged(self) -> int:
        """Appends of the spool that could not be read any more when they were to be sent."""
        return 0 if self._delivery is None else self._delivery.damaged_count

    async def __aenter__(self) -> Self:
        """The writer; nothing is asked of the service before something is written."""
        await self._core.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._core.leave(error)

    async def write(self, records: Sequence[Record]) -> None:
        """Take records of any kinds; they are kept when this returns, and cut into appends that are not too large.

        Raises InvalidArgumentError with every violation, ResourceExhaustedError (SPOOL_FULL) where a full spool is
        waited for, and the error that ended the writer.
        """
        parts = list(record_parts(self._role.run, self._role.writer_id, records))
        await self._core.wait_for_room()
        self._core.keeping.pass_on(
            [
                PackedBatch(kind=FIRST_RECORDS + part.kind, row_count=part.record_count, payload=part.payload)
                for part in parts
            ]
        )
        await self._core.wait_until_kept(self._core.keeping.taken_count)

    async def flush(self) -> None:
        """Return once everything written is stored. Raises the error that ended the writer."""
        await self._core.wait_until_delivered()

    def _start_delivery(self, keeper: BatchKeeper, changes: Changes, patience: Patience) -> RecordDelivery:
        self._delivery = RecordDelivery(self._append, keeper, changes, patience, self._role.name)
        return self._delivery


async def _close_nothing() -> None:
    """Appends go over the connection of the client."""
