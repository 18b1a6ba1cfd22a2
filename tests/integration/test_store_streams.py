"""Sample streams in a real DuckDB file: opened, resumed, malformed, counted."""

import queue
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ingest_service.service import Ingest, RefusedBatch, StoreSettings
from linkbound.domain.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    Violation,
)
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import BatchOutcome, SampleBatch, SampleColumns
from tests.integration.store_content import RUN, RX, TX, GatedClock, appended, batch, opened, rows, stream, with_run


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[Ingest]:
    with opened(tmp_path) as store:
        yield with_run(store)


def columns(series_index: int, *times: int, duration_ns: tuple[int, ...] = ()) -> SampleColumns:
    return SampleColumns(
        series_index=series_index, time_ns=times, value=tuple(t * 10 for t in times), read_duration_ns=duration_ns
    )


MALFORMED = batch(2, SampleColumns(series_index=0, time_ns=(1, 2), value=(1,)), columns(9, 1))


def test_readings_of_several_series_are_stored_as_they_are(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        session = with_run(store).open_stream(stream())
        assert session.start.committed_sequence_number == 0
        outcome = session.submit(batch(1, columns(1, 5, 6), columns(0, 7, duration_ns=(40,)))).result()
        assert outcome == BatchOutcome(committed_sequence_number=1)
        session.submit(batch(2, columns(0, 8))).result()
    assert rows(
        tmp_path,
        "SELECT s.metric, c.time_ns, c.value, c.read_duration_ns FROM counter_samples c JOIN series s USING (series_id)"
        " ORDER BY c.stored_index",
    ) == [
        (RX.metric, 5, 50, None),
        (RX.metric, 6, 60, None),
        (TX.metric, 7, 70, 40),
        (TX.metric, 8, 80, None),
    ]
    assert rows(
        tmp_path,
        "SELECT run_id, writer_id, metric, node, device, port, unit_bytes, counter_bits FROM series ORDER BY 3",
    ) == [
        (RUN, "sampler", "port_rcv_data", "spark1", "mlx5_0", 1, 4, 64),
        (RUN, "sampler", "port_xmit_data", "spark1", "mlx5_0", 1, 4, 64),
    ]


def test_a_stream_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        session = with_run(store).open_stream(stream())
        for number in (1, 2, 3):
            session.submit(batch(number))
        session.close()
        assert store.open_stream(stream(last_acked=2)).start.committed_sequence_number == 3
    with opened(tmp_path) as store:
        session = store.open_stream(stream(last_acked=3))
        assert session.start.committed_sequence_number == 3
        assert session.submit(batch(4)).result().committed_sequence_number == 4
        assert store.get_run(RUN).row_counts.sample_count == 12


def test_resending_to_a_stream_that_names_its_series_in_other_order_is_no_conflict(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        with_run(store).open_stream(stream(TX, RX)).submit(batch(1, columns(0, 5), columns(1, 6))).result()
    with opened(tmp_path) as store:
        session = store.open_stream(stream(RX, TX))
        assert session.submit(batch(1, columns(1, 5), columns(0, 6))).result().committed_sequence_number == 1
        with pytest.raises(AbortedError):
            session.submit(batch(1, columns(0, 5), columns(1, 6))).result()
        session.submit(batch(2, columns(0, 7))).result()
    assert rows(tmp_path, "SELECT count(*) FROM series") == [(2,)]
    assert rows(tmp_path, "SELECT metric FROM counter_samples JOIN series USING (series_id) WHERE time_ns = 7") == [
        (RX.metric,)
    ]


def test_two_writers_of_one_counter_have_a_series_each(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        with_run(store)
        for writer in ("sampler-a", "sampler-b"):
            store.open_stream(stream(TX, writer=writer)).submit(batch(1)).result()
    assert rows(
        tmp_path,
        "SELECT writer_id, count(*) FROM counter_samples JOIN series USING (series_id) GROUP BY writer_id ORDER BY 1",
    ) == [("sampler-a", 3), ("sampler-b", 3)]


def test_bad_readings_are_counted_in_the_answer_and_in_the_ledger(tmp_path: Path) -> None:
    bad = batch(1, SampleColumns(series_index=0, time_ns=(5, 4, 6), value=(1, 2, -3)))
    expected = BatchOutcome(
        committed_sequence_number=1,
        rejected_sample_count=2,
        rejection_message=f"series 0: 1 times before the reading before, 1 values outside 0 to {2**63 - 1}",
    )
    with opened(tmp_path) as store:
        session = with_run(store).open_stream(stream())
        assert session.submit(bad).result() == expected
        # Sent again, it is acknowledged again; what was left out was counted already.
        assert session.submit(bad).result() == BatchOutcome(committed_sequence_number=1)
    assert rows(tmp_path, "SELECT time_ns FROM counter_samples") == [(5,)]
    assert rows(tmp_path, "SELECT row_count, rejected_row_count, rejection_message FROM ledger") == [
        (1, 2, expected.rejection_message)
    ]


def test_a_malformed_batch_uses_up_its_number_and_stores_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        session = with_run(store).open_stream(stream())
        first, second, third = (session.submit(b) for b in (batch(1), MALFORMED, batch(3)))
        assert first.result().committed_sequence_number >= 1
        with pytest.raises(InvalidArgumentError) as caught:
            second.result()
        assert [v.field for v in caught.value.field_violations] == ["columns[0].value", "columns[1].series_index"]
        assert third.result().committed_sequence_number == 3
        with pytest.raises(InvalidArgumentError):
            session.submit(MALFORMED).result()
        with pytest.raises(AbortedError):
            session.submit(batch(2)).result()
    assert rows(tmp_path, "SELECT sequence_number, row_count, rejected_row_count FROM ledger ORDER BY 1") == [
        (1, 3, 0),
        (2, 0, 3),
        (3, 3, 0),
    ]
    [(message,)] = rows(tmp_path, "SELECT rejection_message FROM ledger WHERE sequence_number = 2")
    assert message == caught.value.message


def test_an_acknowledgement_does_not_overtake_a_refusal_of_the_same_commit(tmp_path: Path) -> None:
    clock = GatedClock()
    with opened(tmp_path, clock) as store:
        session = with_run(store).open_stream(stream())
        clock.close_gate()
        blocking = session.submit(batch(1))
        assert clock.reached.wait(60)
        outcomes = [session.submit(b) for b in (MALFORMED, batch(3), batch(4))]
        clock.gate.set()
        assert blocking.result() == BatchOutcome(committed_sequence_number=1)
        with pytest.raises(InvalidArgumentError):
            outcomes[0].result()
        assert [o.result().committed_sequence_number for o in outcomes[1:]] == [3, 4]
    # They were stored together, so that 4 was durable when 3 was answered.
    assert rows(tmp_path, "SELECT count(*) FROM ledger GROUP BY commit_time_utc ORDER BY commit_time_utc") == [
        (1,),
        (3,),
    ]


def refused(number: int, content: bytes = b"content") -> RefusedBatch:
    error = InvalidArgumentError([Violation("batch", "is too large")])
    return RefusedBatch(sequence_number=number, sample_count=7, content=content, error=error)


def test_a_refusal_uses_up_its_number_and_the_ledger_says_why(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        session = with_run(store).open_stream(stream())
        session.submit(batch(1)).result()
        with pytest.raises(InvalidArgumentError):
            session.queue(session.refused(refused(2))).result()
        # The same bytes again are answered the same; other bytes, or a batch without readings, are a conflict.
        with pytest.raises(InvalidArgumentError):
            session.queue(session.refused(refused(2))).result()
        with pytest.raises(AbortedError):
            session.queue(session.refused(refused(2, b"other"))).result()
        with pytest.raises(AbortedError):
            session.submit(SampleBatch(sequence_number=2, columns=())).result()
        with pytest.raises(OutOfRangeError):
            session.queue(session.refused(refused(4))).result()
        assert session.submit(batch(3)).result().committed_sequence_number == 3
    assert rows(
        tmp_path, "SELECT row_count, rejected_row_count, rejection_message FROM ledger WHERE sequence_number = 2"
    ) == [(0, 7, "batch: is too large")]


def test_a_refusal_needs_a_number(ingest: Ingest) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        refused(0)
    assert [v.field for v in caught.value.field_violations] == ["sequence_number"]


def test_a_series_id_is_never_given_twice(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        with_run(store).open_stream(stream(TX)).submit(batch(1)).result()
    before = rows(tmp_path, "SELECT series_id FROM series")
    with opened(tmp_path) as store:
        store.delete_run(RUN)
    with opened(tmp_path) as store:
        with_run(store).open_stream(stream(TX)).submit(batch(1)).result()
    after = rows(tmp_path, "SELECT series_id FROM series")
    assert len(before) == len(after) == 1
    assert after[0] > before[0]


def test_a_malformed_batch_ahead_of_its_turn_is_a_gap(ingest: Ingest) -> None:
    with pytest.raises(OutOfRangeError):
        ingest.open_stream(stream()).submit(MALFORMED).result()


def test_a_gap_leaves_the_stream_open(ingest: Ingest) -> None:
    session = ingest.open_stream(stream())
    with pytest.raises(OutOfRangeError) as caught:
        session.submit(batch(2)).result()
    assert caught.value.metadata["expectedSequenceNumber"] == "1"
    assert session.submit(batch(1)).result().committed_sequence_number == 1
    assert session.submit(batch(2)).result().committed_sequence_number == 2


def test_an_empty_batch_is_stored_as_a_number(ingest: Ingest) -> None:
    session = ingest.open_stream(stream())
    assert session.submit(SampleBatch(sequence_number=1, columns=())).result() == BatchOutcome(
        committed_sequence_number=1
    )


def test_a_writer_that_saw_more_acknowledged_than_is_stored_is_told(ingest: Ingest) -> None:
    ingest.open_stream(stream()).submit(batch(1)).result()
    with pytest.raises(FailedPreconditionError) as caught:
        ingest.open_stream(stream(last_acked=2))
    assert caught.value.reason == "ACKED_DATA_MISSING"
    assert caught.value.metadata["committedSequenceNumber"] == "1"


def test_the_opening_counts_what_its_writer_submitted_before(ingest: Ingest) -> None:
    session = ingest.open_stream(stream())
    futures = [session.submit(batch(number)) for number in range(1, 31)]
    assert ingest.open_stream(stream(last_acked=30)).start.committed_sequence_number == 30
    assert all(future.done() for future in futures)


def test_a_stream_notices_that_its_run_was_deleted(ingest: Ingest) -> None:
    session = ingest.open_stream(stream())
    session.submit(batch(1)).result()
    ingest.delete_run(RUN)
    with pytest.raises(NotFoundError):
        session.submit(batch(2)).result()
    # Another run that is given its name has nothing to do with the stream.
    ingest.create_run(CreateRunRequest(run_id=RUN))
    with pytest.raises(AbortedError) as caught:
        session.submit(batch(1)).result()
    assert caught.value.reason == "WRITER_FENCED"
    assert ingest.open_stream(stream()).submit(batch(1)).result().committed_sequence_number == 1
    assert ingest.get_run(RUN).row_counts.sample_count == 3


class Heard:
    """What a stream is told besides the answers to its batches."""

    def __init__(self) -> None:
        self.checkpointed: queue.Queue[int] = queue.Queue()
        self.fenced: queue.Queue[AbortedError] = queue.Queue()

    def on_checkpointed(self, sequence_number: int) -> None:
        self.checkpointed.put(sequence_number)

    def on_fenced(self, error: AbortedError) -> None:
        self.fenced.put(error)


def test_a_second_stream_of_a_writer_fences_the_first(ingest: Ingest) -> None:
    first, heard = ingest.open_stream(stream()), Heard()
    first.listen(heard)
    assert first.submit(batch(1)).result().committed_sequence_number == 1
    queued = first.submit(batch(2))
    second = ingest.open_stream(stream())
    assert heard.fenced.get(timeout=60).reason == "WRITER_FENCED"
    # What the first brought before is stored, and the second goes on behind it.
    assert queued.result().committed_sequence_number == 2
    assert second.start.committed_sequence_number == 2
    with pytest.raises(AbortedError) as caught:
        first.submit(batch(3))
    assert caught.value.reason == "WRITER_FENCED"
    assert second.submit(batch(3)).result().committed_sequence_number == 3
    # A stream that ends late does not take the place of the one that came after it.
    first.close()
    third = ingest.open_stream(stream())
    with pytest.raises(AbortedError):
        second.submit(batch(4))
    assert third.submit(batch(4)).result().committed_sequence_number == 4


def test_a_stream_that_was_fenced_before_anybody_listened_is_told_then(ingest: Ingest) -> None:
    first, heard = ingest.open_stream(stream()), Heard()
    ingest.open_stream(stream())
    first.listen(heard)
    assert heard.fenced.get(timeout=60).reason == "WRITER_FENCED"


def test_streams_of_other_writers_and_runs_are_left_alone(ingest: Ingest) -> None:
    with_run(ingest, "other")
    session = ingest.open_stream(stream())
    ingest.open_stream(stream(writer="other"))
    ingest.open_stream(stream(run="other"))
    assert session.submit(batch(1)).result().committed_sequence_number == 1


def test_what_is_committed_is_checkpointed_once_nothing_else_is_asked_for(tmp_path: Path) -> None:
    with opened(tmp_path, checkpoint_idle_seconds=0.01) as store:
        session, heard = with_run(store).open_stream(stream()), Heard()
        session.listen(heard)
        assert heard.checkpointed.get(timeout=60) == 0
        assert session.submit(batch(1)).result().checkpointed_sequence_number in (0, 1)
        assert heard.checkpointed.get(timeout=60) == 1
        assert session.checkpointed_sequence_number == 1
        assert not (tmp_path / "linkbound.duckdb.wal").exists()


def test_a_writer_that_never_pauses_is_checkpointed_too(tmp_path: Path) -> None:
    with opened(tmp_path, checkpoint_idle_seconds=60.0, checkpoint_age_seconds=0.01) as store:
        session, heard = with_run(store).open_stream(stream()), Heard()
        session.listen(heard)
        session.submit(batch(1)).result()
        while heard.checkpointed.get(timeout=60) < 1:
            continue


def test_a_full_log_is_checkpointed_without_a_rest(tmp_path: Path) -> None:
    with opened(tmp_path, checkpoint_idle_seconds=60.0, checkpoint_age_seconds=60.0) as store:
        session = with_run(store).open_stream(stream())
        for number in count(1):
            outcome = session.submit(batch(number, sample_count=50_000)).result()
            assert outcome.checkpointed_sequence_number <= number
            if outcome.checkpointed_sequence_number:
                break
        assert number > 1


def test_what_a_killed_process_left_in_the_log_is_checkpointed_when_the_store_is_opened(tmp_path: Path) -> None:
    with opened(tmp_path, checkpoint_idle_seconds=60.0) as store:
        session = with_run(store).open_stream(stream())
        assert session.submit(batch(1)).result().checkpointed_sequence_number == 0
        for name in ("linkbound.duckdb", "linkbound.duckdb.wal"):
            shutil.copy(tmp_path / name, tmp_path / f"copy-of-{name}")
    copy = tmp_path / "copy-of-linkbound.duckdb"
    with Ingest.open(StoreSettings(path=copy)) as store:
        assert not copy.with_name(f"{copy.name}.wal").exists()
        start = store.open_stream(stream(last_acked=1)).start
        assert (start.committed_sequence_number, start.checkpointed_sequence_number) == (1, 1)


def test_what_the_log_lost_is_sent_again_by_a_writer_that_kept_it(tmp_path: Path) -> None:
    path, log = tmp_path / "linkbound.duckdb", tmp_path / "linkbound.duckdb.wal"
    with opened(tmp_path) as store:
        with_run(store).open_stream(stream()).submit(batch(1)).result()
    with opened(tmp_path, checkpoint_idle_seconds=60.0) as store:
        session = store.open_stream(stream())
        for number in (2, 3):
            session.submit(batch(number)).result()
        safe = session.checkpointed_sequence_number
        before = path.read_bytes()
    assert not log.exists()
    # The file as it was before its log moved into it, and the log gone.
    path.write_bytes(before)
    with opened(tmp_path) as store:
        with capture_logs() as lines:
            session = store.open_stream(stream(last_acked=3, first_kept=safe + 1))
        assert session.start.committed_sequence_number == 1
        (line,) = lines
        assert (line["event"], line["lost_append_count"]) == ("store_lost_acknowledged", 2)
        for number in (2, 3):
            assert session.submit(batch(number)).result().committed_sequence_number == number
        assert store.get_run(RUN).row_counts.sample_count == 9


def test_below_the_floor_of_free_space_nothing_new_is_taken_and_the_rest_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        with_run(store).open_stream(stream()).submit(batch(1)).result()
    with opened(tmp_path, free_space_floor_bytes=2**50) as store:
        assert store.healthy
        assert not store.has_room
        session = store.open_stream(stream())
        for refused_call in (
            lambda: session.submit(batch(2)),
            lambda: store.append(appended(1)),
            lambda: with_run(store, "another"),
        ):
            with pytest.raises(ResourceExhaustedError) as caught:
                refused_call()
            assert caught.value.reason == "DISK_FULL"
            assert caught.value.retry_delay_seconds is None
        assert store.get_run(RUN).row_counts.sample_count == 3
        store.delete_run(RUN)


def test_a_closed_stream_takes_nothing_and_its_batches_are_stored(ingest: Ingest) -> None:
    session = ingest.open_stream(stream())
    future = session.submit(batch(1))
    session.close()
    session.close()
    with pytest.raises(FailedPreconditionError) as caught:
        session.submit(batch(2))
    assert caught.value.reason == "STREAM_CLOSED"
    assert future.result().committed_sequence_number == 1


def test_a_stream_is_told_the_limits_of_the_settings(tmp_path: Path) -> None:
    with opened(tmp_path, max_in_flight_batches=3, max_batch_bytes=4096) as store:
        limits = with_run(store).open_stream(stream()).start.limits
    assert (limits.max_in_flight_batches, limits.max_batch_bytes) == (3, 4096)
