"""Schedules as a server streams them: ahead of nobody, beside other calls, and whole or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import grpc
import pytest
import pytest_asyncio

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.server import serve as serve_estimator
from estimator_service.service import Estimator
from linkbound import AsyncEstimatorClient, EngineRequest, EstimatorClient, SchedulerSettings
from linkbound.client.remote.errors import error_of_call
from linkbound.client.remote.estimator_streams import ESTIMATE_SCHEDULE
from linkbound.convert.schedule import schedule_request_to_proto
from linkbound.domain.schedule import SchedulePass, SchedulePasses, ScheduleRequest, ScheduleSummary
from linkbound.estimator.v1.schedule_pb2 import EstimateScheduleRequest, EstimateScheduleResponse
from serving.settings import ServerSettings
from tests.integration.probes import ESTIMATOR_SERVICES, SERVING, health_of, models_of
from tests.integration.servers import PATIENCE_SECONDS, Running, running

CLIENTS_TAKE_BYTES = 4 * 2**20
REQUESTS = tuple(EngineRequest(prompt_tokens=1, output_tokens=1 + index) for index in range(4000))
"""Each ends in a pass of its own: 8 million shares, which is 90 MB on the wire."""
LONG = ScheduleRequest(requests=REQUESTS, scheduler=SchedulerSettings(max_num_batched_tokens=10**6))
SHORT = ScheduleRequest(requests=REQUESTS[:300], scheduler=LONG.scheduler)


class CountingEstimator(Estimator):
    """Counts the passes that were replayed; the first summaries are withheld, as many as it is told."""

    def __init__(self) -> None:
        super().__init__(Catalog(SHIPPED_DIRECTORY))
        self.share_count = 0
        self.withheld_count = 0
        self.asked: list[int] = []
        self.was_let_go = threading.Event()

    def stream_schedule(self, request: ScheduleRequest) -> Iterator[SchedulePasses | ScheduleSummary]:
        self.asked.append(request.start_index)
        try:
            for part in super().stream_schedule(request):
                if isinstance(part, SchedulePasses):
                    self.share_count += sum(len(one.scheduled) for one in part.passes)
                    yield part
                elif self.withheld_count:
                    self.withheld_count -= 1
                else:
                    yield part
        finally:
            self.was_let_go.set()


@pytest.fixture
def estimator() -> CountingEstimator:
    return CountingEstimator()


@pytest_asyncio.fixture
async def server(estimator: CountingEstimator) -> AsyncIterator[Running]:
    serve = partial(serve_estimator, ServerSettings(grace_seconds=1), estimator)
    async with running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server:
        yield server


def schedule_call(channel: grpc.aio.Channel, request: ScheduleRequest) -> Any:
    method: Any = channel.unary_stream(
        ESTIMATE_SCHEDULE.path,
        request_serializer=EstimateScheduleRequest.SerializeToString,
        response_deserializer=EstimateScheduleResponse.FromString,
    )
    return method(schedule_request_to_proto(request))


async def until_held_back(estimator: CountingEstimator) -> None:
    earlier = -1
    async with asyncio.timeout(PATIENCE_SECONDS):
        while estimator.share_count != earlier:
            earlier = estimator.share_count
            await asyncio.sleep(1)


async def read_to_end(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


async def test_passes_come_in_messages_that_every_client_takes_and_the_summary_last(server: Running) -> None:
    async with server.channel() as channel:
        messages = [message async for message in schedule_call(channel, SHORT)]
    kinds = [message.WhichOneof("message") for message in messages]
    assert kinds == ["passes"] * (len(kinds) - 1) + ["summary"]
    assert max(message.ByteSize() for message in messages) < CLIENTS_TAKE_BYTES / 2
    passes = [one for message in messages for one in message.passes.passes]
    assert sum(one.repeat for one in passes) == messages[-1].summary.pass_count == 300


async def test_a_client_that_does_not_read_holds_its_schedule_back(
    server: Running, estimator: CountingEstimator
) -> None:
    async with server.channel() as channel:
        call = schedule_call(channel, LONG)
        assert (await call.read()).WhichOneof("message") == "passes"
        await until_held_back(estimator)
        assert estimator.share_count < len(REQUESTS) ** 2 / 4
        assert not estimator.was_let_go.is_set()
        call.cancel()
        assert await asyncio.to_thread(estimator.was_let_go.wait, PATIENCE_SECONDS)


async def test_other_calls_are_answered_while_schedules_run(server: Running) -> None:
    async with server.channel() as channel, server.channel() as other:
        calls = [schedule_call(channel, LONG) for _ in range(2)]
        for call in calls:
            await call.read()
        reading = [asyncio.ensure_future(read_to_end(call)) for call in calls]
        for _ in range(10):
            assert [await health_of(other, service) for service in ESTIMATOR_SERVICES] == [SERVING] * 3
            assert await models_of(other) > 0
        assert not any(task.done() for task in reading)
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


async def test_a_stream_without_its_summary_is_asked_for_again(server: Running, estimator: CountingEstimator) -> None:
    estimator.withheld_count = 2
    async with AsyncEstimatorClient(server.target) as client:
        found = await client.estimate_schedule(SHORT.requests, scheduler=SHORT.scheduler)
    assert found.summary.pass_count == 300
    assert sum(one.repeat for one in found.passes) == 300
    assert estimator.asked == [0, len(found.passes), len(found.passes)]


async def test_a_client_takes_passes_as_they_come(server: Running, estimator: CountingEstimator) -> None:
    """Whoever stops reading ends the call; meanwhile the service replays no more than fits on the way."""
    async with AsyncEstimatorClient(server.target) as client:
        entries: Any = client.stream_schedule(LONG.requests, scheduler=LONG.scheduler)
        async with contextlib.aclosing(entries):
            first = await anext(entries)
            assert isinstance(first, SchedulePass)
            assert len(first.scheduled) == len(REQUESTS)
            await until_held_back(estimator)
            assert estimator.share_count < len(REQUESTS) ** 2 / 4
            assert not estimator.was_let_go.is_set()
        assert await asyncio.to_thread(estimator.was_let_go.wait, PATIENCE_SECONDS)


async def test_a_blocking_client_takes_passes_as_they_come(server: Running, estimator: CountingEstimator) -> None:
    with EstimatorClient(server.target) as client:
        entries: Any = client.stream_schedule(LONG.requests, scheduler=LONG.scheduler)
        assert isinstance(await asyncio.to_thread(next, entries), SchedulePass)
        await until_held_back(estimator)
        assert estimator.share_count < len(REQUESTS) ** 2 / 4
        entries.close()
        assert await asyncio.to_thread(estimator.was_let_go.wait, PATIENCE_SECONDS)


async def test_a_schedule_ends_between_two_messages_when_the_server_stops(server: Running) -> None:
    async with server.channel() as channel:
        call = schedule_call(channel, LONG)
        await call.read()
        server.stop.set()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await read_to_end(call)
    error = error_of_call(caught.value, "the server")
    assert (error.code, error.reason) == ("UNAVAILABLE", "SHUTTING_DOWN")
