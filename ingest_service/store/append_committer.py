"""Stores groups of appends, each group with its ledger entries in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import duckdb
import pyarrow as pa
from attrs import define, field, frozen

from ingest_service.core.append import (
    AcknowledgeAgain,
    Append,
    AppendMachine,
    Decision,
    RecallDigest,
    Refuse,
    Store,
    decide_repetition,
)
from ingest_service.store.arrow_rows import insert_arrow
from ingest_service.store.ledger import LedgerEntry, insert_entries, select_digest, select_progress
from ingest_service.store.run_table import run_not_found
from ingest_service.store.sample_tables import SampleRows, SeriesRegistry, WriterSamples, insert_samples
from ingest_service.store.transactions import transaction
from linkbound.domain.errors import Error
from linkbound.domain.samples import BatchOutcome, OpenStreamRequest


@frozen
class RecordRows:
    """Rows of one record table."""

    table_name: str
    rows: pa.Table


@frozen(kw_only=True)
class AppendRows:
    """An append with its rows, ready to be stored. None: the batch is malformed and only uses up its number.

    `refusal` is the error that a malformed batch is answered with once its number is committed.
    """

    append: Append
    rows: RecordRows | SampleRows | None
    row_count: int
    rejected_row_count: int = 0
    rejection_message: str = ""
    refusal: Error | None = None


@define
class AppendCommitter:
    """Drives the append machine over the connection that writes. Belongs to one thread.

    Both methods may raise StoreBrokenError; then this object is of no more use. Any other error leaves the database as
    it was before the call.
    """

    _connection: duckdb.DuckDBPyConnection
    _clock: Callable[[], datetime]
    _machine: AppendMachine = field(init=False, factory=AppendMachine)
    _series: SeriesRegistry = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._series = SeriesRegistry(self._connection)

    def append(self, group: Sequence[AppendRows]) -> list[BatchOutcome | Error]:
        """Stores the group in one transaction and returns the answers to its appends, in order.

        When this returns, everything that the answers acknowledge is durable.
        """
        try:
            with transaction(self._connection):
                decisions = [self._decide(rows.append) for rows in group]
                self._insert([r for r, decision in zip(group, decisions, strict=True) if isinstance(decision, Store)])
        except BaseException:
            self._machine.roll_back()
            self._series.forget_all()
            raise
        self._machine.commit()
        return [self._answer(rows, decision) for rows, decision in zip(group, decisions, strict=True)]

    def open_stream(self, request: OpenStreamRequest) -> int:
        """Committed number from which the stream goes on. Raises NotFoundError and what the append machine raises."""
        self._recover(request.run)
        return self._machine.open_stream(request.run, request.writer_id, request.last_acked_sequence_number)

    def forget(self, run_id: str) -> None:
        """Drops what is known of a run that changed by other means than appends."""
        self._machine.forget(run_id)
        self._series.forget(run_id)

    def _recover(self, run_id: str) -> None:
        """Makes sure that the machine knows the run. Raises NotFoundError."""
        if self._machine.knows(run_id):
            return
        progress = select_progress(self._connection, run_id)
        if progress is None:
            raise run_not_found(self._connection, run_id)
        self._machine.recover(progress)

    def _decide(self, append: Append) -> Decision:
        try:
            self._recover(append.run_id)
        except Error as error:
            return Refuse(error)
        decision = self._machine.decide(append)
        if isinstance(decision, RecallDigest):
            return decide_repetition(append, select_digest(self._connection, append))
        return decision

    def _insert(self, accepted: Sequence[AppendRows]) -> None:
        if not accepted:
            return
        samples: list[WriterSamples] = []
        records: dict[str, list[pa.Table]] = {}
        for item in accepted:
            match item.rows:
                case SampleRows() as rows:
                    samples.append(WriterSamples(item.append.run_id, item.append.writer_id, rows))
                case RecordRows(table_name, rows):
                    records.setdefault(table_name, []).append(rows)
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
        insert_entries(self._connection, entries, self._clock())

    @staticmethod
    def _answer(rows: AppendRows, decision: Decision) -> BatchOutcome | Error:
        if isinstance(decision, Refuse):
            return decision.error
        if not isinstance(decision, Store | AcknowledgeAgain):
            raise TypeError(f"{decision} is not a final decision")
        if rows.refusal is not None:
            return rows.refusal
        # Its own number and no later one: what was stored behind it may be a refusal that nobody has been told yet.
        number = rows.append.sequence_number
        if isinstance(decision, AcknowledgeAgain):
            # What was left out was counted with the first answer.
            return BatchOutcome(committed_sequence_number=number)
        return BatchOutcome(
            committed_sequence_number=number,
            rejected_sample_count=rows.rejected_row_count,
            rejection_message=rows.rejection_message,
        )
