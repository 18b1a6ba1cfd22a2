"""The sample stream, message by message, over real channels."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import grpc
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from ingest_service.server import serve as serve_ingest
from ingest_service.service import Ingest, RefusedBatch
from ingest_service.settings import StoreSettings
from ingest_service.transport.ingest_servicer import IngestServicer
from ingest_service.transport.names import INGEST_SERVICE
from ingest_service.transport.sample_stream import LIFETIME_SECONDS, StreamTiming
from ingest_service.transport.store_threads import INLINE_MESSAGE_BYTES, StoreThreads
from linkbound.client.remote.errors import error_of_call, error_of_status
from linkbound.convert import ingest_service as convert
from linkbound.domain.errors import (
    AbortedError,
    Error,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnavailableError,
)
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import (
    BatchOutcome,
    OpenStreamRequest,
    SampleBatch,
    SampleColumns,
    SeriesDescriptor,
    StreamLimits,
)
from linkbound.ingest.v1.ingest_service_pb2 import (
    BatchAck,
    BatchError,
    StreamOpened,
    StreamSamplesRequest,
    StreamSamplesResponse,
)
from linkbound.ingest.v1.ingest_service_pb2 import SampleBatch as SampleBatchMessage
from linkbound.ingest.v1.ingest_service_pb2_grpc import IngestServiceStub, add_IngestServiceServicer_to_server
from linkbound.ingest.v1.run_service_pb2 import SealRunRequest
from linkbound.ingest.v1.run_service_pb2_grpc import RunServiceStub
from serving.builder import ServiceBinding
from serving.settings import ServerSettings
from tests.integration.servers import PATIENCE_SECONDS, Running, ingest_server, running, service_server

if TYPE_CHECKING:
    # These exist for type checkers only.
    from linkbound.ingest.v1.ingest_service_pb2_grpc import IngestServiceAsyncStub

pytestmark = pytest.mark.storage

SERIES = (
    SeriesDescriptor(metric="port_xmit_data", node="node-a", device="mlx5_0", port=1, unit_bytes=4),
    SeriesDescriptor(metric="port_rcv_data", node="node-a", device="mlx5_0", port=1, unit_bytes=4),
)
STORE_FILE = "linkbound.duckdb"


def open_message(**changes: Any) -> StreamSamplesRequest:
    fields: dict[str, Any] = {"run": "r", "writer_id": "sampler", "series": SERIES, **changes}
    return StreamSamplesRequest(open=convert.open_stream_request_to_proto(OpenStreamRequest(**fields)))


def batch_of(number: int, sample_count: int = 3, series_index: int = 0) -> SampleBatch:
    times = tuple(range(number * 1000, number * 1000 + sample_count))
    columns = SampleColumns(series_index=series_index, time_ns=times, value=times)
    return SampleBatch(sequence_number=number, columns=(columns,))


def batch_message(number: int, sample_count: int = 3, series_index: int = 0) -> StreamSamplesRequest:
    return StreamSamplesRequest(batch=convert.sample_batch_to_proto(batch_of(number, sample_count, series_index)))


class Stream:
    """One call, as a client drives it."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        stub: IngestServiceAsyncStub = IngestServiceStub(channel)
        self.call: Any = stub.StreamSamples()

    async def send(self, *messages: StreamSamplesRequest) -> None:
        for message in messages:
            await self.call.write(message)

    async def half_close(self) -> None:
        await self.call.done_writing()

    async def read(self) -> StreamOpened | BatchAck | BatchError | None:
        """The next answer; None at the end of a call that ends well."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            response = await self.call.read()
        if not isinstance(response, StreamSamplesResponse):
            return None
        content: StreamOpened | BatchAck | BatchError = getattr(response, str(response.WhichOneof("message")))
        return content

    async def opened(self, **changes: Any) -> StreamOpened:
        await self.send(open_message(**changes))
        answer = await self.read()
        assert isinstance(answer, StreamOpened)
        return answer

    async def ack_of(self, number: int) -> list[StreamOpened | BatchAck | BatchError | None]:
        """Answers up to the acknowledgement of `number`."""
        answers = []
        while True:
            answer = await self.read()
            answers.append(answer)
            assert answer is not None
            if isinstance(answer, BatchAck) and answer.committed_sequence_number == number:
                return answers

    async def rest(self) -> list[StreamOpened | BatchAck | BatchError]:
        """Answers up to the end of a call that ends well."""
        answers: list[StreamOpened | BatchAck | BatchError] = []
        while (answer := await self.read()) is not None:
            answers.append(answer)
        return answers

    async def error(self) -> Error:
        """The error that the call ends with, whatever comes before."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.rest()
        return error_of_call(caught.value, "the server")


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    with Ingest.open(StoreSettings(path=tmp_path / STORE_FILE)) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))
    async with ingest_server(tmp_path) as running_server:
        yield running_server


@pytest_asyncio.fixture
async def channel(server: Running) -> AsyncIterator[grpc.aio.Channel]:
    async with server.channel() as opened:
        yield opened


def stored_sample_count(folder: Path) -> int:
    with Ingest.open(StoreSettings(path=folder / STORE_FILE)) as ingest:
        return ingest.get_run("r").row_counts.sample_count


async def test_batches_are_acknowledged_after_they_are_stored(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    opened = await stream.opened()
    assert opened.committed_sequence_number == 0
    assert opened.max_in_flight_batches == 16
    assert opened.max_batch_bytes == 2**20
    await stream.send(batch_message(1))
    first = await stream.ack_of(1)
    assert first[-1] == BatchAck(committed_sequence_number=1)
    await stream.send(batch_message(2), batch_message(3))
    await stream.ack_of(3)


async def test_half_close_stores_what_was_sent_and_ends_well(tmp_path: Path) -> None:
    with Ingest.open(StoreSettings(path=tmp_path / STORE_FILE)) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))
    async with ingest_server(tmp_path) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(*(batch_message(number) for number in range(1, 41)))
        await stream.half_close()
        answers = await stream.rest()
        assert await stream.call.code() is grpc.StatusCode.OK
    numbers = [answer.committed_sequence_number for answer in answers if isinstance(answer, BatchAck)]
    assert len(numbers) == len(answers)
    assert numbers == sorted(numbers)
    assert numbers[-1] == 40
    assert stored_sample_count(tmp_path) == 40 * 3


async def test_a_stream_without_batches_ends_well(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.half_close()
    assert await stream.rest() == [BatchAck(committed_sequence_number=0)]


async def test_a_writer_resumes_where_the_store_is(channel: grpc.aio.Channel) -> None:
    first = Stream(channel)
    await first.opened()
    await first.send(batch_message(1), batch_message(2))
    await first.ack_of(2)
    first.call.cancel()

    second = Stream(channel)
    opened = await second.opened(last_acked_sequence_number=1)
    assert opened.committed_sequence_number == 2
    # The acknowledgement of 2 was lost, so it is sent again; it is stored no second time.
    await second.send(batch_message(2), batch_message(3))
    await second.ack_of(3)
    await second.half_close()
    await second.rest()


async def test_a_gap_is_refused_and_the_stream_goes_on(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(batch_message(5))
    refusal = await stream.read()
    assert isinstance(refusal, BatchError)
    assert refusal.sequence_number == 5
    error = error_of_status(refusal.status)
    assert isinstance(error, OutOfRangeError)
    assert error.metadata["expectedSequenceNumber"] == "1"
    await stream.send(batch_message(1))
    await stream.ack_of(1)


async def test_a_number_with_other_samples_is_refused_and_the_stream_goes_on(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(batch_message(1))
    await stream.ack_of(1)
    await stream.send(batch_message(1, sample_count=4))
    refusal = await stream.read()
    assert isinstance(refusal, BatchError)
    error = error_of_status(refusal.status)
    assert isinstance(error, AbortedError)
    assert error.reason == "WRITER_CONFLICT"
    await stream.send(batch_message(2))
    await stream.ack_of(2)


def unequal_columns() -> StreamSamplesRequest:
    message = batch_message(1)
    message.batch.column_set.columns[0].value_deltas.append(1)
    return message


def too_many_columns() -> StreamSamplesRequest:
    message = StreamSamplesRequest()
    message.batch.sequence_number = 1
    for _ in range(1025):
        message.batch.column_set.columns.add()
    return message


@pytest.mark.parametrize(
    "malformed",
    [
        unequal_columns(),
        batch_message(1, series_index=2),
        batch_message(1, series_index=-1),
        batch_message(1, sample_count=2**20),
        too_many_columns(),
    ],
    ids=["unequal columns", "unknown series", "negative series", "above max_batch_bytes", "too many columns"],
)
async def test_a_malformed_batch_uses_up_its_number(channel: grpc.aio.Channel, malformed: StreamSamplesRequest) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(malformed)
    refusal = await stream.read()
    assert isinstance(refusal, BatchError)
    assert refusal.sequence_number == 1
    assert isinstance(error_of_status(refusal.status), InvalidArgumentError)
    await stream.send(batch_message(2))
    await stream.ack_of(2)
    await stream.half_close()
    assert (await stream.rest())[-1] == BatchAck(committed_sequence_number=2)


async def test_an_encoding_that_is_not_known_is_refused_and_not_taken_for_an_empty_batch(
    channel: grpc.aio.Channel,
) -> None:
    stream = Stream(channel)
    await stream.opened()
    message = StreamSamplesRequest()
    message.batch.sequence_number = 1
    # Field 15, which is not one of this version's, with two bytes.
    message.batch.MergeFromString(b"\x7a\x02ab")
    await stream.send(message)
    refusal = await stream.read()
    assert isinstance(refusal, BatchError)
    error = error_of_status(refusal.status)
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == ["batch.content"]
    await stream.send(batch_message(2))
    await stream.ack_of(2)


async def test_what_is_refused_is_in_the_ledger_and_other_content_is_a_conflict(tmp_path: Path) -> None:
    settings = StoreSettings(path=tmp_path / STORE_FILE, max_batch_bytes=1024)
    with Ingest.open(settings) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))
        serve = partial(serve_ingest, ServerSettings(), ingest)
        async with (
            running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server,
            server.channel() as channel,
        ):
            stream = Stream(channel)
            await stream.opened()
            answers = []
            for message in (batch_message(1, 2000), batch_message(1, 2000), batch_message(1, 2001)):
                await stream.send(message)
                answers.append(await stream.read())
            await stream.send(StreamSamplesRequest(batch=SampleBatchMessage(sequence_number=1)))
            answers.append(await stream.read())
    errors = [error_of_status(answer.status) for answer in answers if isinstance(answer, BatchError)]
    assert [type(error) for error in errors] == [
        InvalidArgumentError,
        InvalidArgumentError,
        AbortedError,
        AbortedError,
    ]
    with duckdb.connect(str(settings.path), read_only=True) as connection:
        ledger = connection.execute("SELECT row_count, rejected_row_count, rejection_message FROM ledger").fetchall()
    assert ledger == [(0, 2000, errors[0].message)]


async def test_a_malformed_batch_at_the_end_is_part_of_the_last_acknowledgement(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(batch_message(1), StreamSamplesRequest(batch=batch_message(2, series_index=9).batch))
    await stream.half_close()
    assert (await stream.rest())[-1] == BatchAck(committed_sequence_number=2)


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63)])
async def test_a_number_that_is_none_is_refused(channel: grpc.aio.Channel, number: int) -> None:
    stream = Stream(channel)
    await stream.opened()
    message = batch_message(1)
    message.batch.sequence_number = number
    await stream.send(message)
    refusal = await stream.read()
    assert isinstance(refusal, BatchError)
    assert refusal.sequence_number == number
    error = error_of_status(refusal.status)
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == ["sequence_number"]
    await stream.send(batch_message(1))
    await stream.ack_of(1)


async def test_samples_that_are_not_stored_are_counted_once(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.opened()
    backwards = SampleBatch(
        sequence_number=1,
        columns=(SampleColumns(series_index=0, time_ns=(1000, 999, 1001), value=(1, 2, 3)),),
    )
    await stream.send(StreamSamplesRequest(batch=convert.sample_batch_to_proto(backwards)))
    (ack,) = await stream.ack_of(1)
    assert isinstance(ack, BatchAck)
    assert ack.rejected_sample_count == 1
    assert ack.rejection_message
    await stream.half_close()
    assert await stream.rest() == [BatchAck(committed_sequence_number=1)]


async def test_the_end_of_a_run_ends_its_streams(channel: grpc.aio.Channel, server: Running) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(batch_message(1))
    await stream.ack_of(1)
    runs: Any = RunServiceStub(channel)
    await runs.SealRun(SealRunRequest(run="r"))
    await stream.send(batch_message(2))
    error = await stream.error()
    assert isinstance(error, FailedPreconditionError)
    assert error.reason == "RUN_SEALED"


@pytest.mark.parametrize(
    ("messages", "fields"),
    [
        ([], ["open"]),
        ([StreamSamplesRequest()], ["open"]),
        ([batch_message(1)], ["open"]),
        ([open_message(), open_message()], ["batch"]),
        ([open_message(), StreamSamplesRequest()], ["batch"]),
    ],
    ids=["nothing", "empty", "batch first", "opened twice", "empty later"],
)
async def test_messages_out_of_order(
    channel: grpc.aio.Channel, messages: Sequence[StreamSamplesRequest], fields: list[str]
) -> None:
    stream = Stream(channel)
    await stream.send(*messages)
    if not messages:
        await stream.half_close()
    error = await stream.error()
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == fields


async def test_an_opening_with_violations(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    message = StreamSamplesRequest()
    message.open.series.add(unit_bytes=-1)
    await stream.send(message)
    error = await stream.error()
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == [
        "run",
        "writer_id",
        "series[0].metric",
        "series[0].node",
        "series[0].unit_bytes",
    ]


async def test_a_run_that_does_not_exist(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.send(open_message(run="other"))
    assert isinstance(await stream.error(), NotFoundError)


async def test_acknowledged_data_that_is_gone(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.send(open_message(last_acked_sequence_number=7))
    error = await stream.error()
    assert isinstance(error, FailedPreconditionError)
    assert error.reason == "ACKED_DATA_MISSING"


async def test_bytes_that_are_no_message_end_the_stream(channel: grpc.aio.Channel) -> None:
    call: Any = channel.stream_stream(f"/{INGEST_SERVICE}/StreamSamples")()
    await call.write(open_message().SerializeToString())
    assert StreamSamplesResponse.FromString(await call.read()).HasField("opened")
    await call.write(b"\xff\xff\xff")
    # What is durable is acknowledged first.
    assert StreamSamplesResponse.FromString(await call.read()).HasField("ack")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call.read()
    error = error_of_call(caught.value, "the server")
    assert isinstance(error, InvalidArgumentError)
    assert error.reason == "MALFORMED_MESSAGE"


async def test_shutdown_stores_acknowledges_and_then_ends_the_stream(tmp_path: Path) -> None:
    with Ingest.open(StoreSettings(path=tmp_path / STORE_FILE)) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))
    async with ingest_server(tmp_path) as server, server.channel() as channel:
        idle = Stream(channel)
        await idle.opened(writer_id="idle")
        silent = Stream(channel)
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1), batch_message(2))
        await stream.ack_of(2)
        server.stop.set()
        last = await stream.read()
        assert last == BatchAck(committed_sequence_number=2)
        error = await stream.error()
        assert isinstance(error, UnavailableError)
        assert error.reason == "SHUTTING_DOWN"
        assert (await idle.error()).reason == "SHUTTING_DOWN"
        assert isinstance(await silent.error(), UnavailableError)
        # Nothing keeps the server: it stops long before its grace is over.
        async with asyncio.timeout(PATIENCE_SECONDS):
            await server.task
    assert stored_sample_count(tmp_path) == 6


async def test_one_log_line_for_a_stream_with_what_it_stored(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    messages = [open_message(), batch_message(1), batch_message(2)]
    with capture_logs() as logs:
        await stream.send(*messages)
        await stream.half_close()
        await stream.rest()
        await stream.call.code()
    (line,) = [line for line in logs if line["event"] == "rpc_finished"]
    assert (line["rpc"], line["code"], line["rows"]) == (f"{INGEST_SERVICE}/StreamSamples", "OK", 6)
    assert line["request_bytes"] == sum(message.ByteSize() for message in messages)


class SlowStore:
    """A store whose commits happen when the test says so."""

    def __init__(self, max_in_flight_batches: int) -> None:
        self.committed_sequence_number = 0
        self.limits = StreamLimits(max_in_flight_batches=max_in_flight_batches, max_batch_bytes=2**20)
        self.submitted: list[tuple[int, Future[BatchOutcome]]] = []
        self.refusals: list[Error] = []
        self.refused: list[RefusedBatch] = []
        self.thread_names: list[str] = []
        self.closed = threading.Event()
        self._submitted = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def open_stream(self, _request: OpenStreamRequest) -> SlowStore:
        return self

    def submit(self, batch: SampleBatch) -> Future[BatchOutcome]:
        if self.refusals:
            raise self.refusals.pop(0)
        outcome: Future[BatchOutcome] = Future()
        self.thread_names.append(threading.current_thread().name)
        self.submitted.append((batch.sequence_number, outcome))
        self._loop.call_soon_threadsafe(self._submitted.set)
        return outcome

    def refuse(self, batch: RefusedBatch) -> Future[BatchOutcome]:
        outcome: Future[BatchOutcome] = Future()
        self.submitted.append((batch.sequence_number, outcome))
        self.refused.append(batch)
        self._loop.call_soon_threadsafe(self._submitted.set)
        return outcome

    async def holds(self, count: int) -> None:
        """Wait until `count` batches came."""
        while len(self.submitted) < count:
            self._submitted.clear()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._submitted.wait()

    def close(self) -> None:
        self.closed.set()

    def commit(self, number: int) -> None:
        (outcome,) = [future for submitted, future in self.submitted if submitted == number]
        outcome.set_result(BatchOutcome(committed_sequence_number=number))

    def fail(self, number: int, error: Error) -> None:
        (outcome,) = [future for submitted, future in self.submitted if submitted == number]
        outcome.set_exception(error)

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.submitted]


def stream_server(store: Any, timing: StreamTiming) -> Any:
    servicer = IngestServicer(store, StoreThreads(), asyncio.Event(), lambda: timing)
    return service_server(ServiceBinding(INGEST_SERVICE, partial(add_IngestServiceServicer_to_server, servicer)))


QUICK_ACKS = StreamTiming(ack_interval_seconds=0.01)


async def test_no_more_batches_are_taken_than_may_be_under_way() -> None:
    store = SlowStore(max_in_flight_batches=2)
    async with stream_server(store, QUICK_ACKS) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(*(batch_message(number) for number in range(1, 6)))
        # Each acknowledgement shows that the server had time to take more.
        for _ in range(5):
            assert await stream.read() == BatchAck(committed_sequence_number=0)
        assert store.numbers == [1, 2]
        store.commit(1)
        await stream.ack_of(1)
        for _ in range(5):
            assert await stream.read() == BatchAck(committed_sequence_number=1)
        assert store.numbers == [1, 2, 3]
        stream.call.cancel()


async def test_while_a_batch_is_under_way_acknowledgements_keep_coming() -> None:
    store = SlowStore(max_in_flight_batches=2)
    async with stream_server(store, QUICK_ACKS) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1))
        for _ in range(3):
            assert await stream.read() == BatchAck(committed_sequence_number=0)
        store.commit(1)
        await stream.ack_of(1)
        stream.call.cancel()


async def test_batches_that_are_durable_together_share_an_acknowledgement() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1), batch_message(2), batch_message(3))
        await store.holds(3)
        for number in (1, 2, 3):
            store.commit(number)
        assert await stream.read() == BatchAck(committed_sequence_number=3)
        stream.call.cancel()


async def test_a_malformed_batch_is_refused_once_its_number_is_used_up() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, QUICK_ACKS) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1, sample_count=2**20))
        await store.holds(1)
        for _ in range(3):
            assert await stream.read() == BatchAck(committed_sequence_number=0)
        (refused,) = store.refused
        assert (refused.sequence_number, refused.sample_count) == (1, 2**20)
        store.fail(1, refused.error)
        while isinstance(answer := await stream.read(), BatchAck):
            assert answer.committed_sequence_number == 0
        assert isinstance(answer, BatchError)
        await stream.half_close()
        assert (await stream.rest())[-1] == BatchAck(committed_sequence_number=1)


LARGE_SAMPLE_COUNT = INLINE_MESSAGE_BYTES
"""Each sample takes at least a byte."""


async def test_large_batches_are_worked_on_beside_the_event_loop_and_stay_in_order() -> None:
    store = SlowStore(max_in_flight_batches=64)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        sizes = [LARGE_SAMPLE_COUNT if number % 3 else 1 for number in range(1, 31)]
        await stream.send(*(batch_message(number, sample_count=size) for number, size in enumerate(sizes, 1)))
        await store.holds(30)
        assert store.numbers == list(range(1, 31))
        on_loop = [name == threading.current_thread().name for name in store.thread_names]
        assert on_loop == [size == 1 for size in sizes]
        stream.call.cancel()


async def test_a_full_queue_makes_the_stream_wait() -> None:
    store = SlowStore(max_in_flight_batches=8)
    full = partial(ResourceExhaustedError, "full", reason="QUEUE_FULL", retry_delay_seconds=0.01)
    store.refusals = [full(), full(), full()]
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1), batch_message(2))
        await store.holds(2)
        assert store.numbers == [1, 2]
        store.commit(1)
        store.commit(2)
        await stream.ack_of(2)
        await stream.half_close()
        await stream.rest()
    assert store.closed.is_set()


async def test_a_full_disk_ends_the_stream_after_what_is_durable() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1), batch_message(2))
        await store.holds(2)
        store.commit(1)
        store.fail(2, ResourceExhaustedError("full", reason="DISK_FULL"))
        assert await stream.read() == BatchAck(committed_sequence_number=1)
        error = await stream.error()
    assert isinstance(error, ResourceExhaustedError)
    assert (error.reason, error.retry_delay_seconds) == ("DISK_FULL", None)


async def test_a_fault_of_the_store_is_internal_and_says_nothing() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1))
        await store.holds(1)
        store.submitted[0][1].set_exception(RuntimeError("secret"))
        with capture_logs() as logs:
            error = await stream.error()
    assert error.code == "INTERNAL"
    assert "secret" not in error.message
    assert error.request_id in error.message
    assert [line["event"] for line in logs] == ["rpc_failed", "rpc_finished"]


async def test_an_old_stream_is_ended_and_can_be_opened_again() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming(lifetime_seconds=0.01)) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        error = await stream.error()
    assert isinstance(error, UnavailableError)
    assert error.reason == "STREAM_RECYCLED"


async def test_a_client_that_goes_away_leaves_the_session_closed() -> None:
    store = SlowStore(max_in_flight_batches=8)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1))
        await store.holds(1)
        stream.call.cancel()
        assert await asyncio.to_thread(store.closed.wait, PATIENCE_SECONDS)
        # What was taken is still stored.
        assert not store.submitted[0][1].cancelled()


def test_lifetimes_are_spread() -> None:
    drawn = {StreamTiming.drawn().lifetime_seconds for _ in range(50)}
    assert len(drawn) > 1
    assert all(0.9 * LIFETIME_SECONDS <= seconds <= 1.1 * LIFETIME_SECONDS for seconds in drawn)
