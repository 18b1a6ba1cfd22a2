"""The append machine against a list, over a network that loses and a disk that forgets.

The model of the store is its log of transactions: a crash loses the open one, damage to the log those behind the last
checkpoint, and a restart builds a new machine from what is left. The writers keep what they were not told to be
checkpointed. Messages of several streams of one writer travel at once, in any order, twice or never.
"""

from __future__ import annotations

from collections.abc import Mapping

import hypothesis.strategies as st
from attrs import define, field, frozen
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ingest_service.core.append import (
    NO_EPOCH,
    AcknowledgeAgain,
    Append,
    AppendKind,
    AppendMachine,
    RecallDigest,
    Refuse,
    RunProgress,
    Store,
    StreamOpening,
    WriterProgress,
    decide_repetition,
)
from linkbound.domain.errors import FailedPreconditionError

RUN = "r"
STREAM_WRITERS = ("sampler-a", "sampler-b")
UNARY_WRITER = "bench"
WRITERS = (*STREAM_WRITERS, UNARY_WRITER)


EVENTS = tuple(
    event
    for event, weight in {
        "all_goes_well": 10,
        "write_and_send": 8,
        "deliver_all_in_order": 6,
        "commit": 8,
        "an_acknowledgement_arrives": 6,
        "checkpoint": 4,
        "open_another_stream": 3,
        "deliver_one_in_any_order": 4,
        "repeat_one": 2,
        "lose_one": 2,
        "send_again_what_is_not_acknowledged": 3,
        "open_a_stream_without_what_the_store_needs_next": 1,
        "send_other_content_under_a_stored_number": 2,
        "send_by_the_wrong_kind": 1,
        "roll_back": 1,
        "forget_and_recover": 2,
        "crash_and_restart": 2,
        "crash_and_lose_the_end_of_the_log": 4,
        "seal": 1,
    }.items()
    for _ in range(weight)
)
"""What happens, as often as it is weighed."""


def kind_of(writer: str) -> AppendKind:
    return AppendKind.UNARY if writer == UNARY_WRITER else AppendKind.STREAM


def content_of(writer: str, number: int) -> bytes:
    """What the writer sends under a number, every time it sends it."""
    return f"{writer} {number}".encode()


@frozen
class Message:
    """An append on its way."""

    writer: str
    number: int
    epoch: int


@define
class Client:
    """What a writer knows. It keeps the numbers from `first_kept` to `written` and can send them again."""

    written: int = 0
    acked: int = 0
    first_kept: int = 1
    epoch: int = NO_EPOCH
    is_open: bool = False


@define
class Log:
    """What is durable: transactions of (writer, number, content). Damage reaches those behind `checkpointed_count`."""

    transactions: list[list[tuple[str, int, bytes]]] = field(factory=list)
    checkpointed_count: int = 0
    sealed: bool = False

    def contents(self, writer: str, transaction_count: int | None = None) -> list[bytes]:
        return [
            content
            for transaction in self.transactions[:transaction_count]
            for by, _, content in transaction
            if by == writer
        ]

    def progress(self) -> RunProgress:
        lengths = {writer: len(self.contents(writer)) for writer in WRITERS}
        return RunProgress(
            run_id=RUN,
            sealed=self.sealed,
            writers=tuple(
                WriterProgress(writer_id=writer, kind=kind_of(writer), committed_sequence_number=length)
                for writer, length in lengths.items()
                if length
            ),
        )


class AppendsOverABadNetworkAndABadDisk(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.log = Log()
        self.pending: list[tuple[str, int, bytes]] = []
        self.in_flight: list[Message] = []
        self.clients = {writer: Client() for writer in WRITERS}
        self.machine = AppendMachine()
        self.restart()

    # What the machine is asked, and what the model says to it.

    def restart(self, *, has_room: bool = True) -> None:
        """A new process over what the disk still holds, which it checkpoints first where there is room."""
        self.pending.clear()
        self.machine = AppendMachine()
        if has_room:
            self.log.checkpointed_count = len(self.log.transactions)
        else:
            self.machine.start_with_log()
        self.machine.recover(self.log.progress())
        for client in self.clients.values():
            client.is_open, client.epoch = False, NO_EPOCH

    def committed(self, writer: str) -> int:
        return len(self.log.contents(writer))

    def stored(self, writer: str) -> int:
        """Numbers that are durable or in the open transaction."""
        return self.committed(writer) + sum(by == writer for by, _, _ in self.pending)

    def decide(self, message: Message, content: bytes) -> Store | AcknowledgeAgain | Refuse:
        append = Append(
            run_id=RUN,
            writer_id=message.writer,
            sequence_number=message.number,
            kind=kind_of(message.writer),
            digest=content,
            epoch=message.epoch,
        )
        decision = self.machine.decide(append)
        if isinstance(decision, RecallDigest):
            return decide_repetition(append, self.log.contents(message.writer)[message.number - 1])
        return decision

    def expected_reason(self, message: Message) -> str:
        """Why the machine has to refuse what the writer really sent; empty where it must not."""
        if message.epoch != self.clients[message.writer].epoch:
            return "WRITER_FENCED"
        stored = self.stored(message.writer)
        if message.number <= stored:
            return ""
        if self.log.sealed:
            return "RUN_SEALED"
        return "SEQUENCE_GAP" if message.number > stored + 1 else ""

    def deliver(self, message: Message) -> None:
        content = content_of(message.writer, message.number)
        expected = self.expected_reason(message)
        is_new = message.number > self.stored(message.writer)
        decision = self.decide(message, content)
        if expected:
            assert isinstance(decision, Refuse)
            assert decision.error.reason == expected
            if expected == "SEQUENCE_GAP":
                self.a_gap_is_told(message.writer, decision.error.metadata)
        else:
            assert decision == (Store() if is_new else AcknowledgeAgain())
        if isinstance(decision, Store):
            self.pending.append((message.writer, message.number, content))

    def a_gap_is_told(self, writer: str, metadata: Mapping[str, str]) -> None:
        """The answer to a number that is too far ahead. A writer without a stream learns of a loss by it alone."""
        expected = int(metadata["expectedSequenceNumber"])
        checkpointed = int(metadata["checkpointedSequenceNumber"])
        assert expected == self.stored(writer) + 1
        assert checkpointed <= len(self.log.contents(writer, self.log.checkpointed_count))
        client = self.clients[writer]
        if writer == UNARY_WRITER:
            assert client.first_kept <= expected
            client.acked = min(client.acked, expected - 1)
            client.first_kept = max(client.first_kept, checkpointed + 1)

    # What the writers do.

    def write_and_send(self, writer: str, number: int) -> None:
        """`number` more, over a stream that is opened where there is none."""
        client = self.clients[writer]
        if not client.is_open:
            self.open_another_stream(writer, number)
        for _ in range(number):
            client.written += 1
            if client.is_open or writer == UNARY_WRITER:
                self.in_flight.append(Message(writer, client.written, client.epoch))

    def all_goes_well(self, writer: str, number: int) -> None:
        """What is written arrives, is stored and acknowledged; alone, these seldom come in a row."""
        self.write_and_send(writer, number)
        self.deliver_all_in_order(writer, number)
        self.commit(writer, number)
        self.an_acknowledgement_arrives(writer, number)

    def send_again_what_is_not_acknowledged(self, writer: str, _number: int) -> None:
        client = self.clients[writer]
        if client.is_open or writer == UNARY_WRITER:
            # Without a stream the last one that is kept goes along: who has nothing else to send asks by it.
            first = client.acked + 1
            if writer == UNARY_WRITER and client.first_kept <= client.acked:
                first = client.acked
            numbers = range(first, client.written + 1)
            self.in_flight += [Message(writer, number, client.epoch) for number in numbers]

    def open_another_stream(self, writer: str, _number: int) -> None:
        if self.pending or writer == UNARY_WRITER:
            return
        client = self.clients[writer]
        opening = StreamOpening(
            run_id=RUN,
            writer_id=writer,
            last_acked_sequence_number=client.acked,
            first_kept_sequence_number=client.first_kept,
        )
        if self.log.sealed:
            try:
                self.machine.open_stream(opening)
            except FailedPreconditionError as error:
                assert error.reason == "RUN_SEALED"
                return
            raise AssertionError("a stream of a sealed run was opened")
        position = self.machine.open_stream(opening)
        assert position.committed_sequence_number == self.committed(writer)
        assert position.lost_append_count == max(0, client.acked - self.committed(writer))
        assert position.epoch > client.epoch
        # What the store lost is sent again, and the writer still has it.
        client.epoch, client.is_open, client.acked = position.epoch, True, position.committed_sequence_number
        client.first_kept = max(client.first_kept, position.checkpointed_sequence_number + 1)
        assert client.first_kept <= client.acked + 1

    def open_a_stream_without_what_the_store_needs_next(self, writer: str, number: int) -> None:
        if self.pending or self.log.sealed or writer == UNARY_WRITER:
            return
        first_kept = self.committed(writer) + 2 + number
        opening = StreamOpening(run_id=RUN, writer_id=writer, first_kept_sequence_number=first_kept)
        try:
            self.machine.open_stream(opening)
        except FailedPreconditionError as error:
            assert error.reason == "ACKED_DATA_MISSING"
        else:
            raise AssertionError("a hole was accepted")

    def send_other_content_under_a_stored_number(self, writer: str, back: int) -> None:
        number = self.stored(writer) - back
        if number >= 1:
            decision = self.decide(Message(writer, number, self.clients[writer].epoch), b"x")
            assert isinstance(decision, Refuse)
            assert decision.error.reason == "WRITER_CONFLICT"

    def send_by_the_wrong_kind(self, writer: str, number: int) -> None:
        if self.stored(writer):
            wrong = AppendKind.STREAM if writer == UNARY_WRITER else AppendKind.UNARY
            append = Append(run_id=RUN, writer_id=writer, sequence_number=number + 1, kind=wrong, digest=b"x")
            decision = self.machine.decide(append)
            assert isinstance(decision, Refuse)
            assert decision.error.reason == "WRITER_KIND_MISMATCH"

    # What the network does.

    def deliver_one_in_any_order(self, _writer: str, position: int) -> None:
        if self.in_flight:
            self.deliver(self.in_flight.pop(position % len(self.in_flight)))

    def deliver_all_in_order(self, _writer: str, _number: int) -> None:
        for message in self.in_flight:
            self.deliver(message)
        self.in_flight.clear()

    def repeat_one(self, _writer: str, position: int) -> None:
        if self.in_flight:
            self.in_flight.append(self.in_flight[position % len(self.in_flight)])

    def lose_one(self, _writer: str, position: int) -> None:
        if self.in_flight:
            self.in_flight.pop(position % len(self.in_flight))

    def an_acknowledgement_arrives(self, writer: str, _number: int) -> None:
        """Whenever one arrives, it tells what is committed and checkpointed; those that never do are lost."""
        client = self.clients[writer]
        if client.is_open or writer == UNARY_WRITER:
            client.acked = max(client.acked, self.machine.committed_sequence_number(RUN, writer))
            checkpointed = self.machine.checkpointed_sequence_number(RUN, writer)
            client.first_kept = max(client.first_kept, checkpointed + 1)

    # What the store does.

    def commit(self, _writer: str, _number: int) -> None:
        if self.pending:
            self.log.transactions.append(list(self.pending))
        self.pending.clear()
        self.machine.commit()

    def roll_back(self, _writer: str, _number: int) -> None:
        self.pending.clear()
        self.machine.roll_back()

    def checkpoint(self, _writer: str, _number: int) -> None:
        if self.pending:
            return
        before = {writer: len(self.log.contents(writer, self.log.checkpointed_count)) for writer in WRITERS}
        self.log.checkpointed_count = len(self.log.transactions)
        moved = {change.writer_id: change.sequence_number for change in self.machine.checkpoint()}
        # After a start with a log even those are named that a checkpoint held before: who starts cannot tell.
        assert {w: self.committed(w) for w in WRITERS if self.committed(w) > before[w]}.items() <= moved.items()
        assert all(number == self.committed(writer) for writer, number in moved.items())
        assert not self.machine.has_uncheckpointed

    def forget_and_recover(self, _writer: str, _number: int) -> None:
        if not self.pending:
            self.machine.forget(RUN)
            self.machine.recover(self.log.progress())

    def seal(self, writer: str, number: int) -> None:
        """Late, since little happens in a sealed run."""
        if not self.pending and len(self.log.transactions) > number:
            self.log.sealed = True
            self.forget_and_recover(writer, number)

    # What breaks.

    def crash_and_restart(self, _writer: str, number: int) -> None:
        self.restart(has_room=number % 2 == 0)

    def crash_and_lose_the_end_of_the_log(self, _writer: str, lost_count: int) -> None:
        if self.log.sealed:
            return
        kept = max(self.log.checkpointed_count, len(self.log.transactions) - lost_count)
        del self.log.transactions[kept:]
        self.restart(has_room=lost_count % 2 == 0)

    # One rule for all of it: of many, Hypothesis leaves most out of each run, and then nothing is ever stored.
    @rule(event=st.sampled_from(EVENTS), writer=st.sampled_from(WRITERS), number=st.integers(0, 6))
    def happens(self, event: str, writer: str, number: int) -> None:
        getattr(self, event)(writer, number)

    @invariant()
    def every_number_is_stored_once_and_in_order(self) -> None:
        for writer in WRITERS:
            contents = self.log.contents(writer)
            assert contents == [content_of(writer, number) for number in range(1, len(contents) + 1)]
            assert self.machine.committed_sequence_number(RUN, writer) == len(contents)

    @invariant()
    def what_is_checkpointed_is_out_of_reach_of_damage(self) -> None:
        for writer in WRITERS:
            safe = len(self.log.contents(writer, self.log.checkpointed_count))
            assert self.machine.checkpointed_sequence_number(RUN, writer) <= safe

    @invariant()
    def whatever_the_store_lacks_its_writer_still_has(self) -> None:
        for writer, client in self.clients.items():
            assert client.first_kept <= len(self.log.contents(writer, self.log.checkpointed_count)) + 1

    def teardown(self) -> None:
        """Once the network and the disk behave, everything that was ever written is stored."""
        self.roll_back("", 0)
        if self.log.sealed:
            return
        for writer in STREAM_WRITERS:
            self.open_another_stream(writer, 0)
        self.in_flight.clear()
        # The first time over a writer without a stream may hear of a gap.
        for _ in range(2):
            for writer in WRITERS:
                self.send_again_what_is_not_acknowledged(writer, 0)
            self.deliver_all_in_order("", 0)
            self.commit("", 0)
        for writer, client in self.clients.items():
            assert self.committed(writer) == client.written
        self.every_number_is_stored_once_and_in_order()


AppendsOverABadNetworkAndABadDisk.TestCase.settings = settings(max_examples=300, stateful_step_count=50)
TestAppendMachine = AppendsOverABadNetworkAndABadDisk.TestCase
