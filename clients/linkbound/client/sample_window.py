"""The batches of one writer that are under way to the service. No I/O and no clock, so tests drive it directly."""

from __future__ import annotations

from collections import deque

from attrs import frozen

from linkbound.domain.samples import BatchOutcome, StreamLimits, StreamStart


@frozen
class _SentBatch:
    number: int
    row_count: int


class SampleWindow:
    """Knows what of the numbers 1 to `last_number` is stored, under way, or still to be sent."""

    def __init__(self) -> None:
        self._sent: deque[_SentBatch] = deque()
        self._next_number = 1
        self._limits = StreamLimits(max_in_flight_batches=0, max_batch_bytes=0)
        self.has_opened = False
        """Whether a stream was ever open."""
        self.committed_sequence_number = 0
        self.checkpointed_sequence_number = 0
        self.delivered_row_count = 0
        """Rows of the batches that are stored or were refused."""
        self._rejected_before_count = 0
        self.rejected_sample_count = 0
        """Samples since the first stream that the service did not store."""
        self.rejection_message = ""

    @property
    def next_number(self) -> int:
        """The number to be sent next over the stream that is open."""
        return self._next_number

    @property
    def max_batch_bytes(self) -> int:
        """Size that one batch may have; 0 before a stream was open."""
        return self._limits.max_batch_bytes

    @property
    def is_anything_under_way(self) -> bool:
        """Whether answers are due."""
        return bool(self._sent)

    @property
    def has_room(self) -> bool:
        """Whether another batch may be under way."""
        return len(self._sent) < self._limits.max_in_flight_batches

    def is_delivered(self, last_number: int) -> bool:
        """Whether everything up to `last_number` is stored or was refused."""
        return not self._sent and self._next_number > last_number

    def open(self, start: StreamStart, delivered_row_count: int) -> None:
        """A stream is open: what is not stored has to be sent over it, whether it was sent before or not."""
        if not self.has_opened:
            self._rejected_before_count = start.rejected_sample_count
        # An acknowledgement may have been lost with its stream; the service counts what it stored.
        self.rejected_sample_count = start.rejected_sample_count - self._rejected_before_count
        self.has_opened = True
        self._limits = start.limits
        self._sent.clear()
        self._next_number = start.committed_sequence_number + 1
        self.committed_sequence_number = start.committed_sequence_number
        self.checkpointed_sequence_number = start.checkpointed_sequence_number
        self.delivered_row_count = delivered_row_count

    def note_sent(self, row_count: int) -> None:
        """The next number is under way."""
        self._sent.append(_SentBatch(self._next_number, row_count))
        self._next_number += 1

    def acknowledge(self, outcome: BatchOutcome) -> bool:
        """Batches are stored. Returns whether that is news."""
        self.rejected_sample_count += outcome.rejected_sample_count
        self.rejection_message = outcome.rejection_message or self.rejection_message
        self.checkpointed_sequence_number = max(self.checkpointed_sequence_number, outcome.checkpointed_sequence_number)
        is_news = outcome.committed_sequence_number > self.committed_sequence_number
        self.committed_sequence_number = max(self.committed_sequence_number, outcome.committed_sequence_number)
        while self._sent and self._sent[0].number <= self.committed_sequence_number:
            self.delivered_row_count += self._sent.popleft().row_count
        return is_news

    def refuse(self, number: int, message: str) -> None:
        """One batch was malformed: its number is used up, its samples count as rejected."""
        for batch in self._sent:
            if batch.number == number:
                self._sent.remove(batch)
                self.delivered_row_count += batch.row_count
                self.rejected_sample_count += batch.row_count
                self.rejection_message = message
                return
