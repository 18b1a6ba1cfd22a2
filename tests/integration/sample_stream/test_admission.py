"""What comes beyond the limits is sent away with advice, before it is read; and what waits takes little."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ingest_service.service import Ingest
from ingest_service.settings import AdmissionSettings, StoreSettings
from ingest_service.transport.sample_stream import StreamTiming
from linkbound.client.remote.errors import error_of_call
from linkbound.domain.errors import Error, InvalidArgumentError, ResourceExhaustedError
from linkbound.domain.run import CreateRunRequest
from linkbound.ingest.v1.ingest_service_pb2 import AppendTrainingStepsRequest, BatchAck
from linkbound.ingest.v1.ingest_service_pb2_grpc import IngestServiceStub
from linkbound.ingest.v1.records_pb2 import TrainingStep
from serving.errors import PUSHBACK_KEY
from tests.integration.probes import NOT_SERVING, SERVING
from tests.integration.sample_stream.calls import STORE_FILE, Stream, batch_message
from tests.integration.sample_stream.slow_store import SlowStore, stream_server
from tests.integration.servers import PATIENCE_SECONDS, ingest_server
from tests.new_store import laid

pytestmark = pytest.mark.storage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Ingest.open(StoreSettings(path=laid(tmp_path / STORE_FILE))) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))
    return tmp_path


async def refusal_of(call: Any) -> tuple[Error, dict[str, Any]]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return error_of_call(caught.value, "the server"), dict(caught.value.trailing_metadata() or ())


def steps(number: int, source: str = "") -> AppendTrainingStepsRequest:
    record = TrainingStep(subject="full", node_count=1, step_seconds=1.0, source=source)
    return AppendTrainingStepsRequest(run="r", writer_id="bench", sequence_number=number, records=[record])


async def test_one_stream_too_many_is_told_when_to_come_again_and_is_taken_then(folder: Path) -> None:
    async with (
        ingest_server(folder, admission=AdmissionSettings(max_streams=2)) as server,
        server.channel() as channel,
    ):
        streams = [Stream(channel) for _ in range(2)]
        for index, stream in enumerate(streams):
            await stream.opened(writer_id=f"w{index}")
        error, trailers = await refusal_of(Stream(channel).call.read())
        assert isinstance(error, ResourceExhaustedError)
        assert error.reason == "TOO_MANY_STREAMS"
        assert error.retry_delay_seconds == 1.0
        assert trailers[PUSHBACK_KEY] == "1000"
        # The others go on, and what they leave is taken.
        await streams[0].send(batch_message(1))
        await streams[0].ack_of(1)
        await streams[1].half_close()
        await streams[1].rest()
        await Stream(channel).opened(writer_id="late")


async def test_a_call_that_says_nothing_does_not_count_as_a_stream_for_ever() -> None:
    store = SlowStore(max_in_flight_batches=2)
    async with stream_server(store, StreamTiming(open_limit_seconds=0.01)) as server, server.channel() as channel:
        error = await Stream(channel).error()
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == ["open"]


async def test_one_append_too_many_is_told_when_to_come_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()
    to_thread = asyncio.get_running_loop().call_soon_threadsafe
    append = Ingest.append

    def held(ingest: Ingest, request: Any) -> Any:
        to_thread(started.set)
        return append(ingest, request)

    monkeypatch.setattr(Ingest, "append", held)
    monkeypatch.setattr("ingest_service.transport.ingest_servicer.asyncio.wrap_future", partial(_after, go_on))
    async with (
        ingest_server(folder, admission=AdmissionSettings(max_appends=1)) as server,
        server.channel() as channel,
    ):
        stub: Any = IngestServiceStub(channel)
        first = asyncio.ensure_future(stub.AppendTrainingSteps(steps(1)))
        await asyncio.wait_for(started.wait(), PATIENCE_SECONDS)
        # Another kind of record counts to the same limit, and one that could not even be decoded too: it is not read.
        method: Any = channel.unary_unary("/linkbound.ingest.v1.IngestService/AppendEvents")
        undecodable = method(b"\xff\xff")
        for call in (stub.AppendTrainingSteps(steps(2)), undecodable):
            error, trailers = await refusal_of(call)
            assert isinstance(error, ResourceExhaustedError)
            assert error.reason == "QUEUE_FULL"
            assert error.retry_delay_seconds == 0.2
            assert trailers[PUSHBACK_KEY] == "200"
        go_on.set()
        assert (await first).committed_sequence_number == 1
        assert (await stub.AppendTrainingSteps(steps(2))).committed_sequence_number == 2


def _after(event: asyncio.Event, future: Any) -> Any:
    async def wait() -> Any:
        await event.wait()
        return await asyncio.futures.wrap_future(future)

    return wait()


async def test_a_disk_without_room_refuses_appends_and_says_so_to_probes_while_reads_go_on(folder: Path) -> None:
    async with (
        ingest_server(folder, free_space_floor_bytes=2**50) as server,
        server.channel() as channel,
    ):
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(service="linkbound.ingest.v1.IngestService"))
        while (await watch.read()).status != NOT_SERVING:
            continue
        for service in ("linkbound.ingest.v1.QueryService", "linkbound.ingest.v1.RunService", ""):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == SERVING
        stub: Any = IngestServiceStub(channel)
        error, trailers = await refusal_of(stub.AppendTrainingSteps(steps(1)))
        assert isinstance(error, ResourceExhaustedError)
        assert (error.reason, error.retry_delay_seconds) == ("DISK_FULL", None)
        assert PUSHBACK_KEY not in trailers
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1))
        assert (await stream.error()).reason == "DISK_FULL"


async def test_a_client_that_reads_no_answers_is_not_read_either() -> None:
    store = SlowStore(max_in_flight_batches=2)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(*(batch_message(number) for number in range(1, 9)))
        await store.holds(2)
        other = Stream(channel)
        await other.opened()
        # Nothing was answered, so nothing more was taken, however often the loop came round for others meanwhile.
        assert store.numbers == [1, 2]
        stream.call.cancel()
        other.call.cancel()


async def test_answers_that_nobody_reads_do_not_pile_up() -> None:
    store = SlowStore(max_in_flight_batches=4)
    async with stream_server(store, StreamTiming()) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(batch_message(1))
        await store.holds(1)
        assert store.listener is not None
        # A thousand news while nobody looks are one answer: the last.
        for number in range(1, 1001):
            store.listener.on_checkpointed(number)
        store.commit(1)
        answers: list[Any] = []
        while answers[-1:] != [BatchAck(committed_sequence_number=1, checkpointed_sequence_number=1)]:
            answers.append(await stream.read())
        assert len(answers) <= 3
        stream.call.cancel()
