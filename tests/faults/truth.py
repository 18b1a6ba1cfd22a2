"""What a store holds, held against what agents spooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
from attrs import frozen

from tests.faults.agent import GENERATION_NS, SAMPLES_PER_WRITE
from tests.faults.figures import Rows

_PER_GENERATION = """
    SELECT writer_id, time_ns // $generation_ns AS generation, count(*), count(DISTINCT value), min(value), max(value),
           count(*) FILTER (value <> time_ns % $generation_ns), count(*) FILTER (boot_id <> 'boot-' || generation)
    FROM hot.counter_samples JOIN hot.series USING (series_id)
    WHERE run_id = $run
    GROUP BY ALL
"""
_ACKNOWLEDGED = (
    "SELECT sum(row_count)::BIGINT FROM hot.ledger WHERE run_id = ? AND writer_id = ? AND sequence_number <= ?"
)
_GAPS = """
    SELECT count(*) FROM (SELECT writer_id, max(sequence_number) AS last, count(*) AS entries FROM hot.ledger
                          WHERE run_id = ? GROUP BY writer_id) WHERE last <> entries
"""


@frozen(kw_only=True)
class Verdict:
    """Samples that agents knew to be safe and that are not there, and samples that are there twice or wrong.

    What was spooled is safe, acknowledged or not; what is stored of a write that had not returned was spooled too.
    """

    spooled_count: int
    acknowledged_count: int
    stored_count: int
    missing_count: int
    duplicate_count: int
    wrong_count: int

    @property
    def is_right(self) -> bool:
        """Whether nothing is missing, twice or wrong, and there was something."""
        return self.stored_count > 0 and not (self.missing_count or self.duplicate_count or self.wrong_count)

    @property
    def rows(self) -> Rows:
        """The same for the table of all faults."""
        return Rows(
            sent=self.spooled_count,
            acknowledged=self.acknowledged_count,
            stored=self.stored_count,
            lost=self.missing_count,
            twice=self.duplicate_count,
        )


@frozen(kw_only=True)
class Told:
    """What one agent told: samples in the spool of each of its generations, and samples that it knew to be stored."""

    spooled_counts: Sequence[int]
    acknowledged_count: int


def verdict(store: Path, run: str, told: Mapping[str, Told]) -> Verdict:
    """Look at a run in the store of a service that does not run.

    A generation is stored from its first sample on without a gap. A write that had not returned when its agent was
    killed may be stored or not, whole.
    """
    with duckdb.connect(str(store), read_only=True) as connection:
        rows = connection.execute(_PER_GENERATION, {"generation_ns": GENERATION_NS, "run": run}).fetchall()
        gaps = connection.execute(_GAPS, [run]).fetchone()
        for writer_id, agent in told.items():
            number = agent.acknowledged_count // SAMPLES_PER_WRITE
            kept = connection.execute(_ACKNOWLEDGED, [run, writer_id, number]).fetchone()
            assert kept == (agent.acknowledged_count or None,), "the ledger lacks what was acknowledged"
    assert gaps == (0,), "a ledger has a gap"
    found = {(writer_id, generation): figures for writer_id, generation, *figures in rows}
    missing = duplicates = wrong = stored = spooled = 0
    for writer_id, agent in told.items():
        for generation, spooled_count in enumerate(agent.spooled_counts):
            count, distinct, lowest, highest, bad_value, bad_series = found.pop((writer_id, generation), [0] * 6)
            stored += count
            duplicates += count - distinct
            wrong += bad_value + bad_series
            expected = max(spooled_count, highest + 1 if count else 0)
            spooled += expected
            missing += expected - distinct + lowest
    assert not found, "samples of nobody"
    return Verdict(
        spooled_count=spooled,
        acknowledged_count=sum(agent.acknowledged_count for agent in told.values()),
        stored_count=stored,
        missing_count=missing,
        duplicate_count=duplicates,
        wrong_count=wrong,
    )
