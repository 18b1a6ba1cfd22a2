"""`v_ack_lag` says how far the store is behind its writers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from linkbound.domain.records import Event
from linkbound.domain.run import CreateRunRequest
from tests.integration.view_store import ViewStore, view_store
from tests.property.traffic_answers import descriptor
from tests.property.traffic_reference import Reading

RUN = "r"
MS = 10**6
# Columns of instants are UTC and have no zone.
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).replace(tzinfo=None)
NOON_UNIX_NS = 1_767_268_800 * 10**9


@pytest.fixture
def store() -> Iterator[ViewStore]:
    with view_store() as opened:
        opened.create_run(CreateRunRequest(run_id=RUN))
        yield opened


def commit(
    store: ViewStore, writer: str, number: int, seconds: float, row_count: int = 100, kind: str = "STREAM"
) -> None:
    """An entry of the ledger, so many seconds after noon."""
    store.connection.execute(
        "INSERT INTO hot.ledger VALUES (?, ?, ?, ?, ''::BLOB, ?, 1, '', ?)",
        [RUN, writer, number, kind, row_count, NOON + timedelta(seconds=seconds)],
    )


def test_commits_and_their_gaps_are_told_of_each_writer(store: ViewStore) -> None:
    for number, seconds in enumerate((0.0, 0.5, 0.5, 2.5), 1):
        commit(store, "sampler", number, seconds)
    commit(store, "bench", 1, 1.0, row_count=3, kind="UNARY")
    told = store.rows(
        "SELECT writer_id, append_kind, append_count, row_count, rejected_row_count, first_commit_time_utc,"
        " last_commit_time_utc, rows_per_second, mean_gap_seconds, largest_gap_seconds, node, ack_lag_seconds"
        " FROM v_ack_lag ORDER BY writer_id"
    )
    second = timedelta(seconds=1)
    assert told == [
        ("bench", "UNARY", 1, 3, 1, NOON + second, NOON + second, None, None, None, None, None),
        ("sampler", "STREAM", 4, 400, 4, NOON, NOON + 2.5 * second, 120.0, pytest.approx(2.5 / 3), 2.0, None, None),
    ]


def sampled(store: ViewStore) -> None:
    """A sampler whose newest reading was taken 40 s after its boot, and committed 30 ms after noon."""
    store.add_series(RUN, 1, descriptor())
    store.add_readings([Reading(series_id=1, time_ns=(39_000 + i) * MS, value=i) for i in range(1001)])
    commit(store, "sampler", 1, 0.03)


def anchor(time_ms: int, unix_after_noon_ms: int, node: str = "spark-1") -> Event:
    unix_ns = NOON_UNIX_NS + unix_after_noon_ms * MS
    return Event(kind="clock_anchor", node=node, boot_id="boot", time_ns=time_ms * MS, time_unix_ns=unix_ns)


def test_without_an_anchor_the_newest_sample_has_the_time_of_its_node_alone(store: ViewStore) -> None:
    sampled(store)
    store.append(RUN, anchor(40_000, 0, node="spark-2"), Event(kind="note", node="spark-1", time_ns=1, time_unix_ns=1))
    told = store.rows("SELECT node, boot_id, newest_sample_ns, newest_sample_time_utc, ack_lag_seconds FROM v_ack_lag")
    assert told == [("spark-1", "boot", 40_000 * MS, None, None)]


def test_the_nearest_anchor_tells_the_wall_clock_of_the_newest_sample(store: ViewStore) -> None:
    sampled(store)
    # The wall clock of the node was set by five seconds in between.
    store.append(RUN, anchor(10_000, -35_000), anchor(38_000, -2_000), anchor(43_000, 3_000))
    [(newest, lag_seconds)] = store.rows("SELECT newest_sample_time_utc, ack_lag_seconds FROM v_ack_lag")
    assert newest == NOON
    assert lag_seconds == pytest.approx(0.03)


def test_times_of_no_calendar_are_no_error(store: ViewStore) -> None:
    store.add_series(RUN, 1, descriptor())
    store.add_readings([Reading(series_id=1, time_ns=2**63 - 1, value=1)])
    commit(store, "sampler", 1, 0.0)
    store.append(RUN, Event(kind="clock_anchor", node="spark-1", boot_id="boot", time_ns=0, time_unix_ns=2**63 - 1))
    assert store.rows("SELECT newest_sample_time_utc, ack_lag_seconds FROM v_ack_lag") == [(None, None)]
