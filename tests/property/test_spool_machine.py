"""A spool and the service that empties it, through kills, losses of power and lost logs, held against a list.

Every batch has content of its own. Whatever happens, no number stands for two contents, the service gets batches in the
order in which they were written, and each one that the spool still had when it was lost is stored once.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from linkbound.client.spool.directory import SpoolDirectory
from linkbound.client.spool.frames import SAMPLES, frames_in
from linkbound.client.spool.options import SMALLEST_LIMIT_BYTES, Spool, writer_directory
from linkbound.client.spool.segment import segment_paths

LIMIT_BYTES = SMALLEST_LIMIT_BYTES
PAYLOAD_BYTES = 3000


class SpoolMachine(RuleBasedStateMachine):
    """`stored` is what the service holds, by number; `kept` what the spool has to hold, by index."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.copies = 0
        self.written = 0
        self.kept: dict[int, bytes] = {}
        self.stored: dict[int, bytes] = {}
        self.checkpointed = 0
        self.is_open = False

    @initialize()
    def begin(self) -> None:
        self.open()

    @property
    def committed(self) -> int:
        return len(self.stored)

    def open(self) -> None:
        self.spool = SpoolDirectory(Spool(self.place, limit_bytes=LIMIT_BYTES), "r", "w", b"opening")
        self.is_open = False
        # What was there is on the disk before a process writes anything.
        self.durable_bytes = {path.name: path.stat().st_size for path in self.paths}

    @property
    def paths(self) -> list[Path]:
        return segment_paths(writer_directory(self.place, "r", "w"))

    @rule()
    def write(self) -> None:
        self.written += 1
        content = f"batch {self.written} ".encode() * (PAYLOAD_BYTES // 10)
        index = self.spool.next_index
        delivered = self.spool.numbering.last_index_up_to(self.committed) if self.is_open else 0
        self.spool.append(SAMPLES, 1, content, delivered)
        self.kept[index] = content
        # What makes way is delivered.
        for gone in [kept for kept in self.kept if kept < self.spool.first_index]:
            assert gone <= delivered
            del self.kept[gone]

    @rule(count=st.integers(2, 40))
    def write_many(self, count: int) -> None:
        for _ in range(count):
            if self.spool.size_bytes < LIMIT_BYTES * 3 // 4:
                self.write()

    @precondition(lambda self: not self.is_open)
    @rule()
    def connect(self) -> None:
        self.spool.settle(self.committed)
        self.is_open = True

    @precondition(lambda self: self.is_open)
    @rule(count=st.integers(1, 30))
    def deliver(self, count: int) -> None:
        numbering = self.spool.numbering
        for _ in range(count):
            number = self.committed + 1
            if number >= numbering.number_of(self.spool.next_index):
                return
            index = numbering.index_of(number)
            batch = self.spool.read(index) if index is not None else None
            # What the log lost and an earlier loss of power took as well is gone; an empty batch takes its number.
            self.stored[number] = b"" if batch is None else batch.payload
            if batch is not None:
                assert index is not None
                assert batch.payload == self.kept[index]

    @rule(share=st.floats(0, 1))
    def checkpoint(self, share: float) -> None:
        self.checkpointed += round((self.committed - self.checkpointed) * share)
        if self.is_open:
            self.spool.release(self.spool.numbering.last_index_up_to(self.checkpointed))
            for gone in [kept for kept in self.kept if kept < self.spool.first_index]:
                assert self.spool.numbering.number_of(gone) <= self.checkpointed
                del self.kept[gone]

    @rule()
    def end_and_start(self) -> None:
        self.spool.close()
        self.open()

    @rule()
    def kill_and_start(self) -> None:
        self.move_to_copy()
        self.open()

    @rule(lost_bytes=st.integers(0, 20_000))
    def lose_power_and_start(self, lost_bytes: int) -> None:
        self.move_to_copy()
        if self.paths:
            path = self.paths[-1]
            content = path.read_bytes()
            # The first frame was on the disk before the file got its name.
            durable_bytes = self.durable_bytes.get(path.name, next(frames_in(content)).end_offset)
            left = content[: max(len(content) - lost_bytes, durable_bytes)]
            path.write_bytes(left)
            for frame in frames_in(content):
                if frame.end_offset > len(left):
                    self.kept.pop(frame.index, None)
        self.open()

    @rule(share=st.floats(0, 1))
    def lose_log(self, share: float) -> None:
        """The service loses what no checkpoint holds, and its writer opens a new stream."""
        committed = self.checkpointed + round((self.committed - self.checkpointed) * share)
        if self.is_open and self.spool.numbering.number_of(self.spool.first_index) > committed + 1:
            # It would be told that acknowledged data is missing.
            return
        self.stored = {number: content for number, content in self.stored.items() if number <= committed}

    def move_to_copy(self) -> None:
        """What the end of a process leaves: files as they are, and nobody who holds them."""
        self.copies += 1
        copy = self.place.with_name(f"{self.place.name}-{self.copies}")
        shutil.copytree(self.place, copy)
        self.spool.close()
        shutil.rmtree(self.place)
        self.place = copy

    @invariant()
    def the_service_holds_no_batch_twice_and_all_in_order(self) -> None:
        contents = [self.stored[number] for number in sorted(self.stored) if self.stored[number]]
        order = [int(content.split()[1]) for content in contents]
        assert order == sorted(set(order))

    @invariant()
    def the_spool_gives_back_what_it_took(self) -> None:
        assert all(
            batch is not None and batch.payload == content
            for index, content in list(self.kept.items())[-3:]
            for batch in [self.spool.read(index)]
        )

    def teardown(self) -> None:
        self.spool.close()
        shutil.rmtree(self.place)


SpoolMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestSpool = SpoolMachine.TestCase
