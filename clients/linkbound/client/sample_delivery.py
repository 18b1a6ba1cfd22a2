"""Brings what a keeper holds to the service over streams that may break: window, resuming, waiting and trying again."""

from __future__ import annotations

import asyncio
import logging

from attrs import evolve

from linkbound.client.batch_keeper import BatchKeeper
from linkbound.client.changes import Changes
from linkbound.client.retrying import Retrying
from linkbound.client.sample_stream import BatchRefusal, SampleConnection, SampleConnector, SampleEvent
from linkbound.client.sample_window import SampleWindow
from linkbound.client.writer_parts import Patience
from linkbound.convert.sample_payload import NO_SAMPLES, opening_from_bytes
from linkbound.domain.errors import (
    AbortedError,
    Error,
    InvalidArgumentError,
    UnavailableError,
)
from linkbound.domain.samples import StreamStart
from linkbound.domain.words import counted

_log = logging.getLogger(__name__)


class SampleDelivery:
    """Delivers until `end` was called and everything is stored; `run` raises what cannot be waited out."""

    def __init__(
        self, connector: SampleConnector, keeper: BatchKeeper, changes: Changes, patience: Patience, name: str
    ) -> None:
        self._connector = connector
        self._keeper = keeper
        self._changes = changes
        self._patience = patience
        self._name = name
        self._is_ending = False
        self._is_finished = False
        self._retrying = Retrying(patience, name)
        self._stall_timer: asyncio.Timeout | None = None
        self.window = SampleWindow()
        self.damaged_batch_count = 0
        """Batches that the keeper could not give back: an empty one took the number of each."""

    @property
    def progress_time(self) -> float:
        """When something was last stored, or had to be."""
        return self._retrying.progress_time

    @property
    def has_opened(self) -> bool:
        """Whether a stream was ever open."""
        return self.window.has_opened

    @property
    def committed_number(self) -> int:
        """Highest number that is known to be stored."""
        return self.window.committed_sequence_number

    @property
    def released_number(self) -> int:
        """Highest number that no damage to the log of the service can take any more."""
        return self.window.checkpointed_sequence_number

    @property
    def is_delivered(self) -> bool:
        """Whether everything that is kept is stored or was refused."""
        if not self._keeper.is_settled or not self.window.has_opened:
            return self._keeper.is_blank
        return self.window.is_delivered(self._keeper.last_number)

    @property
    def undelivered_row_count(self) -> int:
        """Rows that are kept and not known to be stored."""
        return self._keeper.appended_row_count - self.window.delivered_row_count

    def end(self) -> None:
        """Nothing more is appended."""
        if not self._is_ending:
            self._is_ending = True
            self._changes.announce()

    def note_progress(self) -> None:
        """Something was stored, or has to be from now on."""
        self._retrying.note_progress()
        if self._stall_timer is not None:
            self._stall_timer.reschedule(self._stall_time())

    async def run(self) -> None:
        """Stream until there is nothing left to do."""
        while not self._is_done:
            try:
                await self._stream_once()
            except Error as error:
                await self._retrying.wait_after(error)

    @property
    def _is_done(self) -> bool:
        return self._is_ending and self.is_delivered

    def _stall_time(self) -> float | None:
        """When a stream that stores nothing is given up; None while there is nothing to store."""
        if self._patience.timeout_seconds is None or self.is_delivered:
            return None
        return self.progress_time + self._patience.timeout_seconds

    async def _stream_once(self) -> None:
        """Serve one stream until it is done; raise the error that broke it."""
        opening = await self._opening()
        connection = await self._connect(opening)
        try:
            await self._begin(connection.start)
            await self._serve(connection, opening)
        finally:
            if self.is_delivered:
                self.note_progress()
            await connection.close()

    async def _opening(self) -> bytes:
        """What the batches to be sent belong to, as far as that is known before the service answers."""
        if self._keeper.is_settled and self.window.has_opened:
            return await self._keeper.opening_of(self.window.next_number)
        return await self._keeper.opening_of(max(self._keeper.first_kept_number, 1))

    async def _connect(self, opening: bytes) -> SampleConnection:
        request = evolve(
            opening_from_bytes(opening),
            last_acked_sequence_number=self.window.committed_sequence_number,
            first_kept_sequence_number=self._keeper.first_kept_number,
        )
        try:
            async with asyncio.timeout_at(self._retrying.give_up_time):
                return await self._connector.connect(request)
        except TimeoutError:
            timeout_seconds = self._patience.timeout_seconds
            raise UnavailableError(f"the service opened no stream within {timeout_seconds:g} s") from None

    async def _begin(self, start: StreamStart) -> None:
        """A stream is open: find out what is to be sent over it."""
        committed = start.committed_sequence_number
        if not self._keeper.is_settled:
            await self._keeper.settle(committed)
        elif committed > self._keeper.last_number:
            raise _conflict(committed, self._keeper.last_number)
        lost_count = self.window.committed_sequence_number - committed
        if lost_count > 0:
            _log.warning(
                "%s: the service lost %s that it had acknowledged, up to number %d; sending them again",
                self._name,
                counted(lost_count, "batch", "batches"),
                self.window.committed_sequence_number,
            )
        self.window.open(start, await self._keeper.rows_up_to(committed))
        self._is_finished = False
        self._retrying.note_success()
        if not self.is_delivered:
            self.note_progress()
        self._changes.announce()

    async def _serve(self, connection: SampleConnection, opening: bytes) -> None:
        receiving = asyncio.create_task(self._receive(connection))
        sending = asyncio.create_task(self._send(connection, opening))
        try:
            await asyncio.gather(receiving, sending)
        finally:
            receiving.cancel()
            sending.cancel()
            await asyncio.gather(receiving, sending, return_exceptions=True)

    async def _send(self, connection: SampleConnection, opening: bytes) -> None:
        """Send what is kept, until there is nothing left to do or what follows belongs to another opening."""
        while True:
            changed = self._changes.following
            number = self.window.next_number
            if self.window.has_room and number <= self._keeper.last_number:
                batch = await self._keeper.read(number)
                if batch.opening == opening:
                    self.window.note_sent(batch.row_count)
                    await connection.send(number, self._payload(number, batch.payload))
                    continue
                if not self.window.is_anything_under_way:
                    break
            elif self._is_done:
                break
            await changed.wait()
        self._is_finished = True
        await connection.finish()

    def _payload(self, number: int, payload: bytes | None) -> bytes:
        if payload is not None:
            return payload
        self.damaged_batch_count += 1
        _log.error("%s: batch %d was damaged in the spool; an empty one takes its number", self._name, number)
        return NO_SAMPLES

    async def _receive(self, connection: SampleConnection) -> None:
        try:
            async with asyncio.timeout(None) as self._stall_timer:
                self._stall_timer.reschedule(self._stall_time())
                while (event := await connection.receive()) is not None:
                    self._take(event)
        except TimeoutError:
            timeout_seconds = self._patience.timeout_seconds
            raise UnavailableError(f"the service stored nothing within {timeout_seconds:g} s") from None
        finally:
            self._stall_timer = None
        if not self._is_finished:
            raise UnavailableError("the service ended the stream", reason="STREAM_ENDED")

    def _take(self, event: SampleEvent) -> None:
        if isinstance(event, BatchRefusal):
            if not isinstance(event.error, InvalidArgumentError):
                raise event.error
            self.window.refuse(event.sequence_number, event.error.message)
            self.note_progress()
        elif self.window.acknowledge(event):
            self.note_progress()
        self._changes.announce()


def _conflict(committed_number: int, last_number: int) -> AbortedError:
    return AbortedError(
        f"number {committed_number} is stored, but this writer wrote {last_number} at most: another writer uses its id",
        reason="WRITER_CONFLICT",
        metadata={"committedSequenceNumber": str(committed_number)},
    )
