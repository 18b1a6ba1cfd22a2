"""The append machine against a list: reordered, repeated and lost appends, crashes and restarts, several writers.

The model of a writer is the list of contents that it was told are stored. The ledger of the test is what a database
would hold: it changes at commit only, and a restart builds a new machine from nothing else.
"""

from __future__ import annotations

import hypothesis.strategies as st
from attrs import define, field
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ingest_service.core.append import (
    AcknowledgeAgain,
    Append,
    AppendKind,
    AppendMachine,
    RecallDigest,
    Refuse,
    RunProgress,
    Store,
    WriterProgress,
    decide_repetition,
)

RUN = "r"
WRITERS = ("bench", "sampler", "importer")
KINDS = {"bench": AppendKind.UNARY, "sampler": AppendKind.STREAM, "importer": AppendKind.UNARY}

writers = st.sampled_from(WRITERS)
other_contents = st.sampled_from((b"x", b"y"))


def content_of(writer: str, number: int) -> bytes:
    """What the writer sends under a number, every time it sends it."""
    return f"{writer} {number}".encode()


@define
class Ledger:
    """What is durable: contents by writer, at index number - 1."""

    contents: dict[str, list[bytes]] = field(factory=dict)
    sealed: bool = False

    def progress(self) -> RunProgress:
        return RunProgress(
            run_id=RUN,
            sealed=self.sealed,
            writers=tuple(
                WriterProgress(writer_id=writer, kind=KINDS[writer], committed_sequence_number=len(contents))
                for writer, contents in self.contents.items()
                if contents
            ),
        )


class AppendMachineAgainstAList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.pending: dict[str, list[bytes]] = {writer: [] for writer in WRITERS}
        self.machine = self.restarted()

    def restarted(self) -> AppendMachine:
        machine = AppendMachine()
        machine.recover(self.ledger.progress())
        return machine

    def committed(self, writer: str) -> list[bytes]:
        return self.ledger.contents.setdefault(writer, [])

    def stored(self, writer: str) -> list[bytes]:
        """Durable contents and those of the open transaction."""
        return self.committed(writer) + self.pending[writer]

    def decide(self, writer: str, number: int, content: bytes) -> Store | AcknowledgeAgain | Refuse:
        append = Append(run_id=RUN, writer_id=writer, sequence_number=number, kind=KINDS[writer], digest=content)
        decision = self.machine.decide(append)
        if isinstance(decision, RecallDigest):
            assert number <= len(self.committed(writer))
            return decide_repetition(append, self.committed(writer)[number - 1])
        assert number > len(self.committed(writer)) or isinstance(decision, Refuse)
        return decision

    @precondition(lambda self: not self.ledger.sealed)
    @rule(writer=writers)
    def send_the_next(self, writer: str) -> None:
        number = len(self.stored(writer)) + 1
        content = content_of(writer, number)
        assert self.decide(writer, number, content) == Store()
        self.pending[writer].append(content)

    @rule(writer=writers, back=st.integers(0, 6))
    def send_again(self, writer: str, back: int) -> None:
        number = len(self.stored(writer)) - back
        if number >= 1:
            assert self.decide(writer, number, content_of(writer, number)) == AcknowledgeAgain()

    @rule(writer=writers, back=st.integers(0, 6), content=other_contents)
    def send_other_content_under_a_stored_number(self, writer: str, back: int, content: bytes) -> None:
        number = len(self.stored(writer)) - back
        if number >= 1:
            decision = self.decide(writer, number, content)
            assert isinstance(decision, Refuse)
            assert decision.error.reason == "WRITER_CONFLICT"

    @rule(writer=writers, ahead=st.integers(1, 5))
    def send_ahead_of_what_was_lost(self, writer: str, ahead: int) -> None:
        expected = len(self.stored(writer)) + 1
        decision = self.decide(writer, expected + ahead, content_of(writer, expected + ahead))
        assert isinstance(decision, Refuse)
        if self.ledger.sealed:
            assert decision.error.reason == "RUN_SEALED"
        else:
            assert decision.error.reason == "SEQUENCE_GAP"
            assert decision.error.metadata["expectedSequenceNumber"] == str(expected)

    @rule(writer=writers, number=st.integers(1, 12))
    def send_by_the_wrong_kind(self, writer: str, number: int) -> None:
        wrong = AppendKind.STREAM if KINDS[writer] is AppendKind.UNARY else AppendKind.UNARY
        if self.stored(writer):
            append = Append(run_id=RUN, writer_id=writer, sequence_number=number, kind=wrong, digest=b"x")
            decision = self.machine.decide(append)
            assert isinstance(decision, Refuse)
            assert decision.error.reason == "WRITER_KIND_MISMATCH"

    @rule()
    def commit(self) -> None:
        for writer, contents in self.pending.items():
            self.committed(writer).extend(contents)
            contents.clear()
        self.machine.commit()

    @rule()
    def roll_back(self) -> None:
        for contents in self.pending.values():
            contents.clear()
        self.machine.roll_back()

    @rule()
    def crash_and_restart(self) -> None:
        for contents in self.pending.values():
            contents.clear()
        self.machine = self.restarted()

    @precondition(lambda self: not any(self.pending.values()) and not self.ledger.sealed)
    @rule()
    def seal(self) -> None:
        self.ledger.sealed = True
        self.machine.forget(RUN)
        self.machine.recover(self.ledger.progress())

    @precondition(lambda self: self.ledger.sealed)
    @rule(writer=writers)
    def send_to_the_sealed_run(self, writer: str) -> None:
        number = len(self.stored(writer)) + 1
        decision = self.decide(writer, number, content_of(writer, number))
        assert isinstance(decision, Refuse)
        assert decision.error.reason == "RUN_SEALED"

    @invariant()
    def every_number_is_stored_once_and_in_order(self) -> None:
        for writer in WRITERS:
            contents = self.committed(writer)
            assert contents == [content_of(writer, number) for number in range(1, len(contents) + 1)]
            assert self.machine.committed_sequence_number(RUN, writer) == len(contents)


AppendMachineAgainstAList.TestCase.settings = settings(max_examples=200, stateful_step_count=40)
TestAppendMachine = AppendMachineAgainstAList.TestCase
