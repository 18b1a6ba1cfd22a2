"""Records in a real DuckDB file: stored once, in groups, with what the writer is told being true."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from enum import Enum
from pathlib import Path

import attrs
import duckdb
import pytest

from ingest_service.service import Ingest
from ingest_service.store.condition import StoreCondition
from ingest_service.store.reader import Reader
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import (
    AbortedError,
    FailedPreconditionError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnavailableError,
)
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.records import (
    AppendRequest,
    CollectiveResult,
    MetricAggregate,
    Record,
    RequestRecord,
    TrainingStep,
)
from linkbound.domain.run import RunRowCounts
from tests.integration.store_content import (
    RUN,
    GatedClock,
    aggregate,
    appended,
    batch,
    opened,
    request_record,
    rows,
    stream,
    with_run,
)


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[Ingest]:
    with opened(tmp_path) as store:
        yield with_run(store)


FULL: tuple[Record, ...] = (
    RequestRecord(
        subject="P4",
        round_index=-1,
        request_index=3,
        prompt_tokens=8192,
        output_tokens=1024,
        send_ns=2**63 - 1,
        ttft_ns=1,
        last_token_ns=2**63 - 1,
        first_chunk_tokens=10**9,
        send_time_unix_ns=1_767_225_600_000_000_000,
    ),
    MetricAggregate(
        metric=Metric.LAST_TTFT_SECONDS,
        subject="P4",
        value=Spread(mean=26.44, minimum=26.20, maximum=26.59, round_count=3),
        source="section 8.4",
    ),
    CollectiveResult(
        subject="4 nodes",
        kind=CollectiveKind.ALL_REDUCE,
        rank_count=4,
        message_bytes=10**15,
        seconds=0.1,
        bus_bandwidth_bytes_per_second=22.07e9,
        error_count=0,
        source="nccl-tests",
    ),
    TrainingStep(
        subject="full",
        node_count=4,
        step_index=2**62,
        step_seconds=14.501,
        samples_per_second=0.28,
        tokens_per_second=1.5,
        elapsed_seconds=3557.0,
        source="7.2",
    ),
)
BARE: tuple[Record, ...] = (
    RequestRecord(subject="é", round_index=0, request_index=0, prompt_tokens=1, output_tokens=0, send_ns=0),
    MetricAggregate(metric=Metric.TTFT_SECONDS, subject="x", value=Spread(mean=1e-9)),
    CollectiveResult(subject="x", rank_count=2, bus_bandwidth_bytes_per_second=1.0),
    TrainingStep(subject="x", node_count=1, elapsed_seconds=1.0),
)


TABLES = ("request_records", "metric_aggregates", "collective_results", "training_steps")


def flat(record: Record) -> tuple[object, ...]:
    """The record's fields in their order, nested ones in place, enums by name; who appended it stands before them."""
    values: list[object] = []
    for value in attrs.astuple(record, recurse=False, filter=lambda attribute, _: attribute.name != "writer_id"):
        if isinstance(value, Spread):
            values += attrs.astuple(value)
        else:
            values.append(value.name if isinstance(value, Enum) else value)
    return tuple(values)


@pytest.mark.parametrize(("table", "full", "bare"), list(zip(TABLES, FULL, BARE, strict=True)))
def test_every_field_of_a_record_is_stored(tmp_path: Path, table: str, full: Record, bare: Record) -> None:
    with opened(tmp_path) as store:
        assert with_run(store).append(appended(1, full, bare)).result() == 1
        assert store.get_run(RUN).row_counts.total_row_count == 2
    assert rows(tmp_path, f"SELECT * FROM {table} ORDER BY rowid") == [
        (RUN, "bench", 1, *flat(full)),
        (RUN, "bench", 1, *flat(bare)),
    ]


def test_records_are_read_back_as_they_were_appended(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        with_run(store)
        for number, (full, bare) in enumerate(zip(FULL, BARE, strict=True), 1):
            store.append(appended(number, full, bare)).result()
    with duckdb.connect(str(tmp_path / "linkbound.duckdb")) as connection:
        _, stored = Reader(connection, StoreCondition()).read_measured(RUN)
    kinds = (stored.requests, stored.aggregates, stored.collectives, stored.training_steps)
    assert kinds == tuple(zip(FULL, BARE, strict=True))


def test_the_ledger_says_what_each_append_brought(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        with_run(store).append(appended(1, aggregate("a"), aggregate("b"))).result()
        store.append(appended(2, request_record())).result()
    assert rows(
        tmp_path,
        "SELECT writer_id, sequence_number, append_kind, row_count, rejected_row_count, rejection_message"
        " FROM ledger ORDER BY sequence_number",
    ) == [("bench", 1, "UNARY", 2, 0, ""), ("bench", 2, "UNARY", 1, 0, "")]


def test_sending_again_stores_nothing_more(ingest: Ingest) -> None:
    for _ in range(3):
        assert ingest.append(appended(1)).result() == 1
    ingest.append(appended(2)).result()
    assert ingest.append(appended(1)).result() == 1
    assert ingest.get_run(RUN).row_counts == RunRowCounts(metric_aggregate_count=2)


def test_sending_again_after_a_restart_stores_nothing_more(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        with_run(store).append(appended(1)).result()
    with opened(tmp_path) as store:
        assert store.append(appended(1)).result() == 1
        with pytest.raises(AbortedError):
            store.append(appended(1, aggregate("other"))).result()
        with pytest.raises(OutOfRangeError) as caught:
            store.append(appended(3)).result()
        assert caught.value.metadata["expectedSequenceNumber"] == "2"
        assert store.append(appended(2)).result() == 2
        assert store.get_run(RUN).row_counts == RunRowCounts(metric_aggregate_count=2)


def test_other_content_gaps_and_the_wrong_kind_are_refused_and_change_nothing(ingest: Ingest) -> None:
    ingest.append(appended(1)).result()
    with pytest.raises(AbortedError) as conflict:
        ingest.append(appended(1, aggregate("other"))).result()
    assert conflict.value.reason == "WRITER_CONFLICT"
    with pytest.raises(AbortedError):
        ingest.append(appended(1, request_record())).result()
    with pytest.raises(OutOfRangeError) as gap:
        ingest.append(appended(3)).result()
    assert gap.value.reason == "SEQUENCE_GAP"
    assert gap.value.metadata["expectedSequenceNumber"] == "2"
    with pytest.raises(FailedPreconditionError) as kind:
        ingest.open_stream(stream(writer="bench"))
    assert kind.value.reason == "WRITER_KIND_MISMATCH"
    ingest.open_stream(stream()).submit(batch(1)).result()
    with pytest.raises(FailedPreconditionError) as kind:
        ingest.append(appended(2, writer="sampler")).result()
    assert kind.value.reason == "WRITER_KIND_MISMATCH"
    assert ingest.get_run(RUN).row_counts == RunRowCounts(metric_aggregate_count=1, sample_count=3)
    assert ingest.append(appended(2)).result() == 2


def test_one_unary_writer_may_append_every_kind_of_record(ingest: Ingest) -> None:
    for number, record in enumerate(FULL, 1):
        ingest.append(appended(number, record)).result()
    assert ingest.get_run(RUN).row_counts == RunRowCounts(
        request_record_count=1, metric_aggregate_count=1, collective_result_count=1, training_step_count=1
    )


def transaction_sizes(folder: Path) -> list[int]:
    """Appends of each transaction, in order; every look at the test's clock is another instant."""
    return [
        size
        for (size,) in rows(folder, "SELECT count(*) FROM ledger GROUP BY commit_time_utc ORDER BY commit_time_utc")
    ]


def test_what_waits_while_a_commit_runs_makes_up_the_next_one(tmp_path: Path) -> None:
    clock = GatedClock()
    with opened(tmp_path, clock) as store:
        with_run(store)
        clock.close_gate()
        first = store.append(appended(1))
        assert clock.reached.wait(60)
        others = [store.append(appended(number)) for number in range(2, 12)]
        assert not first.done()
        assert not any(future.done() for future in others)
        clock.gate.set()
        assert first.result() == 1
        assert [future.result() for future in others] == list(range(2, 12))
    assert transaction_sizes(tmp_path) == [1, 10]


def test_a_group_ends_at_its_row_limit(tmp_path: Path) -> None:
    clock = GatedClock()
    with opened(tmp_path, clock) as store:
        with_run(store)
        clock.close_gate()
        store.append(appended(1))
        assert clock.reached.wait(60)
        nine_thousand = tuple(aggregate() for _ in range(9_000))
        futures = [store.append(appended(number, *nine_thousand)) for number in (2, 3, 4)]
        clock.gate.set()
        assert futures[-1].result() == 4
    assert transaction_sizes(tmp_path) == [1, 2, 1]


def test_a_full_queue_says_when_to_come_back_and_stores_nothing(tmp_path: Path) -> None:
    clock = GatedClock()
    with opened(tmp_path, clock, queue_row_limit=10) as store:
        with_run(store)
        clock.close_gate()
        running = store.append(appended(1))
        assert clock.reached.wait(60)
        queued = store.append(appended(2, *(aggregate(f"{index}") for index in range(8))))
        with pytest.raises(ResourceExhaustedError) as caught:
            store.append(appended(3, *(aggregate(f"{index}") for index in range(3))))
        assert caught.value.reason == "QUEUE_FULL"
        assert caught.value.retry_delay_seconds is not None
        assert caught.value.retry_delay_seconds > 0
        assert caught.value.metadata["queuedRowCount"] == "8"
        clock.gate.set()
        assert running.result() == 1
        assert queued.result() == 2
        assert store.append(appended(3, *(aggregate(f"{index}") for index in range(3)))).result() == 3
        assert store.get_run(RUN).row_counts.total_row_count == 12


def test_the_queue_is_bounded_by_bytes_too(tmp_path: Path) -> None:
    def wide(number: int) -> AppendRequest:
        value = Spread(mean=1.0)
        return appended(
            number, MetricAggregate(metric=Metric.TTFT_SECONDS, subject="a", value=value, source="x" * 1000)
        )

    clock = GatedClock()
    with opened(tmp_path, clock, queue_byte_limit=4096) as store:
        with_run(store)
        clock.close_gate()
        store.append(appended(1))
        assert clock.reached.wait(60)
        for number in (2, 3, 4):
            store.append(wide(number))
        with pytest.raises(ResourceExhaustedError) as caught:
            store.append(wide(5))
        assert 3000 < int(caught.value.metadata["queuedBytes"]) <= 4096
        clock.gate.set()


def test_an_append_larger_than_the_queue_is_let_in_when_it_is_empty(tmp_path: Path) -> None:
    with opened(tmp_path, queue_row_limit=1, queue_byte_limit=1) as store:
        assert with_run(store).append(appended(1, *(aggregate(f"{index}") for index in range(50)))).result() == 1


def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    writer_count, append_count, record_count = 8, 25, 4
    futures: list[Future[int]] = []
    lock = threading.Lock()

    def write(store: Ingest, writer: str) -> None:
        for number in range(1, append_count + 1):
            records = tuple(aggregate(f"{writer} {number} {index}") for index in range(record_count))
            # Each append is sent twice, as after a lost answer.
            for _ in range(2):
                future = store.append(appended(number, *records, writer=writer))
                with lock:
                    futures.append(future)

    with opened(tmp_path) as store:
        with_run(store)
        threads = [threading.Thread(target=write, args=(store, f"writer-{index}")) for index in range(writer_count)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            counts = store.get_run(RUN).row_counts
            assert counts.total_row_count % record_count == 0
        for thread in threads:
            thread.join()
        assert all(future.exception(60) is None for future in futures)
    expected = writer_count * append_count * record_count
    assert rows(tmp_path, "SELECT count(*), count(DISTINCT subject) FROM metric_aggregates") == [(expected, expected)]
    assert rows(
        tmp_path,
        "SELECT DISTINCT count(*), min(sequence_number), max(sequence_number), sum(row_count)"
        " FROM ledger GROUP BY writer_id",
    ) == [(append_count, 1, append_count, append_count * record_count)]


def test_closing_stores_what_is_queued_and_then_refuses(tmp_path: Path) -> None:
    store = with_run(opened(tmp_path))
    session = store.open_stream(stream())
    futures = [store.append(appended(number)) for number in range(1, 50)]
    store.close()
    store.close()
    assert [future.result(0) >= 1 for future in futures] == [True] * 49
    assert not store.healthy
    for call in (
        lambda: store.append(appended(50)),
        lambda: session.submit(batch(1)),
        lambda: store.get_run(RUN),
        lambda: store.delete_run(RUN),
    ):
        with pytest.raises(UnavailableError) as caught:
            call()
        assert caught.value.reason == "STORE_CLOSED"
    assert rows(tmp_path, "SELECT count(*) FROM metric_aggregates") == [(49,)]


def test_an_append_cannot_be_cancelled_once_it_is_queued(tmp_path: Path) -> None:
    clock = GatedClock()
    with opened(tmp_path, clock) as store:
        with_run(store)
        clock.close_gate()
        future = store.append(appended(1))
        assert not future.cancel()
        clock.gate.set()
        assert future.result() == 1
