"""Sweeps as a server runs them: long ones, ones that nobody reads to the end, ones that outlive their server."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import grpc
import pytest
import pytest_asyncio
from attrs import evolve
from structlog.testing import capture_logs

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.server import serve as serve_estimator
from estimator_service.service import Estimator, default_estimator
from linkbound import AsyncEstimatorClient, EstimatorClient, SweepAxis, SweepColumns, SweepRange, SweepVariable
from linkbound.client.remote.errors import error_of_call
from linkbound.client.remote.estimator_streams import STREAM_SWEEP
from linkbound.convert.sweep import sweep_request_to_proto
from linkbound.domain.link import Link
from linkbound.domain.sweep import SweepRequest
from linkbound.domain.workload import PrefillWorkload
from linkbound.estimator.v1.sweep_pb2 import StreamSweepRequest, StreamSweepResponse
from serving.settings import ServerSettings
from tests.bound import bounded
from tests.integration.probes import ESTIMATOR_SERVICES, SERVING, health_of, models_of
from tests.integration.replaceable import Replaceable
from tests.integration.servers import PATIENCE_SECONDS, Running, running

WORKLOAD = PrefillWorkload(model="glm-5.3", tensor_parallel_size=8, prompt_tokens=1)
LINK = Link(line_rate_bits_per_second=200 * 10**9)


def request_of(point_count: int, **fields: Any) -> SweepRequest:
    """Prompts of 1, 2, ... tokens, by as many request counts as it takes."""
    tokens = min(point_count, 10**6)
    axes = (
        SweepAxis(
            variable=SweepVariable.LINK_BITS_PER_SECOND,
            range=SweepRange(first=1, step=1, value_count=point_count // tokens),
        ),
        SweepAxis(variable=SweepVariable.PROMPT_TOKENS, range=SweepRange(first=1, step=1, value_count=tokens)),
    )
    return SweepRequest(workload=WORKLOAD, link=LINK, axes=axes, **fields)


ENDLESS = request_of(10**12)


class CountingEstimator(Estimator):
    """Counts the stretches that were computed, and notes when a sweep is let go of."""

    def __init__(self) -> None:
        super().__init__(Catalog(SHIPPED_DIRECTORY))
        self.stretch_count = 0
        self.was_let_go = threading.Event()

    def stream_sweep(self, request: SweepRequest) -> Iterator[SweepColumns]:
        stretches = super().stream_sweep(request)

        def counted() -> Iterator[SweepColumns]:
            try:
                for columns in stretches:
                    self.stretch_count += 1
                    yield columns
            finally:
                self.was_let_go.set()

        return counted()


@pytest.fixture
def estimator() -> CountingEstimator:
    return CountingEstimator()


@pytest_asyncio.fixture
async def server(estimator: CountingEstimator) -> AsyncIterator[Running]:
    serve = partial(serve_estimator, ServerSettings(grace_seconds=1), estimator)
    async with running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server:
        yield server


def sweep_call(channel: grpc.aio.Channel, request: SweepRequest, **arguments: Any) -> Any:
    method: Any = channel.unary_stream(
        STREAM_SWEEP.path,
        request_serializer=StreamSweepRequest.SerializeToString,
        response_deserializer=StreamSweepResponse.FromString,
    )
    return method(sweep_request_to_proto(request), **arguments)


async def was_let_go(estimator: CountingEstimator) -> bool:
    return await asyncio.to_thread(estimator.was_let_go.wait, PATIENCE_SECONDS)


async def until_held_back(estimator: CountingEstimator) -> None:
    earlier = -1
    async with asyncio.timeout(PATIENCE_SECONDS):
        while estimator.stretch_count != earlier:
            earlier = estimator.stretch_count
            await asyncio.sleep(1)


async def read_to_end(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


async def test_a_sweep_that_is_cancelled_is_let_go_of(server: Running, estimator: CountingEstimator) -> None:
    with capture_logs() as lines:
        async with server.channel() as channel:
            call = sweep_call(channel, ENDLESS)
            assert (await call.read()).start_index == 0
            call.cancel()
            assert await was_let_go(estimator)
    (line,) = [line for line in lines if line["event"] == "rpc_finished"]
    assert line["code"] == "CANCELLED"
    assert line["rows"] % ENDLESS.points_per_response == 0


async def test_a_sweep_ends_at_its_deadline(server: Running, estimator: CountingEstimator) -> None:
    async with server.channel() as channel:
        call = sweep_call(channel, ENDLESS, timeout=0.5)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await read_to_end(call)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert await was_let_go(estimator)


async def test_a_client_that_does_not_read_holds_its_sweep_back(server: Running, estimator: CountingEstimator) -> None:
    async with server.channel() as channel:
        call = sweep_call(channel, evolve(ENDLESS, points_per_response=65_536))
        await call.read()
        await until_held_back(estimator)
        # A stretch has 1 MB; what is under way are the windows of HTTP/2 and the buffers of two sockets.
        assert estimator.stretch_count < 64
        call.cancel()


async def test_other_calls_are_answered_while_sweeps_run(server: Running, estimator: CountingEstimator) -> None:
    async with server.channel() as channel, server.channel() as other:
        calls = [sweep_call(channel, ENDLESS) for _ in range(4)]
        reading = [asyncio.ensure_future(read_to_end(call)) for call in calls]
        for _ in range(20):
            assert [await health_of(other, service) for service in ESTIMATOR_SERVICES] == [SERVING] * 3
            assert await models_of(other) > 0
        assert estimator.stretch_count > len(calls)
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


async def test_a_sweep_ends_between_two_answers_when_the_server_stops(server: Running) -> None:
    async with server.channel() as channel:
        call = sweep_call(channel, ENDLESS)
        await call.read()
        server.stop.set()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await read_to_end(call)
    error = error_of_call(caught.value, "the server")
    assert (error.code, error.reason) == ("UNAVAILABLE", "SHUTTING_DOWN")


async def test_a_server_stops_although_a_client_does_not_read(server: Running, estimator: CountingEstimator) -> None:
    async with server.channel() as channel:
        call = sweep_call(channel, ENDLESS)
        await call.read()
        await until_held_back(estimator)
        server.stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await server.task
        call.cancel()


def columns_by_start(columns: Iterator[SweepColumns]) -> dict[int, SweepColumns]:
    return {one.start_index: one for one in columns}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_sweep_outlives_its_server(replaceable: Replaceable, number: signal.Signals) -> None:
    request = request_of(10**6)
    expected = columns_by_start(default_estimator().stream_sweep(request))
    received: dict[int, SweepColumns] = {}
    with bounded(), EstimatorClient(replaceable.target) as client:
        for columns in client.stream_sweep(workload=WORKLOAD, link=LINK, axes=request.axes):
            received[columns.start_index] = columns
            if len(received) in (5, 20):
                replaceable.stop(number)
                replaceable.start()
    assert received == expected


async def test_an_asyncio_sweep_outlives_its_server(replaceable: Replaceable) -> None:
    request = request_of(10**6)
    received: dict[int, SweepColumns] = {}
    async with asyncio.timeout(PATIENCE_SECONDS), AsyncEstimatorClient(replaceable.target) as client:
        async for columns in client.stream_sweep(workload=WORKLOAD, link=LINK, axes=request.axes):
            received[columns.start_index] = columns
            if len(received) == 5:
                replaceable.stop(signal.SIGKILL)
                replaceable.start()
    assert received == columns_by_start(default_estimator().stream_sweep(request))


def test_the_memory_of_a_server_does_not_grow_with_a_sweep(replaceable: Replaceable) -> None:
    with bounded(), EstimatorClient(replaceable.target) as client:
        point_counts, peaks = [], []
        for count in (10**6, 10 * 10**6):
            axes = request_of(count).axes
            point_counts.append(
                sum(columns.point_count for columns in client.stream_sweep(workload=WORKLOAD, link=LINK, axes=axes))
            )
            peaks.append(replaceable.peak_memory_bytes)
    assert point_counts == [10**6, 10 * 10**6]
    # The points alone would be 160 MB.
    assert peaks[1] - peaks[0] < 40 * 10**6
