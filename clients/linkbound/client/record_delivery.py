"""Brings appends of records that a keeper holds to the service, one after the other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from linkbound.client.batch_keeper import BatchKeeper, KeptBatch
from linkbound.client.changes import Changes
from linkbound.client.retrying import Retrying
from linkbound.client.spool.frames import FIRST_RECORDS
from linkbound.client.writer_parts import Patience
from linkbound.convert.record_payload import append_of_payload
from linkbound.domain.errors import AbortedError, Error, FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from linkbound.domain.records import LARGEST_SEQUENCE_NUMBER, AppendOutcome, AppendRequest
from linkbound.domain.words import counted

_log = logging.getLogger(__name__)

CHECKPOINT_POLL_SECONDS = 2.0
"""How often the service is asked for a checkpoint while nothing else is sent. It makes one after a second without work,
unless it is set to another time."""

Append = Callable[[AppendRequest], Awaitable[AppendOutcome]]
"""Stores records and says up to which numbers those of their writer are stored."""


class RecordDelivery:
    """Delivers until `end` was called and everything is stored; `run` raises what cannot be waited out.

    What the service holds of the writer is asked with an append that is too far ahead, and so refused with the number
    that comes next. An append stays in the keeper until a checkpoint holds it: a service that lost the end of its log
    refuses the next one for the gap, and it is sent again from there. While nothing is sent, the last one is sent again
    now and then: the answer tells of checkpoints and of losses alike, and nothing is stored twice.
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
        self.released_number = 0
        """Highest number that no damage to the log of the service can take any more."""
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
                await self._rest(changed)
                continue
            try:
                is_moving = await (self._deliver_next() if self._keeper.is_settled else self._settle())
            except Error as error:
                await self._retrying.wait_after(error)
            else:
                self._retrying.note_success()
                if not is_moving:
                    await changed.wait()

    async def _rest(self, changed: asyncio.Event) -> None:
        """Wait for something to do; meanwhile hear what becomes of what is stored, once."""
        is_all_safe = self.released_number >= self.committed_number
        if is_all_safe or self._keeper.first_kept_number > self.committed_number:
            await changed.wait()
            return
        try:
            async with asyncio.timeout(CHECKPOINT_POLL_SECONDS):
                await changed.wait()
        except TimeoutError:
            await self._ask_again(changed)

    async def _ask_again(self, changed: asyncio.Event) -> None:
        """Send what was stored last once more, unless there is something to do before the answer.

        A service that does not answer is no trouble: nothing is to be stored.
        """
        batch = await self._keeper.read(self.committed_number)
        if batch.payload is None:
            return
        asking = asyncio.ensure_future(self._append(_request(batch, batch.number)))
        change = asyncio.ensure_future(changed.wait())
        try:
            await asyncio.wait({asking, change}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return
            outcome = asking.result()
        except OutOfRangeError as error:
            await self._go_back(error)
        except Error as error:
            _log.debug("%s: the service was asked for its checkpoint: %s", self._name, error.message)
        else:
            self._note(outcome)
        finally:
            asking.cancel()
            change.cancel()

    def _note(self, outcome: AppendOutcome) -> None:
        self.committed_number = max(self.committed_number, outcome.committed_sequence_number)
        self._note_released(outcome.checkpointed_sequence_number)

    def _note_released(self, number: int) -> None:
        if number > self.released_number:
            self.released_number = number
            self._changes.announce()

    async def _settle(self) -> bool:
        """Ask which number comes next. Returns whether there was anything to ask with."""
        batch = await self._keeper.first()
        if batch.payload is None:
            return False
        try:
            await self._append(_request(batch, LARGEST_SEQUENCE_NUMBER))
        except OutOfRangeError as error:
            expected_number, checkpointed_number = _expected_number(error), _checkpointed_number(error)
        else:
            raise AbortedError(
                "another writer uses its id: the service holds the last number there is", reason="WRITER_CONFLICT"
            )
        await self._keeper.settle(expected_number - 1)
        await self._go_on_from(expected_number)
        self._note_released(checkpointed_number)
        return True

    async def _deliver_next(self) -> bool:
        number = self._next_number
        batch = await self._keeper.read(number)
        if batch.payload is None:
            await self._leave_out_damaged(batch)
            return True
        try:
            outcome = await self._append(_request(batch, number))
        except OutOfRangeError as error:
            await self._go_back(error)
            return True
        except InvalidArgumentError as error:
            self.rejected_row_count += batch.row_count
            self.rejection_message = error.message
            self._delivered_row_count += batch.row_count
            await self._keeper.close_gap(number)
        else:
            self._next_number = number + 1
            self._delivered_row_count += batch.row_count
            self._note(outcome)
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

    async def _go_back(self, gap: OutOfRangeError) -> None:
        """The service lost what it had acknowledged: send it again where it is still kept."""
        expected_number = _expected_number(gap)
        if expected_number < self._keeper.first_kept_number or expected_number > self._next_number:
            raise self._missing_error(expected_number)
        lost = counted(self._next_number - expected_number, "append")
        _log.warning("%s: the service lost %s that it had acknowledged; sending them again", self._name, lost)
        await self._go_on_from(expected_number)
        self._note_released(_checkpointed_number(gap))

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


def _checkpointed_number(error: OutOfRangeError) -> int:
    """Up to which number a checkpoint holds everything; 0 where the service does not tell."""
    text = error.metadata.get("checkpointedSequenceNumber", "")
    return int(text) if text.isdecimal() else 0
