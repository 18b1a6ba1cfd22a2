"""Where batches wait, in memory or on disk, until nothing can take them from the service any more."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from attrs import field, frozen

from linkbound.client.spool.numbering import Numbering

MEMORY_LIMIT_BYTES = 64 * 2**20
"""What a writer without a spool keeps."""

BATCH_OVERHEAD_BYTES = 256
"""What a batch takes in memory besides its payload, rounded up."""


class KeeperFullError(Exception):
    """There is no room for the batch."""


@frozen(kw_only=True)
class PackedBatch:
    """A batch that has no number yet, as it travels and rests. `kind` is one of `linkbound.client.spool.frames`."""

    kind: int
    row_count: int
    payload: bytes = field(repr=False)


@frozen(kw_only=True)
class KeptBatch:
    """A batch that is kept under a number. `payload` is None where damage took it, and perhaps `row_count` with it.

    `opening` is what it belongs to, as bytes: a spool may hold batches of earlier processes, with other series.
    """

    number: int
    kind: int = 0
    row_count: int = 0
    payload: bytes | None = field(default=None, repr=False)
    opening: bytes = field(repr=False)


class BatchKeeper(Protocol):
    """Keeps batches and gives them their numbers, once the service told which ones are taken (`Numbering`).

    Numbers are known when `is_settled`. Methods besides `append` may run at the same time as others.
    """

    @property
    def is_settled(self) -> bool:
        """Whether batches have their numbers."""
        ...

    @property
    def is_blank(self) -> bool:
        """Whether no batch is kept."""
        ...

    @property
    def last_number(self) -> int:
        """Number of the batch that was appended last. Once settled."""
        ...

    @property
    def first_kept_number(self) -> int:
        """Lowest number that can still be sent; 0 where the keeper does not know of any."""
        ...

    @property
    def appended_row_count(self) -> int:
        """Rows that were ever appended, those that were found included."""
        ...

    async def settle(self, committed_number: int) -> int:
        """The service holds this number of the writer: number what is kept. Returns how many numbers were left out."""
        ...

    async def append(self, batch: PackedBatch, delivered_number: int) -> None:
        """Keep a batch, in the place of ones up to `delivered_number` if need be. Raises KeeperFullError."""
        ...

    async def read(self, number: int) -> KeptBatch:
        """The batch to send under `number`."""
        ...

    async def first(self) -> KeptBatch:
        """The first batch that can be given back, whatever its number; one without payload where there is none."""
        ...

    async def close_gap(self, number: int) -> None:
        """Leave out the batch with this number: the next one takes it. None from `number` on may ever be stored."""
        ...

    async def opening_of(self, number: int) -> bytes:
        """What the batch belongs to; also where there is no such batch yet."""
        ...

    async def rows_up_to(self, number: int) -> int:
        """How many of `appended_row_count` are those of batches up to `number`."""
        ...

    async def release(self, number: int) -> None:
        """Nothing can take batches up to `number` from the service any more."""
        ...

    async def close(self, delivered_number: int) -> None:
        """Let go of everything. Up to `delivered_number` the service holds it."""
        ...


class MemoryKeeper:
    """Keeps batches in memory."""

    def __init__(self, opening: bytes, limit_bytes: int = MEMORY_LIMIT_BYTES) -> None:
        self._opening = opening
        self._limit_bytes = limit_bytes
        self._batches: deque[PackedBatch] = deque()
        self._numbering = Numbering()
        self._first_index = 1
        self._size_bytes = 0
        self._released_row_count = 0
        self.appended_row_count = 0
        """Rows that were ever appended."""

    @property
    def is_settled(self) -> bool:
        """Whether batches have their numbers."""
        return self._numbering.is_settled

    @property
    def is_blank(self) -> bool:
        """Whether no batch is kept."""
        return not self._batches

    @property
    def last_number(self) -> int:
        """Number of the batch that was appended last."""
        return self._numbering.number_of(self._first_index + len(self._batches)) - 1

    @property
    def first_kept_number(self) -> int:
        """Lowest number that can still be sent; the next one where none is kept, and 0 before numbers are known."""
        return self._numbering.number_of(self._first_index) if self.is_settled else 0

    async def settle(self, committed_number: int) -> int:
        """Number what is kept. That others wrote under this name before is no news: there is no memory of them."""
        self._numbering.settle(committed_number)
        return 0

    async def append(self, batch: PackedBatch, delivered_number: int) -> None:
        """Keep a batch."""
        size_bytes = _size_bytes(batch)
        while (
            self._size_bytes + size_bytes > self._limit_bytes
            and self._batches
            and self._numbering.is_settled
            and self._numbering.number_of(self._first_index) <= delivered_number
        ):
            self._forget_first()
        # One that is larger than the limit by itself is kept alone.
        if self._batches and self._size_bytes + size_bytes > self._limit_bytes:
            raise KeeperFullError
        self._batches.append(batch)
        self._size_bytes += size_bytes
        self.appended_row_count += batch.row_count

    async def read(self, number: int) -> KeptBatch:
        """The batch to send under `number`."""
        index = self._numbering.index_of(number)
        if index is None or not 0 <= index - self._first_index < len(self._batches):
            return KeptBatch(number=number, opening=self._opening)
        batch = self._batches[index - self._first_index]
        return KeptBatch(
            number=number, kind=batch.kind, row_count=batch.row_count, payload=batch.payload, opening=self._opening
        )

    async def first(self) -> KeptBatch:
        """The first batch, whatever its number."""
        if not self._batches:
            return KeptBatch(number=0, opening=self._opening)
        batch = self._batches[0]
        return KeptBatch(
            number=0, kind=batch.kind, row_count=batch.row_count, payload=batch.payload, opening=self._opening
        )

    async def close_gap(self, number: int) -> None:
        """Leave out the batch with this number."""
        index = self._numbering.index_of(number)
        if index is not None:
            self._numbering.close_gap(index)

    async def opening_of(self, number: int) -> bytes:
        """What every batch belongs to."""
        del number
        return self._opening

    async def rows_up_to(self, number: int) -> int:
        """How many rows those of batches up to `number` are."""
        count = max(0, self._numbering.last_index_up_to(number) + 1 - self._first_index)
        return self._released_row_count + sum(
            batch.row_count for position, batch in enumerate(self._batches) if position < count
        )

    async def release(self, number: int) -> None:
        """Forget batches up to `number`."""
        index = self._numbering.last_index_up_to(number)
        while self._batches and self._first_index <= index:
            self._forget_first()

    async def close(self, delivered_number: int) -> None:
        """Nothing: what is kept is still counted."""

    def _forget_first(self) -> None:
        batch = self._batches.popleft()
        self._first_index += 1
        self._size_bytes -= _size_bytes(batch)
        self._released_row_count += batch.row_count


def _size_bytes(batch: PackedBatch) -> int:
    return BATCH_OVERHEAD_BYTES + len(batch.payload)
