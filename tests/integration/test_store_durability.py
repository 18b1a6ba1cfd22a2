"""What was acknowledged survives: killed processes, files that cannot grow."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from linkbound.domain.errors import FailedPreconditionError
from tests.integration.store_appender import (
    RECORDS_PER_APPEND,
    SAMPLES_PER_BATCH,
    STREAM_WRITERS,
    UNARY_WRITER,
)
from tests.integration.store_content import RUN, batch, opened, rows, stream, with_run

ROOT = Path(__file__).resolve().parents[2]
KILL_COUNT = 5
LARGEST_FILE_BYTES = 3_000_000


def started(path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.store_appender", str(path), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def acknowledged_numbers(lines: list[str]) -> Counter[str]:
    """Highest acknowledged number of each writer."""
    highest: Counter[str] = Counter()
    for line in lines:
        writer, number = line.split()
        highest[writer] = max(highest[writer], int(number))
    return highest


def stored_numbers(folder: Path) -> dict[str, int]:
    """Highest stored number of each writer, after checking that the store holds every number once and whole."""
    ledger = rows(
        folder,
        "SELECT writer_id, count(*), min(sequence_number), max(sequence_number), sum(row_count)::BIGINT"
        " FROM ledger GROUP BY writer_id",
    )
    highest = {writer: last for writer, _, _, last, _ in ledger}
    for writer, entry_count, first, last, row_count in ledger:
        assert (first, entry_count) == (1, last)
        rows_per_append = RECORDS_PER_APPEND if writer == UNARY_WRITER else SAMPLES_PER_BATCH
        assert row_count == last * rows_per_append
    samples = rows(
        folder,
        "SELECT writer_id, value // 1000, count(*), count(DISTINCT value)"
        " FROM counter_samples JOIN series USING (series_id) GROUP BY ALL",
    )
    records = rows(
        folder,
        "SELECT writer_id, subject::BIGINT, count(*), count(DISTINCT round_index) FROM requests GROUP BY ALL",
    )
    found: dict[str, set[int]] = {}
    for writer, number, row_count, distinct_count in samples + records:
        rows_per_append = RECORDS_PER_APPEND if writer == UNARY_WRITER else SAMPLES_PER_BATCH
        assert row_count == distinct_count == rows_per_append
        found.setdefault(writer, set()).add(number)
    assert found == {writer: set(range(1, last + 1)) for writer, last in highest.items()}
    return highest


def test_nothing_acknowledged_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    moments = random.Random(20260101)
    acknowledged: Counter[str] = Counter()
    stored: dict[str, int] = {}
    for _ in range(KILL_COUNT):
        with started(tmp_path / "linkbound.duckdb") as process:
            assert process.stdout is not None
            # The process goes on while this one counts, so the kill comes at any point of a transaction.
            lines = [process.stdout.readline() for _ in range(moments.randint(1, 300))]
            process.kill()
            lines += process.stdout.readlines()
        # The last line may have been cut by the kill; a number cut short would only be smaller.
        whole = [line for line in lines if line.endswith("\n")]
        acknowledged |= acknowledged_numbers(whole)
        opened(tmp_path).close()
        stored = stored_numbers(tmp_path)
        for writer, number in acknowledged.items():
            assert stored[writer] >= number
    assert set(acknowledged) == {*STREAM_WRITERS, UNARY_WRITER}
    with opened(tmp_path) as store:
        for writer in STREAM_WRITERS:
            session = store.open_stream(stream(writer=writer, last_acked=acknowledged[writer]))
            assert session.start.committed_sequence_number == stored[writer]
        assert store.get_run(RUN).row_counts.request_record_count == stored[UNARY_WRITER] * RECORDS_PER_APPEND


def test_a_file_that_cannot_grow_stops_the_store_and_loses_nothing(tmp_path: Path) -> None:
    with started(tmp_path / "linkbound.duckdb", str(LARGEST_FILE_BYTES)) as process:
        assert process.stdout is not None
        lines = process.stdout.readlines()
    broken = [line.split() for line in lines if line.startswith("broken")]
    assert len(broken) == len(STREAM_WRITERS) + 1
    assert all(line == ["broken", "UNAVAILABLE", "STORE_BROKEN", "False"] for line in broken)
    acknowledged = acknowledged_numbers([line for line in lines if not line.startswith("broken")])
    opened(tmp_path).close()
    stored = stored_numbers(tmp_path)
    assert sum(acknowledged.values()) > 0
    for writer, number in acknowledged.items():
        assert stored[writer] >= number


@pytest.mark.parametrize("kept_fraction", [0.0, 0.5])
def test_an_older_copy_of_the_file_is_noticed_when_the_writer_comes_back(tmp_path: Path, kept_fraction: float) -> None:
    path = tmp_path / "linkbound.duckdb"
    total = 10
    kept = round(total * kept_fraction)
    with opened(tmp_path) as store:
        session = with_run(store).open_stream(stream())
        for number in range(1, kept + 1):
            session.submit(batch(number)).result()
    copy = path.read_bytes()
    with opened(tmp_path) as store:
        session = store.open_stream(stream())
        for number in range(kept + 1, total + 1):
            session.submit(batch(number)).result()
    path.write_bytes(copy)
    with opened(tmp_path) as store:
        with pytest.raises(FailedPreconditionError) as caught:
            store.open_stream(stream(last_acked=total))
        assert caught.value.reason == "ACKED_DATA_MISSING"
        assert caught.value.metadata["committedSequenceNumber"] == str(kept)
