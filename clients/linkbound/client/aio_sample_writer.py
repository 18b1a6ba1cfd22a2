"""The writer of counter samples."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from linkbound.client.batch_keeper import BatchKeeper
from linkbound.client.changes import Changes
from linkbound.client.closing import Closing
from linkbound.client.sample_batches import SMALLEST_LIMIT_BYTES, SampleBatcher, check_columns
from linkbound.client.sample_delivery import SampleDelivery
from linkbound.client.sample_stream import SampleConnector
from linkbound.client.writer_core import WriterCore
from linkbound.client.writer_options import WriterOptions
from linkbound.client.writer_parts import Patience, RowSource, WriterRole
from linkbound.convert.sample_payload import opening_to_bytes
from linkbound.domain.samples import OpenStreamRequest, SampleColumns


class AsyncSampleWriter:
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

    def __init__(
        self, connector: SampleConnector, request: OpenStreamRequest, options: WriterOptions, closing: Closing
    ) -> None:
        self._connector = connector
        self._series_count = len(request.series)
        self._linger_seconds = options.linger_seconds
        self._linger_timer: asyncio.TimerHandle | None = None
        self._batcher = SampleBatcher()
        self._delivery: SampleDelivery | None = None
        self._role = WriterRole(
            run=request.run, writer_id=request.writer_id, opening=opening_to_bytes(request), noun="sample"
        )
        source = RowSource(row_count=lambda: self._batcher.sample_count, pass_on=self._close_batch)
        self._core = WriterCore(self._role, options, closing, source, self._start_delivery, connector.close)

    @property
    def committed(self) -> int:
        """Highest sequence number that is known to be stored."""
        return 0 if self._delivery is None else self._delivery.committed_number

    @property
    def checkpointed(self) -> int:
        """Highest sequence number that is known to be stored beyond damage to the log of the service."""
        return 0 if self._delivery is None else self._delivery.released_number

    @property
    def pending(self) -> int:
        """Samples that were written, by this process or into its spool before, and are not known to be stored."""
        return self._core.pending_row_count

    @property
    def rejected(self) -> int:
        """Samples that the service did not store because they are bad; `rejection_message` says why."""
        return 0 if self._delivery is None else self._delivery.window.rejected_sample_count

    @property
    def rejection_message(self) -> str:
        """Why the last rejected samples were not stored; empty where none were."""
        return "" if self._delivery is None else self._delivery.window.rejection_message

    @property
    def dropped(self) -> int:
        """Samples that were dropped because the spool was full."""
        return self._core.keeping.dropped_row_count

    @property
    def damaged(self) -> int:
        """Batches of the spool that could not be read any more when they were to be sent."""
        return 0 if self._delivery is None else self._delivery.damaged_batch_count

    async def __aenter__(self) -> Self:
        """The writer; without a spool, once its stream is open."""
        await self._core.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._core.leave(error)

    async def write(self, columns: Sequence[SampleColumns]) -> None:
        """Take samples of the series that the writer was opened with, waiting while much waits to be kept.

        They wait for others to share a batch with, as long as the writer was told to; with a `linger_seconds` of 0 they
        are kept when this returns. What is too large for one batch is cut into several. Raises InvalidArgumentError for
        columns of unequal length or an unknown series, ResourceExhaustedError (SPOOL_FULL) where a full spool is waited
        for, and the error that ended the writer.
        """
        check_columns(columns, self._series_count)
        await self._core.wait_for_room()
        self._core.keeping.pass_on(self._batcher.add(columns, self._max_batch_bytes))
        if self._linger_seconds == 0:
            self._close_batch()
            await self._core.wait_until_kept(self._core.keeping.taken_count)
        elif self._batcher.sample_count and self._linger_timer is None:
            self._linger_timer = asyncio.get_running_loop().call_later(self._linger_seconds, self._close_batch)

    async def flush(self) -> None:
        """Return once everything written is stored. Raises the error that ended the writer."""
        await self._core.wait_until_delivered()

    @property
    def _max_batch_bytes(self) -> int:
        told_bytes = 0 if self._delivery is None else self._delivery.window.max_batch_bytes
        return told_bytes or SMALLEST_LIMIT_BYTES

    def _close_batch(self) -> None:
        """What was written waits for nothing more."""
        if self._linger_timer is not None:
            self._linger_timer.cancel()
            self._linger_timer = None
        self._core.keeping.pass_on(self._batcher.take(self._max_batch_bytes))

    def _start_delivery(self, keeper: BatchKeeper, changes: Changes, patience: Patience) -> SampleDelivery:
        self._delivery = SampleDelivery(self._connector, keeper, changes, patience, self._role.name)
        return self._delivery
