"""The append protocol as a state machine without I/O: events go in, decisions come out.

A writer of a run numbers its appends 1, 2, 3, ... The machine knows the highest committed number of each writer and
what the current transaction holds on top of it. Whoever drives it carries out the decisions, tells it how the
transaction ended, and after a restart gives it the progress that the ledger holds:

    recover(progress)            what the ledger says of a run; nothing can be decided for a run before
    decide(append)               Store | AcknowledgeAgain | RecallDigest | Refuse
    commit() or roll_back()      what was decided since the last one is durable, or never happened
    forget(run_id)               the run changed by other means; recover it before the next decision

A machine belongs to one thread, the one that commits.
"""

from __future__ import annotations

from enum import Enum

from attrs import define, field, frozen

from linkbound.domain.errors import AbortedError, Error, FailedPreconditionError, OutOfRangeError


class AppendKind(Enum):
    """How a writer appends; a writer has one kind for life."""

    STREAM = "STREAM"
    UNARY = "UNARY"


@frozen(kw_only=True)
class Append:
    """One append as it arrived. `digest` stands for its content (`ingest_service.core.digest`)."""

    run_id: str
    writer_id: str
    sequence_number: int
    kind: AppendKind
    digest: bytes


@frozen
class Store:
    """Store the rows and the number in the current transaction."""


@frozen
class AcknowledgeAgain:
    """The number is stored with this content: acknowledge it and store nothing."""


@frozen
class RecallDigest:
    """The number was committed earlier: read its digest from the ledger and ask `decide_repetition`."""


@frozen
class Refuse:
    """Store nothing and raise `error`."""

    error: Error


Decision = Store | AcknowledgeAgain | RecallDigest | Refuse


@frozen(kw_only=True)
class WriterProgress:
    """What the ledger holds of one writer."""

    writer_id: str
    kind: AppendKind
    committed_sequence_number: int


@frozen(kw_only=True)
class RunProgress:
    """What the store holds of one run, as far as appends depend on it."""

    run_id: str
    sealed: bool
    writers: tuple[WriterProgress, ...] = ()


@define
class _Writer:
    """One writer. `pending_digests` are those of the numbers after `committed`, within the current transaction."""

    committed: int = 0
    committed_kind: AppendKind | None = None
    pending_kind: AppendKind | None = None
    pending_digests: list[bytes] = field(factory=list)

    @property
    def kind(self) -> AppendKind | None:
        return self.committed_kind or self.pending_kind

    @property
    def expected(self) -> int:
        return self.committed + len(self.pending_digests) + 1


@define
class _Run:
    sealed: bool
    writers: dict[str, _Writer]


@define
class AppendMachine:
    """Decides about appends to the runs that it was told of (module docstring)."""

    _runs: dict[str, _Run] = field(init=False, factory=dict)
    _pending_writers: list[_Writer] = field(init=False, factory=list)

    def knows(self, run_id: str) -> bool:
        """Whether `recover` told of the run."""
        return run_id in self._runs

    def recover(self, progress: RunProgress) -> None:
        """Takes over what the store holds of a run."""
        self._runs[progress.run_id] = _Run(
            progress.sealed,
            {w.writer_id: _Writer(w.committed_sequence_number, w.kind) for w in progress.writers},
        )

    def forget(self, run_id: str) -> None:
        """Drops a run that changed by other means than appends. Only between transactions."""
        self._runs.pop(run_id, None)

    def committed_sequence_number(self, run_id: str, writer_id: str) -> int:
        """Highest committed number of a writer; 0 before its first."""
        writer = self._runs[run_id].writers.get(writer_id)
        return writer.committed if writer else 0

    def decide(self, append: Append) -> Decision:
        """Decides about one append. `Store` counts it to the current transaction.

        A repetition is acknowledged in a sealed run too: nothing changes by it, and its writer may have missed the
        first acknowledgement.
        """
        run = self._runs[append.run_id]
        writer = run.writers.get(append.writer_id) or _Writer()
        number = append.sequence_number
        if writer.kind not in (None, append.kind):
            return Refuse(_kind_mismatch(append.writer_id, writer.kind, append.kind))
        if number <= writer.committed:
            return RecallDigest()
        if number < writer.expected:
            return decide_repetition(append, writer.pending_digests[number - writer.committed - 1])
        if run.sealed:
            return Refuse(run_sealed(append.run_id))
        if number > writer.expected:
            return Refuse(_gap(append, writer.expected))
        if not writer.pending_digests:
            run.writers[append.writer_id] = writer
            writer.pending_kind = append.kind
            self._pending_writers.append(writer)
        writer.pending_digests.append(append.digest)
        return Store()

    def open_stream(self, run_id: str, writer_id: str, last_acked_sequence_number: int) -> int:
        """Committed number from which a stream of the writer goes on. Only between transactions.

        Raises FailedPreconditionError: RUN_SEALED, WRITER_KIND_MISMATCH, or ACKED_DATA_MISSING where the writer saw
        an acknowledgement of a number that the store does not hold.
        """
        run = self._runs[run_id]
        writer = run.writers.get(writer_id) or _Writer()
        if run.sealed:
            raise run_sealed(run_id)
        if writer.kind not in (None, AppendKind.STREAM):
            raise _kind_mismatch(writer_id, writer.kind, AppendKind.STREAM)
        if last_acked_sequence_number > writer.committed:
            raise _acked_data_missing(writer_id, last_acked_sequence_number, writer.committed)
        return writer.committed

    def commit(self) -> None:
        """The current transaction is durable: its numbers are committed."""
        for writer in self._pending_writers:
            writer.committed += len(writer.pending_digests)
            writer.committed_kind = writer.kind
            writer.pending_digests.clear()
        self._pending_writers.clear()

    def roll_back(self) -> None:
        """The current transaction never happened."""
        for writer in self._pending_writers:
            writer.pending_kind = None
            writer.pending_digests.clear()
        self._pending_writers.clear()


def decide_repetition(append: Append, stored_digest: bytes) -> AcknowledgeAgain | Refuse:
    """Decides about a number that is stored with the content of `stored_digest`."""
    if append.digest == stored_digest:
        return AcknowledgeAgain()
    return Refuse(
        AbortedError(
            f"number {append.sequence_number} of writer {append.writer_id} is stored with other content;"
            " two processes may be using one writer id",
            reason="WRITER_CONFLICT",
            metadata={"writer": append.writer_id, "sequenceNumber": str(append.sequence_number)},
        )
    )


def run_sealed(run_id: str) -> FailedPreconditionError:
    """The error of an append to a sealed run."""
    return FailedPreconditionError(
        f"run {run_id} is sealed, nothing can be appended", reason="RUN_SEALED", metadata={"run": run_id}
    )


def _kind_mismatch(writer_id: str, kind: AppendKind | None, asked: AppendKind) -> FailedPreconditionError:
    known = kind.value if kind else ""
    return FailedPreconditionError(
        f"writer {writer_id} appends by {known}, not by {asked.value}; use another writer id",
        reason="WRITER_KIND_MISMATCH",
        metadata={"writer": writer_id, "kind": known, "askedKind": asked.value},
    )


def _gap(append: Append, expected: int) -> OutOfRangeError:
    return OutOfRangeError(
        f"number {append.sequence_number} of writer {append.writer_id} is too far ahead, {expected} comes next",
        reason="SEQUENCE_GAP",
        metadata={
            "writer": append.writer_id,
            "sequenceNumber": str(append.sequence_number),
            "expectedSequenceNumber": str(expected),
        },
    )


def _acked_data_missing(writer_id: str, last_acked: int, committed: int) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"number {last_acked} of writer {writer_id} was acknowledged, but only {committed} are stored:"
        " acknowledged data is gone, perhaps with an older copy of the file",
        reason="ACKED_DATA_MISSING",
        metadata={
            "writer": writer_id,
            "lastAckedSequenceNumber": str(last_acked),
            "committedSequenceNumber": str(committed),
        },
    )
