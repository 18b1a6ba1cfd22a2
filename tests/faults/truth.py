"""What a store holds, held against what agents spooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
from attrs import frozen

from tests.faults.agent import GENERATION_NS

_PER_GENERATION = """
    SELECT writer_id, time_ns // $generation_ns AS generation, count(*), count(DISTINCT value), min(value), max(value),
           count(*) FILTER (value <> time_ns % $generation_ns), count(*) FILTER (boot_id <> 'boot-' || generation)
    FROM hot.counter_samples JOIN hot.series USING (series_id)
    GROUP BY ALL
"""
_GAPS = """
    SELECT count(*) FROM (SELECT writer_id, max(sequence_number) AS last, count(*) AS entries FROM hot.ledger
                          GROUP BY writer_id) WHERE last <> entries
"""


@frozen(kw_only=True)
class Verdict:
    """Samples that agents knew to be safe and that are not there, and samples that are there twice or wrong."""

    stored_count: int
    missing_count: int
    duplicate_count: int
    wrong_count: int


def verdict(store: Path, spooled_counts: Mapping[str, Sequence[int]]) -> Verdict:
    """Look into the store of a service that does not run.

    A generation is stored from its first sample on without a gap. A write that had not returned when its agent was
    killed may be stored or not, whole.
    """
    with duckdb.connect(str(store), read_only=True) as connection:
        rows = connection.execute(_PER_GENERATION, {"generation_ns": GENERATION_NS}).fetchall()
        gaps = connection.execute(_GAPS).fetchone()
    assert gaps == (0,), "a ledger has a gap"
    found = {(writer_id, generation): figures for writer_id, generation, *figures in rows}
    missing = duplicates = wrong = stored = 0
    for writer_id, counts in spooled_counts.items():
        for generation, spooled_count in enumerate(counts):
            count, distinct, lowest, highest, bad_value, bad_series = found.pop((writer_id, generation), [0] * 6)
            stored += count
            duplicates += count - distinct
            wrong += bad_value + bad_series
            expected = max(spooled_count, highest + 1 if count else 0)
            missing += expected - distinct + lowest
    assert not found, "samples of nobody"
    return Verdict(stored_count=stored, missing_count=missing, duplicate_count=duplicates, wrong_count=wrong)
