"""Long work ends with the call that asked for it: it holds neither a thread nor the end of the process."""

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
from estimator_service.core.wanted import UnwantedError
from estimator_service.server import serve as serve_estimator
from estimator_service.service import Estimator
from linkbound import AsyncEstimatorClient, EngineRequest, SchedulerSettings
from linkbound.client.remote.errors import error_of_call
from linkbound.client.remote.estimator_streams import ESTIMATE_SCHEDULE
from linkbound.convert.schedule import schedule_request_to_proto
from linkbound.domain.engine import EngineCalibration, EnginePoint, EngineTable, FitEngineCalibrationRequest
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.schedule import SchedulePasses, ScheduleRequest, ScheduleSummary
from linkbound.estimator.v1.schedule_pb2 import EstimateScheduleRequest, EstimateScheduleResponse
from serving.settings import ServerSettings
from tests.integration.servers import PATIENCE_SECONDS, Running, running

REQUESTS = tuple(EngineRequest(prompt_tokens=1, output_tokens=1 + index) for index in range(4000))
"""Each ends in a pass of its own."""
TIMED = ScheduleRequest(
    requests=REQUESTS,
    scheduler=SchedulerSettings(max_num_batched_tokens=10**6),
    engine_calibration="glm-5.3-dgx-spark-8-200g",
)
"""All of it is replayed and priced before its first message."""


class WatchedEstimator(Estimator):
    """Notes when it begins with a schedule, or with a fit, and how that ends."""

    def __init__(self) -> None:
        super().__init__(Catalog(SHIPPED_DIRECTORY))
        self.has_begun, self.has_ended = threading.Event(), threading.Event()
        self.was_unwanted = False

    def stream_schedule(self, request: ScheduleRequest) -> Iterator[SchedulePasses | ScheduleSummary]:
        with self._watched():
            yield from super().stream_schedule(request)

    def fit_engine_calibration(self, request: FitEngineCalibrationRequest) -> EngineCalibration:
        with self._watched():
            return super().fit_engine_calibration(request)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        self.has_begun.set()
        try:
            yield
        except UnwantedError:
            self.was_unwanted = True
            raise
        finally:
            self.has_ended.set()

    async def until_begun(self) -> None:
        assert await asyncio.to_thread(self.has_begun.wait, PATIENCE_SECONDS)

    async def ends_unwanted(self) -> bool:
        assert await asyncio.to_thread(self.has_ended.wait, PATIENCE_SECONDS)
        return self.was_unwanted


def schedule_call(channel: grpc.aio.Channel, request: ScheduleRequest) -> Any:
    method: Any = channel.unary_stream(
        ESTIMATE_SCHEDULE.path,
        request_serializer=EstimateScheduleRequest.SerializeToString,
        response_deserializer=EstimateScheduleResponse.FromString,
    )
    return method(schedule_request_to_proto(request))


@pytest_asyncio.fixture
async def watched() -> AsyncIterator[tuple[WatchedEstimator, Running]]:
    """A server that leaves its calls a minute."""
    estimator = WatchedEstimator()
    serve = partial(serve_estimator, ServerSettings(grace_seconds=PATIENCE_SECONDS), estimator)
    async with running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server:
        yield estimator, server


async def test_a_server_that_stops_waits_for_no_first_message(watched: tuple[WatchedEstimator, Running]) -> None:
    """Neither for the call nor for the thread that replays, which would hold the end of the process."""
    estimator, server = watched
    async with server.channel() as channel:
        reading = asyncio.ensure_future(schedule_call(channel, TIMED).read())
        await estimator.until_begun()
        server.stop.set()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await reading
    assert error_of_call(caught.value, "the server").reason == "SHUTTING_DOWN"
    assert await estimator.ends_unwanted()


async def test_a_replay_ends_with_its_call(watched: tuple[WatchedEstimator, Running]) -> None:
    estimator, server = watched
    async with server.channel() as channel:
        call = schedule_call(channel, TIMED)
        reading = asyncio.ensure_future(call.read())
        await estimator.until_begun()
        call.cancel()
        assert await estimator.ends_unwanted()
        with pytest.raises(asyncio.CancelledError):
            await reading


LONG_FIT = FitEngineCalibrationRequest(
    table=EngineTable(
        model="glm-5.3",
        layout=ParallelLayout(tensor_parallel_size=8),
        link=Link(line_rate_bits_per_second=200 * 10**9),
        scheduler=SchedulerSettings(max_num_batched_tokens=10**6),
        points=tuple(
            EnginePoint(label=f"{index}", requests=REQUESTS[:1000], last_ttft_seconds=1000.0 + index)
            for index in range(10)
        ),
    )
)


async def test_a_fit_ends_with_its_call(watched: tuple[WatchedEstimator, Running]) -> None:
    estimator, server = watched
    async with AsyncEstimatorClient(server.target) as client:
        fitting = asyncio.ensure_future(client.fit_engine_calibration(LONG_FIT.table))
        await estimator.until_begun()
        fitting.cancel()
        assert await estimator.ends_unwanted()


async def test_what_a_client_computes_itself_ends_with_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    estimators = [WatchedEstimator(), WatchedEstimator()]
    made = iter(estimators)
    monkeypatch.setattr("estimator_service.service.default_estimator", lambda _find: next(made))
    async with AsyncEstimatorClient() as of_schedule, AsyncEstimatorClient() as of_fit:
        questions: list[Any] = [
            lambda: of_schedule.estimate_schedule(TIMED.requests, engine_calibration=TIMED.engine_calibration),
            lambda: of_fit.fit_engine_calibration(LONG_FIT.table),
        ]
        for estimator, ask in zip(estimators, questions, strict=True):
            waiting = asyncio.ensure_future(ask())
            await estimator.until_begun()
            waiting.cancel()
            assert await estimator.ends_unwanted()
