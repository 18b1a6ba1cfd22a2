"""The batches of one writer between being written and being stored. No I/O and no clock, so tests drive it directly."""

from __future__ import annotations

from collections import deque

from linkbound.domain.errors import AbortedError
from linkbound.domain.samples import BatchOutcome, SampleBatch, SampleColumns, StreamLimits


class SampleWindow:
    """Numbers batches, knows which are under way, and forgets them when they are stored."""

    def __init__(self) -> None:
        self._pending: deque[SampleBatch] = deque()
        self._sent_count = 0
        self._last_number: int | None = None
        self._limits = StreamLimits(max_in_flight_batches=0, max_batch_bytes=0)
        self.committed_sequence_number = 0
        self.rejected_sample_count = 0
        self.rejection_message = ""

    @property
    def has_opened(self) -> bool:
        """Whether a stream was ever open, so that numbers are known."""
        return self._last_number is not None

    @property
    def has_room(self) -> bool:
        """Whether another batch may be under way."""
        return len(self._pending) < self._limits.max_in_flight_batches

    @property
    def is_empty(self) -> bool:
        """Whether everything written is stored or was refused."""
        return not self._pending

    @property
    def max_batch_bytes(self) -> int:
        """Size that one batch may have."""
        return self._limits.max_batch_bytes

    @property
    def pending_sample_count(self) -> int:
        """Samples that are not known to be stored."""
        return sum(batch.sample_count for batch in self._pending)

    def open(self, committed_sequence_number: int, limits: StreamLimits) -> None:
        """A stream is open: forget what is stored, and send everything else again.

        Raises AbortedError (WRITER_CONFLICT) if more is stored than this writer ever wrote.
        """
        if self._last_number is None:
            self._last_number = committed_sequence_number
        elif committed_sequence_number > self._last_number:
            raise AbortedError(
                f"number {committed_sequence_number} is stored, but this writer wrote {self._last_number} at most:"
                " another writer uses its id",
                reason="WRITER_CONFLICT",
                metadata={"committedSequenceNumber": str(committed_sequence_number)},
            )
        self._limits = limits
        self._forget_up_to(committed_sequence_number)
        self._sent_count = 0

    def add(self, columns: tuple[SampleColumns, ...]) -> None:
        """Number a batch and queue it."""
        if self._last_number is None:
            raise RuntimeError("no stream was opened yet")
        self._last_number += 1
        self._pending.append(SampleBatch(sequence_number=self._last_number, columns=columns))

    def take_unsent(self) -> SampleBatch | None:
        """The next batch to send over the stream that is open; None if all are under way."""
        if self._sent_count == len(self._pending):
            return None
        self._sent_count += 1
        return self._pending[self._sent_count - 1]

    def acknowledge(self, outcome: BatchOutcome) -> bool:
        """Batches are stored. Returns whether that is news."""
        self.rejected_sample_count += outcome.rejected_sample_count
        self.rejection_message = outcome.rejection_message or self.rejection_message
        return self._forget_up_to(outcome.committed_sequence_number)

    def refuse(self, sequence_number: int, message: str) -> None:
        """One batch was malformed: its number is used up, its samples count as rejected."""
        for position, batch in enumerate(self._pending):
            if batch.sequence_number == sequence_number:
                del self._pending[position]
                self._sent_count -= position < self._sent_count
                self.rejected_sample_count += batch.sample_count
                self.rejection_message = message
                return

    def _forget_up_to(self, sequence_number: int) -> bool:
        is_news = sequence_number > self.committed_sequence_number
        self.committed_sequence_number = max(self.committed_sequence_number, sequence_number)
        while self._pending and self._pending[0].sequence_number <= sequence_number:
            self._pending.popleft()
            self._sent_count = max(0, self._sent_count - 1)
        return is_news
