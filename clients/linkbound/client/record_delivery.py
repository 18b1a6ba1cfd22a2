"""Brings appends of records that a keeper holds to the service, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from linkbound.client.batch_keeper import BatchKeeper, KeptBatch
from linkbound.client.changes import Changes
from linkbound.client.retrying import Retrying
from linkbound.client.spool.frames import FIRST_RECORDS
from linkbound.client.writer_parts import Patience
from linkbound.convert.record_payload import append_of_payload
from linkbound.domain.errors import AbortedError, Error, FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from linkbound.domain.records import LARGEST_SEQUENCE_NUMBER, AppendRequest
from linkbound.domain.words import counted

_log = logging.getLogger(__name__)

Append = Callable[[AppendRequest], Awaitable[int]]
"""Stores records and returns the number below which everything of their writer is stored."""


class RecordDelivery:
    """Delivers until `end` was called and everything is stored; `run` raises what cannot be waited out.

    What the service holds of the writer is asked with an append that is too far ahead, and so refused with the number
    that comes next.
    """

    def __init__(self, append: Append, keeper: BatchKeeper, changes: Changes, patience: Patience, name: str) -> None:
        self._append = append
        self._keeper = keeper
        self._changes = changes
        self._retrying = Retrying(patience, name)
        self._name = name
        self._is_ending = False
        self._next_number = 0
        self._delivered_row_count = 0
        self.committed_number = 0
        """Highest number that is known to be stored."""
        self.damaged_count = 0
        """Appends that the keeper could not give back."""
        self.rejected_row_count = 0
        """Records of appends that the service found malformed."""
        self.rejection_message = ""
        """Why, of the last ones."""

    @property
    def has_opened(self) -> bool:
        """Whether the service answered; nothing is asked before there is something to store."""
        return True

    @property
    def progress_time(self) -> float:
        """When something was last stored, or had to be."""
        return self._retrying.progress_time

    @property
    def is_delivered(self) -> bool:
        """Whether everything that is kept is stored or was refused."""
        if not self._keeper.is_settled:
            return self._keeper.is_blank
        return self._next_number > self._keeper.last_number

    @property
    def undelivered_row_count(self) -> int:
        """Records that are kept and not known to be stored."""
        return self._keeper.appended_row_count - self._delivered_row_count

    @property
    def released_number(self) -> int:
        """Highest number that need not be kept any more: answers to appends tell of no checkpoint."""
        return self.committed_number

    def end(self) -> None:
        """Nothing more is appended."""
        if not self._is_ending:
            self._is_ending = True
            self._changes.announce()

    def note_progress(self) -> None:
        """Something was stored, or has to be from now on."""
        self._retrying.note_progress()

    async def run(self) -> None:
        """Deliver until there is nothing left to do."""
        while True:
            changed = self._changes.following
            if self.is_delivered:
                if self._is_ending:
                    return
                await changed.wait()
                continue
            try:
                is_moving = await (self._deliver_next() if self._keeper.is_settled else self._settle())
            except Error as error:
                await self._retrying.wait_after(error)
            else:
                self._retrying.note_success()
                if not is_moving:
                    await changed.wait()

    async def _settle(self) -> bool:
        """Ask which number comes next. Returns whether there was anything to ask with."""
        batch = await self._keeper.first()
        if batch.payload is None:
            return False
        try:
            await self._append(_request(batch, LARGEST_SEQUENCE_NUMBER))
        except OutOfRangeError as error:
            expected_number = _expected_number(error)
        else:
            raise AbortedError(
                "another writer uses its id: the service holds the last number there is", reason="WRITER_CONFLICT"
            )
        await self._keeper.settle(expected_number - 1)
        await self._go_on_from(expected_number)
        return True

    async def _deliver_next(self) -> bool:
        number = self._next_number
        batch = await self._keeper.read(number)
        if batch.payload is None:
            await self._leave_out_damaged(batch)
            return True
        try:
            committed_number = await self._append(_request(batch, number))
        except OutOfRangeError as error:
            await self._go_back(_expected_number(error))
            return True
        except InvalidArgumentError as error:
            self.rejected_row_count += batch.row_count
            self.rejection_message = error.message
            self._delivered_row_count += batch.row_count
            await self._keeper.close_gap(number)
        else:
            self.committed_number = max(self.committed_number, committed_number)
            self._next_number = number + 1
            self._delivered_row_count += batch.row_count
        self.note_progress()
        self._changes.announce()
        return True

    async def _leave_out_damaged(self, batch: KeptBatch) -> None:
        last_number = self._keeper.last_number
        await self._keeper.close_gap(batch.number)
        if self._keeper.last_number == last_number:
            # It is not of this spool: an earlier one of the writer sent it, and the service lost it.
            raise self._missing_error(batch.number)
        self.damaged_count += 1
        self._delivered_row_count += batch.row_count
        _log.error("%s: append %d was damaged in the spool and is left out", self._name, batch.number)
        self._changes.announce()

    async def _go_back(self, expected_number: int) -> None:
        """The service lost what it had acknowledged: send it again where it is still kept."""
        if expected_number < self._keeper.first_kept_number or expected_number > self._next_number:
            raise self._missing_error(expected_number)
        lost = counted(self._next_number - expected_number, "append")
        _log.warning("%s: the service lost %s that it had acknowledged; sending them again", self._name, lost)
        await self._go_on_from(expected_number)

    def _missing_error(self, number: int) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"the service needs number {number} of {self._name}, and the lowest one that is kept is"
            f" {self._keeper.first_kept_number}: acknowledged data is gone",
            reason="ACKED_DATA_MISSING",
            metadata={"expectedSequenceNumber": str(number)},
        )

    async def _go_on_from(self, number: int) -> None:
        self.committed_number = number - 1
        self._delivered_row_count = await self._keeper.rows_up_to(number - 1)
        self._next_number = number
        self._changes.announce()


def _request(batch: KeptBatch, number: int) -> AppendRequest:
    return append_of_payload(batch.kind - FIRST_RECORDS, number, batch.payload or b"")


def _expected_number(error: OutOfRangeError) -> int:
    """Which number the service waits for. Raises `error` where it does not tell."""
    text = error.metadata.get("expectedSequenceNumber", "")
    if not text.isdecimal():
        raise error
    return int(text)
