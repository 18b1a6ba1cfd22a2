"""Sample streams in a real DuckDB file: opened, resumed, malformed, counted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest_service.service import Ingest, RefusedBatch
from linkbound.domain.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    Violation,
)
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import BatchOutcome, SampleBatch, SampleColumns
from tests.integration.store_content import RUN, RX, TX, GatedClock, batch, opened, rows, stream, with_run


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
        assert session.committed_sequence_number == 0
        outcome = session.submit(batch(1, columns(1, 5, 6), columns(0, 7, duration_ns=(40,)))).result()
        assert outcome == BatchOutcome(committed_sequence_number=1)
        session.submit(batch(2, columns(0, 8))).result()
    assert rows(
        tmp_path,
        "SELECT s.metric, c.time_ns, c.value, c.read_duration_ns FROM counter_samples c JOIN series s USING (series_id)"
        " ORDER BY c.rowid",
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
        assert store.open_stream(stream(last_acked=2)).committed_sequence_number == 3
    with opened(tmp_path) as store:
        session = store.open_stream(stream(last_acked=3))
        assert session.committed_sequence_number == 3
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
            session.refuse(refused(2)).result()
        # The same bytes again are answered the same; other bytes, or a batch without readings, are a conflict.
        with pytest.raises(InvalidArgumentError):
            session.refuse(refused(2)).result()
        with pytest.raises(AbortedError):
            session.refuse(refused(2, b"other")).result()
        with pytest.raises(AbortedError):
            session.submit(SampleBatch(sequence_number=2, columns=())).result()
        with pytest.raises(OutOfRangeError):
            session.refuse(refused(4)).result()
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
    assert ingest.open_stream(stream(last_acked=30)).committed_sequence_number == 30
    assert all(future.done() for future in futures)


def test_a_stream_notices_that_its_run_was_deleted(ingest: Ingest) -> None:
    session = ingest.open_stream(stream())
    session.submit(batch(1)).result()
    ingest.delete_run(RUN)
    with pytest.raises(NotFoundError):
        session.submit(batch(2)).result()
    ingest.create_run(CreateRunRequest(run_id=RUN))
    with pytest.raises(OutOfRangeError):
        session.submit(batch(2)).result()
    assert session.submit(batch(1)).result().committed_sequence_number == 1
    assert ingest.get_run(RUN).row_counts.sample_count == 3


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
        limits = with_run(store).open_stream(stream()).limits
    assert (limits.max_in_flight_batches, limits.max_batch_bytes) == (3, 4096)
