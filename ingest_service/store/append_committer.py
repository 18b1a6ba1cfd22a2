"""Stores groups of appends, each group with its ledger entries in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime

import duckdb
import pyarrow as pa
from attrs import define, evolve, field, frozen

from ingest_service.core.append import (
    AcknowledgeAgain,
    Append,
    AppendMachine,
    Checkpointed,
    Decision,
    RecallDigest,
    Refuse,
    Store,
    StreamOpening,
    StreamPosition,
    decide_repetition,
)
from ingest_service.core.run_pulse import RunPulse
from ingest_service.store.arrow_rows import insert_arrow
from ingest_service.store.change_signal import ChangeSignal
from ingest_service.store.ledger import (
    LedgerEntry,
    insert_entries,
    select_digest,
    select_progress,
    select_rejected_row_count,
)
from ingest_service.store.log_watch import LogWatch
from ingest_service.store.run_changes import insert_changes
from ingest_service.store.run_table import run_not_found
from ingest_service.store.sample_tables import SampleRows, SeriesRegistry, WriterSamples, insert_samples
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.transactions import BREAKING_ERRORS, StoreBrokenError, transaction
from linkbound.domain.errors import Error
from linkbound.domain.run_watch import RunChange
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest

CHECKPOINT_LOG_BYTES = 4_000_000
"""Size of the log at which it moves into the file. Measured: four times as much makes that more than three times as
long, and whoever comes meanwhile waits for it."""


@frozen
class RecordRows:
    """Rows of one record table."""

    table_name: str
    rows: pa.Table


@frozen(kw_only=True)
class AppendRows:
    """An append with its rows, ready to be stored. None: the batch is malformed and only uses up its number.

    Requests bring the rows of their chunks too, for a second table.
    `refusal` is the error that a malformed batch is answered with once its number is committed.
    """

    append: Append
    rows: tuple[RecordRows, ...] | SampleRows | None
    row_count: int
    rejected_row_count: int = 0
    rejection_message: str = ""
    refusal: Error | None = None


@define
class AppendCommitter:
    """Drives the append machine over the connection that writes. Belongs to one thread.

    `on_checkpointed` is told for which writers a checkpoint holds more than before, `changes` of runs that rows were
    appended to. Every method may raise
    StoreBrokenError; then this object is of no more use. Any other error leaves the database as it was before the call.
    """

    _connection: duckdb.DuckDBPyConnection
    _clock: Callable[[], datetime]
    _log: LogWatch
    _on_checkpointed: Callable[[Sequence[Checkpointed]], None]
    _folder: SealedFolder
    _changes: ChangeSignal
    _pulse: RunPulse = field(init=False, factory=RunPulse)
    _machine: AppendMachine = field(init=False, factory=AppendMachine)
    _series: SeriesRegistry = field(init=False)
    _closed_runs: set[str] = field(init=False, factory=set)
    _hold_count: int = field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self._series = SeriesRegistry(self._connection)
        if not self._log.has_been_emptied():
            self._machine.start_with_log()

    def append(self, group: Sequence[AppendRows]) -> list[BatchOutcome | Error]:
        """Stores the group in one transaction and returns the answers to its appends, in order.

        When this returns, everything that the answers acknowledge is durable.
        """
        now = time.monotonic()
        try:
            with transaction(self._connection):
                decisions = [self._decide(rows.append) for rows in group]
                accepted = [r for r, decision in zip(group, decisions, strict=True) if isinstance(decision, Store)]
                told = self._pulse.appended({rows.append.run_id for rows in accepted}, now)
                self._insert(accepted, told)
        except BaseException:
            self._machine.roll_back()
            self._series.forget_all()
            raise
        self._machine.commit()
        self._told(told, now)
        self.look_at_log()
        return [self._answer(rows, decision) for rows, decision in zip(group, decisions, strict=True)]

    def open_stream(self, request: OpenStreamRequest) -> StreamPosition:
        """Where the stream goes on. Raises NotFoundError and what the append machine raises."""
        self._recover(request.run)
        position = self._machine.open_stream(
            StreamOpening(
                run_id=request.run,
                writer_id=request.writer_id,
                last_acked_sequence_number=request.last_acked_sequence_number,
                first_kept_sequence_number=request.first_kept_sequence_number,
            )
        )
        rejected_row_count = select_rejected_row_count(self._connection, request.run, request.writer_id)
        return evolve(position, rejected_row_count=rejected_row_count)

    def now(self) -> datetime:
        """The time of the store."""
        return self._clock()

    def tell_of_appends(self) -> None:
        """Tells of the runs whose turn has come, where no append brings it about."""
        now = time.monotonic()
        due = self._pulse.due(now)
        if due:
            with transaction(self._connection):
                insert_changes(self._connection, due, RunChange.APPENDED, self._clock())
            self._told(due, now)

    def telling_wait_seconds(self) -> float | None:
        """Time until the next run is to be told of; None: there is none."""
        return self._pulse.wait_seconds(time.monotonic())

    @property
    def has_uncheckpointed(self) -> bool:
        """Whether anything is committed that only the log holds."""
        return self._machine.has_uncheckpointed

    def checkpoint(self) -> bool:
        """Moves the log into the file; False where that is not possible for now.

        Somebody holds the file or has a transaction that forbids it, or the disk lacks the room.
        """
        if self._hold_count or self._log.lacks_room():
            return False
        try:
            self._connection.execute("CHECKPOINT")
        except BREAKING_ERRORS as error:
            raise StoreBrokenError from error
        except (duckdb.TransactionException, duckdb.OutOfMemoryException):
            return False
        self.look_at_log()
        return True

    def checkpoint_when_full(self) -> None:
        """Moves the log into the file once it is long."""
        if self._log.size_bytes >= CHECKPOINT_LOG_BYTES:
            self.checkpoint()

    @property
    def log_bytes(self) -> int:
        """Size of the log."""
        return self._log.size_bytes

    def hold_file(self) -> None:
        """Lets no checkpoint happen until `release_file`: the file stays as it is, and the log grows."""
        self._hold_count += 1

    def release_file(self) -> None:
        """Lets checkpoints happen again, once everybody who held the file has released it."""
        self._hold_count -= 1

    def look_at_log(self) -> None:
        """Notices what a checkpoint, whoever asked for it, has moved into the file."""
        if self._log.has_been_emptied() and (moved := self._machine.checkpoint()):
            self._on_checkpointed(moved)

    def close_run(self, run_id: str) -> None:
        """Refuses appends to a run that is about to be sealed, as those to a sealed one."""
        self._closed_runs.add(run_id)
        self.forget(run_id)

    def reopen_run(self, run_id: str) -> None:
        """Goes by what the store says of a run again."""
        self._closed_runs.discard(run_id)
        self.forget(run_id)

    def forget(self, run_id: str) -> None:
        """Drops what is known of a run that changed by other means than appends."""
        self._machine.forget(run_id)
        self._series.forget(run_id)
        self._pulse.forget(run_id)

    def remove(self, run_id: str) -> None:
        """Drops what is known of a run that was deleted, its streams included."""
        self._machine.remove(run_id)
        self._series.forget(run_id)
        self._pulse.forget(run_id)

    def _told(self, run_ids: Sequence[str], now: float) -> None:
        if run_ids:
            self._pulse.told(run_ids, now)
            self._changes.announce()

    def _recover(self, run_id: str) -> None:
        """Makes sure that the machine knows the run. Raises NotFoundError."""
        if self._machine.knows(run_id):
            return
        progress = select_progress(self._connection, run_id)
        if progress is None:
            raise run_not_found(self._connection, run_id)
        self._machine.recover(evolve(progress, sealed=progress.sealed or run_id in self._closed_runs))

    def _decide(self, append: Append) -> Decision:
        try:
            self._recover(append.run_id)
        except Error as error:
            return Refuse(error)
        decision = self._machine.decide(append)
        if isinstance(decision, RecallDigest):
            digest = select_digest(self._connection, append, self._folder)
            return AcknowledgeAgain() if digest is None else decide_repetition(append, digest)
        return decision

    def _insert(self, accepted: Sequence[AppendRows], told: Sequence[str]) -> None:
        """Inserts rows and their ledger entries, and for the runs `told` that they were appended to."""
        if not accepted and not told:
            return
        samples: list[WriterSamples] = []
        records: dict[str, list[pa.Table]] = {}
        for item in accepted:
            match item.rows:
                case SampleRows() as rows:
                    samples.append(WriterSamples(item.append.run_id, item.append.writer_id, rows))
                case tuple(parts):
                    for part in parts:
                        records.setdefault(part.table_name, []).append(part.rows)
        insert_samples(self._connection, self._series, samples)
        for table_name, tables in records.items():
            insert_arrow(self._connection, table_name, pa.concat_tables(tables))
        entries = [
            LedgerEntry(
                append=item.append,
                row_count=item.row_count,
                rejected_row_count=item.rejected_row_count,
                rejection_message=item.rejection_message,
            )
            for item in accepted
        ]
        commit_time = self._clock()
        insert_entries(self._connection, entries, commit_time)
        insert_changes(self._connection, told, RunChange.APPENDED, commit_time)

    def _answer(self, rows: AppendRows, decision: Decision) -> BatchOutcome | Error:
        if isinstance(decision, Refuse):
            return decision.error
        if not isinstance(decision, Store | AcknowledgeAgain):
            raise TypeError(f"{decision} is not a final decision")
        if rows.refusal is not None:
            return rows.refusal
        # Its own number and no later one: what was stored behind it may be a refusal that nobody has been told yet.
        number = rows.append.sequence_number
        checkpointed = self._machine.checkpointed_sequence_number(rows.append.run_id, rows.append.writer_id)
        if isinstance(decision, AcknowledgeAgain):
            # What was left out was counted with the first answer.
            return BatchOutcome(
                committed_sequence_number=number, checkpointed_sequence_number=min(checkpointed, number)
            )
        return BatchOutcome(
            committed_sequence_number=number,
            checkpointed_sequence_number=min(checkpointed, number),
            rejected_sample_count=rows.rejected_row_count,
            rejection_message=rows.rejection_message,
        )
