"""The task of a writer that keeps batches and lets go of them: all changes of a keeper, one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Sequence

from linkbound.client.batch_keeper import BatchKeeper, KeeperFullError, PackedBatch
from linkbound.client.changes import Changes
from linkbound.client.spool.options import Spool, WhenFull
from linkbound.client.writer_parts import Delivery, WriterRole

_WAITING_BYTES = 4 * 2**20
"""What may wait to be kept before who writes waits too."""

ROOM_POLL_SECONDS = 1.0
"""How often a full spool is tried again: a file system gets room without telling."""

_log = logging.getLogger(__name__)


class Keeping:
    """Batches on their way into a keeper. Without a spool, memory that is full is waited for."""

    def __init__(self, role: WriterRole, spool: Spool | None, changes: Changes) -> None:
        self._role = role
        self._spool = spool
        self._changes = changes
        self._waiting: deque[PackedBatch] = deque()
        self._waiting_bytes = 0
        self._is_full = False
        self._is_stopping = False
        self._dropped_in_a_row = 0
        self.dropped_row_count = 0
        """Rows that were dropped because the spool was full."""
        self.taken_count = 0
        """Batches that were passed on."""

    @property
    def has_room(self) -> bool:
        """Whether more may be passed on."""
        return self._waiting_bytes < _WAITING_BYTES

    @property
    def is_done(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    @property
    def waiting_row_count(self) -> int:
        """Rows that wait to be kept."""
        return sum(batch.row_count for batch in self._waiting)

    def has_kept(self, taken_count: int) -> bool:
        """Whether so many of the batches that were passed on are kept, or cannot be while there is no room."""
        return self._is_full or self.taken_count - len(self._waiting) >= taken_count

    def pass_on(self, batches: Sequence[PackedBatch]) -> None:
        """Have batches kept."""
        if batches:
            self._waiting.extend(batches)
            self.taken_count += len(batches)
            self._waiting_bytes += sum(len(batch.payload) for batch in batches)
            self._changes.announce()

    def stop(self) -> None:
        """Have `run` end once nothing waits that there is room for."""
        self._is_stopping = True
        self._changes.announce()

    async def run(self, keeper: BatchKeeper, delivery: Delivery) -> None:
        """Keep what is passed on and let go of what need not be kept, until `stop`."""
        released_number = 0
        while True:
            changed = self._changes.following
            if delivery.released_number > released_number:
                released_number = delivery.released_number
                await keeper.release(released_number)
            elif self._waiting and not (self._is_stopping and self._is_full):
                await self._keep_first(keeper, delivery, changed)
            elif self._is_stopping:
                return
            else:
                await changed.wait()

    async def _keep_first(self, keeper: BatchKeeper, delivery: Delivery, changed: asyncio.Event) -> None:
        batch = self._waiting[0]
        was_delivered = delivery.is_delivered
        try:
            await keeper.append(batch, delivery.committed_number)
        except KeeperFullError:
            if self._spool is None or self._spool.when_full is WhenFull.WAIT:
                self._note_full()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(ROOM_POLL_SECONDS):
                        await changed.wait()
                return
            self._drop(batch)
        else:
            self._is_full = False
            if was_delivered:
                delivery.note_progress()
            self._tell_dropped()
        self._waiting.popleft()
        self._waiting_bytes -= len(batch.payload)
        self._changes.announce()

    def _note_full(self) -> None:
        if not self._is_full:
            self._is_full = True
            self._changes.announce()
            if self._spool is not None:
                _log.warning("%s: the spool is full; writing waits for room", self._role.name)

    def _drop(self, batch: PackedBatch) -> None:
        if not self._dropped_in_a_row:
            name, noun = self._role.name, self._role.noun
            _log.warning("%s: the spool is full; new %ss are dropped, those in it stay", name, noun)
        self._dropped_in_a_row += batch.row_count
        self.dropped_row_count += batch.row_count

    def _tell_dropped(self) -> None:
        if self._dropped_in_a_row:
            dropped = self._role.were(self._dropped_in_a_row)
            _log.warning("%s: the spool has room again; %s dropped meanwhile", self._role.name, dropped)
            self._dropped_in_a_row = 0
