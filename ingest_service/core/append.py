"""The append protocol as a state machine without I/O: events go in, decisions come out.

A writer of a run numbers its appends 1, 2, 3, ... The machine knows the highest committed number of each writer and
what the current transaction holds on top of it. Whoever drives it carries out the decisions, tells it how the
transaction ended, and after a restart gives it the progress that the ledger holds:

    start_with_log()             what the ledger says may be of the log only; else all of it is checkpointed
    recover(progress)            what the ledger says of a run; nothing can be decided for a run before
    open_stream(opening)         a stream of the writer begins, and the one before it is fenced
    decide(append)               Store | AcknowledgeAgain | RecallDigest | Refuse
    commit() or roll_back()      what was decided since the last one is durable, or never happened
    checkpoint()                 what is committed is in the file itself: no damage to the log can take it any more
    forget(run_id)               the run changed by other means; recover it before the next decision
    remove(run_id)               the run is gone, and with it what is known of its streams

A writer keeps what is not checkpointed. By streams it says at the opening what it still has; by other appends it hears
of a loss by the gap that its next number leaves. So the end of a log that was lost, whatever had been acknowledged of
it, is sent again.

A machine belongs to one thread, the one that commits.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum

from attrs import define, field, frozen

from ingest_service.core.append_errors import (
    acked_data_missing,
    kind_mismatch,
    run_sealed,
    sequence_gap,
    writer_conflict,
    writer_fenced,
)
from linkbound.domain.errors import Error

NO_EPOCH = 0
"""Of appends that come without a stream."""


class AppendKind(Enum):
    """How a writer appends; a writer has one kind for life."""

    STREAM = "STREAM"
    UNARY = "UNARY"


@frozen(kw_only=True)
class Append:
    """One append as it arrived. `digest` stands for its content (`ingest_service.core.digest`).

    `epoch` is that of the stream that it came by.
    """

    run_id: str
    writer_id: str
    sequence_number: int
    kind: AppendKind
    digest: bytes
    epoch: int = NO_EPOCH


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


@frozen(kw_only=True)
class StreamOpening:
    """What a writer says of itself when it opens a stream; the numbers are those of `OpenStreamRequest`."""

    run_id: str
    writer_id: str
    last_acked_sequence_number: int = 0
    first_kept_sequence_number: int = 0


@frozen(kw_only=True)
class StreamPosition:
    """Where a stream goes on. `lost_append_count`: acknowledged ones that the store lost and the writer still has.

    `rejected_row_count`: rows of all appends up to the committed one that were not stored, as the ledger has them.
    """

    epoch: int
    committed_sequence_number: int
    checkpointed_sequence_number: int
    lost_append_count: int = 0
    rejected_row_count: int = 0


@frozen(kw_only=True)
class Checkpointed:
    """Everything of a writer up to this number is out of reach of damage to the log."""

    run_id: str
    writer_id: str
    sequence_number: int


@define
class _Standing:
    """What is known of a writer besides its progress, and outlives `forget`."""

    epoch: int = NO_EPOCH
    checkpointed: int | None = None


@define
class _Writer:
    """One writer. `pending_digests` are those of the numbers after `committed`, within the current transaction."""

    run_id: str
    writer_id: str
    standing: _Standing
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

    @property
    def checkpointed(self) -> int:
        return self.standing.checkpointed or 0


@define
class _Run:
    sealed: bool
    writers: dict[str, _Writer]


_Standings = defaultdict[str, dict[str, _Standing]]


def _no_standings() -> _Standings:
    return defaultdict(dict)


@define
class AppendMachine:
    """Decides about appends to the runs that it was told of (module docstring)."""

    _runs: dict[str, _Run] = field(init=False, factory=dict)
    _standings: _Standings = field(init=False, factory=_no_standings)
    _pending_writers: list[_Writer] = field(init=False, factory=list)
    _uncheckpointed_writers: dict[tuple[str, str], _Writer] = field(init=False, factory=dict)
    _last_epoch: int = field(init=False, default=NO_EPOCH)
    _is_start_checkpointed: bool = field(init=False, default=True)

    def start_with_log(self) -> None:
        """The store was opened with commits that no checkpoint holds. Before anything else."""
        self._is_start_checkpointed = False

    @property
    def has_uncheckpointed(self) -> bool:
        """Whether anything is committed that no checkpoint holds."""
        return bool(self._uncheckpointed_writers) or not self._is_start_checkpointed

    def knows(self, run_id: str) -> bool:
        """Whether `recover` told of the run."""
        return run_id in self._runs

    def recover(self, progress: RunProgress) -> None:
        """Takes over what the store holds of a run. What it held when it was opened is checkpointed, or may not be."""
        run = self._runs[progress.run_id] = _Run(progress.sealed, {})
        for known in progress.writers:
            writer = self._new_writer(progress.run_id, known.writer_id)
            writer.committed, writer.committed_kind = known.committed_sequence_number, known.kind
            if writer.standing.checkpointed is None and self._is_start_checkpointed:
                writer.standing.checkpointed = known.committed_sequence_number
            elif writer.standing.checkpointed is None:
                self._note_uncheckpointed(writer)
            run.writers[known.writer_id] = writer

    def forget(self, run_id: str) -> None:
        """Drops a run that changed by other means than appends. Only between transactions."""
        self._runs.pop(run_id, None)

    def remove(self, run_id: str) -> None:
        """Drops a run that is gone. One that is created anew under its id has nothing to do with the streams of it."""
        self.forget(run_id)
        self._standings.pop(run_id, None)
        self._uncheckpointed_writers = {key: w for key, w in self._uncheckpointed_writers.items() if key[0] != run_id}

    def committed_sequence_number(self, run_id: str, writer_id: str) -> int:
        """Highest committed number of a writer; 0 before its first."""
        writer = self._runs[run_id].writers.get(writer_id)
        return writer.committed if writer else 0

    def checkpointed_sequence_number(self, run_id: str, writer_id: str) -> int:
        """Highest checkpointed number of a writer; 0 before its first."""
        writer = self._runs[run_id].writers.get(writer_id)
        return writer.checkpointed if writer else 0

    def decide(self, append: Append) -> Decision:
        """Decides about one append. `Store` counts it to the current transaction.

        A repetition is acknowledged in a sealed run too: nothing changes by it, and its writer may have missed the
        first acknowledgement.
        """
        run = self._runs[append.run_id]
        writer = run.writers.get(append.writer_id) or self._new_writer(append.run_id, append.writer_id)
        number = append.sequence_number
        strangeness = _strangeness(append, writer)
        if strangeness is not None:
            return Refuse(strangeness)
        if number <= writer.committed:
            return RecallDigest()
        if number < writer.expected:
            return decide_repetition(append, writer.pending_digests[number - writer.committed - 1])
        if run.sealed:
            return Refuse(run_sealed(append.run_id))
        if number > writer.expected:
            return Refuse(sequence_gap(append.writer_id, number, writer.expected, writer.checkpointed))
        if not writer.pending_digests:
            run.writers[append.writer_id] = writer
            writer.pending_kind = append.kind
            self._pending_writers.append(writer)
        writer.pending_digests.append(append.digest)
        return Store()

    def open_stream(self, opening: StreamOpening) -> StreamPosition:
        """Where a new stream of the writer goes on; appends of its earlier ones are refused from now on.

        Only between transactions. Raises FailedPreconditionError: RUN_SEALED, WRITER_KIND_MISMATCH, or
        ACKED_DATA_MISSING where the store lacks numbers that the writer cannot send any more.
        """
        run = self._runs[opening.run_id]
        known = run.writers.get(opening.writer_id)
        writer = known or self._new_writer(opening.run_id, opening.writer_id)
        if run.sealed:
            raise run_sealed(opening.run_id)
        if writer.kind not in (None, AppendKind.STREAM):
            raise kind_mismatch(opening.writer_id, _name(writer.kind), AppendKind.STREAM.value)
        last_acked = opening.last_acked_sequence_number
        first_kept = opening.first_kept_sequence_number or last_acked + 1
        if first_kept > writer.committed + 1:
            raise acked_data_missing(opening.writer_id, last_acked, first_kept, writer.committed)
        self._last_epoch += 1
        writer.standing.epoch = self._last_epoch
        self._standings[opening.run_id][opening.writer_id] = writer.standing
        return StreamPosition(
            epoch=self._last_epoch,
            committed_sequence_number=writer.committed,
            checkpointed_sequence_number=writer.checkpointed,
            lost_append_count=max(0, last_acked - writer.committed),
        )

    def commit(self) -> None:
        """The current transaction is durable: its numbers are committed."""
        for writer in self._pending_writers:
            writer.committed += len(writer.pending_digests)
            writer.committed_kind = writer.kind
            writer.pending_digests.clear()
            self._note_uncheckpointed(writer)
        self._pending_writers.clear()

    def roll_back(self) -> None:
        """The current transaction never happened."""
        for writer in self._pending_writers:
            writer.pending_kind = None
            writer.pending_digests.clear()
        self._pending_writers.clear()

    def checkpoint(self) -> list[Checkpointed]:
        """Everything committed is checkpointed. Returns those for whom that is news. Only between transactions."""
        moved = []
        for writer in self._uncheckpointed_writers.values():
            writer.standing.checkpointed = writer.committed
            moved.append(
                Checkpointed(run_id=writer.run_id, writer_id=writer.writer_id, sequence_number=writer.committed)
            )
        self._uncheckpointed_writers.clear()
        self._is_start_checkpointed = True
        return moved

    def _note_uncheckpointed(self, writer: _Writer) -> None:
        self._uncheckpointed_writers[writer.run_id, writer.writer_id] = writer
        self._standings[writer.run_id][writer.writer_id] = writer.standing
        if writer.standing.checkpointed is None:
            writer.standing.checkpointed = 0

    def _new_writer(self, run_id: str, writer_id: str) -> _Writer:
        known = self._standings.get(run_id, {})
        return _Writer(run_id, writer_id, known.get(writer_id) or _Standing())


def decide_repetition(append: Append, stored_digest: bytes) -> AcknowledgeAgain | Refuse:
    """Decides about a number that is stored with the content of `stored_digest`."""
    if append.digest == stored_digest:
        return AcknowledgeAgain()
    return Refuse(writer_conflict(append.writer_id, append.sequence_number))


def _strangeness(append: Append, writer: _Writer) -> Error | None:
    """Why the append cannot be one that the writer makes by now, whatever its number; None where it can."""
    if writer.kind not in (None, append.kind):
        return kind_mismatch(append.writer_id, _name(writer.kind), append.kind.value)
    if append.kind is AppendKind.STREAM and append.epoch != writer.standing.epoch:
        return writer_fenced(append.writer_id)
    return None


def _name(kind: AppendKind | None) -> str:
    return kind.value if kind else ""
