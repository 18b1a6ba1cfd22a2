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
from ingest_service.store.public_views import public_tables
from ingest_service.store.reader import Reader
from ingest_service.store.record_tables import EVENTS, LINK_TESTS
from ingest_service.store.run_scope import RunScope
from ingest_service.store.sealed_folder import SealedFolder
from ingest_service.store.writer import GROUP_ROW_LIMIT
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
    AppendOutcome,
    AppendRequest,
    CollectiveResult,
    Event,
    LinkTest,
    LinkTestDirection,
    ListRequestRecordsRequest,
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
    LinkTest(
        subject="spark1 to spark2",
        tool="ib_write_bw",
        source_node="spark1",
        destination_node="spark2",
        device="rocep1s0f0",
        direction=LinkTestDirection.ONE_WAY,
        message_bytes=65_536,
        bits_per_second=1.11e11,
        latency_seconds=2.1e-6,
        mtu_bytes=4096,
        source="6.1",
    ),
    Event(
        kind="clock_anchor",
        subject="spark1",
        node="spark1",
        boot_id="b1",
        time_ns=2**63 - 1,
        time_unix_ns=1_767_225_600_000_000_000,
        event_count=2**62,
        text="both clocks",
    ),
)
BARE: tuple[Record, ...] = (
    RequestRecord(subject="é", round_index=0, request_index=0, prompt_tokens=1, output_tokens=0, send_ns=0),
    MetricAggregate(metric=Metric.TTFT_SECONDS, subject="x", value=Spread(mean=1e-9)),
    CollectiveResult(subject="x", rank_count=2, bus_bandwidth_bytes_per_second=1.0),
    TrainingStep(subject="x", node_count=1, elapsed_seconds=1.0),
    LinkTest(subject="x", tool="ping", latency_seconds=1e-4),
    Event(kind="note"),
)


TABLES = ("requests", "metric_aggregates", "collectives", "training_steps", "link_tests", "events")


def flat(record: Record) -> tuple[object, ...]:
    """The record's fields in their order, nested ones in place, enums by name; without what other columns say."""
    values: list[object] = []
    for name, value in attrs.asdict(record, recurse=False).items():
        if name in ("chunk_offset_ns", "chunk_tokens", "writer_id"):
            continue
        if isinstance(value, Spread):
            values += attrs.astuple(value)
        else:
            values.append(value.name if isinstance(value, Enum) else value)
    return tuple(values)


@pytest.mark.parametrize(("table", "full", "bare"), list(zip(TABLES, FULL, BARE, strict=True)))
def test_every_field_of_a_record_is_stored(tmp_path: Path, table: str, full: Record, bare: Record) -> None:
    with opened(tmp_path) as store:
        assert with_run(store).append(appended(1, full, bare)).result().committed_sequence_number == 1
        assert store.get_run(RUN).row_counts.total_row_count == 2
    assert rows(tmp_path, f"SELECT * FROM hot.{table} ORDER BY rowid") == [
        (RUN, "bench", 1, 0, *flat(full)),
        (RUN, "bench", 1, 1, *flat(bare)),
    ]


def test_records_are_read_back_as_they_were_appended(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        with_run(store)
        for number, (full, bare) in enumerate(zip(FULL, BARE, strict=True), 1):
            store.append(appended(number, full, bare)).result()
    with duckdb.connect(str(tmp_path / "linkbound.duckdb")) as connection:
        scope = RunScope.of(SealedFolder.beside(tmp_path / "linkbound.duckdb"), public_tables(connection))
        _, stored = Reader(connection, StoreCondition(), scope).read_measured(RUN)
    kinds = (stored.requests, stored.aggregates, stored.collectives, stored.training_steps)
    assert kinds == tuple(zip(FULL[:4], BARE[:4], strict=True))
    with duckdb.connect(str(tmp_path / "linkbound.duckdb")) as connection:
        assert LINK_TESTS.select(connection, RUN) == (FULL[4], BARE[4])
        assert EVENTS.select(connection, RUN) == (FULL[5], BARE[5])


CHUNKED = RequestRecord(
    subject="P4",
    round_index=1,
    request_index=2,
    prompt_tokens=8192,
    output_tokens=5,
    ttft_ns=10,
    last_token_ns=30,
    first_chunk_tokens=3,
    chunk_offset_ns=(10, 20, 30),
    chunk_tokens=(3, 1, 1),
)


def test_chunks_of_tokens_are_stored_with_their_requests_and_are_no_rows_of_their_own(tmp_path: Path) -> None:
    single = attrs.evolve(CHUNKED, request_index=3, output_tokens=3, first_chunk_tokens=None, chunk_tokens=())
    with opened(tmp_path) as store:
        with_run(store).append(appended(1, request_record(), CHUNKED, single)).result()
        store.append(appended(2, attrs.evolve(single, subject="P1"))).result()
        # A repetition stores nothing twice; other chunks under the same number are other content.
        assert store.append(appended(1, request_record(), CHUNKED, single)).result().committed_sequence_number == 1
        with pytest.raises(AbortedError):
            store.append(appended(1, request_record(), CHUNKED, CHUNKED)).result()
        assert store.get_run(RUN).row_counts == RunRowCounts(request_record_count=4, chunk_count=9)
        assert store.get_run(RUN).row_counts.total_row_count == 4
        page = store.list_request_records(ListRequestRecordsRequest(run=RUN, subject="P4"))
        assert [record.chunk_offset_ns for record in page.entries] == [(), ()]
    assert rows(tmp_path, "SELECT * EXCLUDE (stored_index) FROM tokens ORDER BY stored_index") == [
        *((RUN, "bench", 1, 1, "P4", 1, 2, *chunk) for chunk in ((0, 10, 3), (1, 20, 1), (2, 30, 1))),
        *((RUN, "bench", 1, 2, "P4", 1, 3, *chunk) for chunk in ((0, 10, 1), (1, 20, 1), (2, 30, 1))),
        *((RUN, "bench", 2, 0, "P1", 1, 3, *chunk) for chunk in ((0, 10, 1), (1, 20, 1), (2, 30, 1))),
    ]
    assert rows(tmp_path, "SELECT sequence_number, row_count FROM ledger ORDER BY 1") == [(1, 3), (2, 1)]


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
        assert ingest.append(appended(1)).result().committed_sequence_number == 1
    ingest.append(appended(2)).result()
    assert ingest.append(appended(1)).result().committed_sequence_number == 1
    assert ingest.get_run(RUN).row_counts == RunRowCounts(metric_aggregate_count=2)


def test_sending_again_after_a_restart_stores_nothing_more(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        with_run(store).append(appended(1)).result()
    with opened(tmp_path) as store:
        assert store.append(appended(1)).result().committed_sequence_number == 1
        with pytest.raises(AbortedError):
            store.append(appended(1, aggregate("other"))).result()
        with pytest.raises(OutOfRangeError) as caught:
            store.append(appended(3)).result()
        assert caught.value.metadata["expectedSequenceNumber"] == "2"
        assert store.append(appended(2)).result().committed_sequence_number == 2
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
    assert ingest.append(appended(2)).result().committed_sequence_number == 2


def test_one_unary_writer_may_append_every_kind_of_record(ingest: Ingest) -> None:
    for number, record in enumerate(FULL, 1):
        ingest.append(appended(number, record)).result()
    assert ingest.get_run(RUN).row_counts == RunRowCounts(
        request_record_count=1,
        metric_aggregate_count=1,
        collective_result_count=1,
        training_step_count=1,
        link_test_count=1,
        event_count=1,
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
        assert first.result().committed_sequence_number == 1
        assert [future.result().committed_sequence_number for future in others] == list(range(2, 12))
    assert transaction_sizes(tmp_path) == [1, 10]


def test_a_group_ends_at_its_row_limit(tmp_path: Path) -> None:
    clock = GatedClock()
    with opened(tmp_path, clock) as store:
        with_run(store)
        clock.close_gate()
        store.append(appended(1))
        assert clock.reached.wait(60)
        records = tuple(aggregate() for _ in range(9_000))
        fitting = GROUP_ROW_LIMIT // len(records)
        futures = [store.append(appended(number, *records)) for number in range(2, 2 + fitting + 1)]
        clock.gate.set()
        assert futures[-1].result().committed_sequence_number == 2 + fitting
    assert transaction_sizes(tmp_path) == [1, fitting, 1]


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
        assert running.result().committed_sequence_number == 1
        assert queued.result().committed_sequence_number == 2
        assert (
            store.append(appended(3, *(aggregate(f"{index}") for index in range(3)))).result().committed_sequence_number
            == 3
        )
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
        assert (
            with_run(store)
            .append(appended(1, *(aggregate(f"{index}") for index in range(50))))
            .result()
            .committed_sequence_number
            == 1
        )


def test_many_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    writer_count, append_count, record_count = 8, 25, 4
    futures: list[Future[AppendOutcome]] = []
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
    assert [future.result(0).committed_sequence_number >= 1 for future in futures] == [True] * 49
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
        assert future.result().committed_sequence_number == 1
