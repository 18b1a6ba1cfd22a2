"""Schedules whose server goes away go on at its successor, as if nothing had happened."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from linkbound import AsyncEstimatorClient, EngineRequest, EstimatorClient, SchedulerSettings
from linkbound.client.resuming import FIRST_ATTEMPT_COUNT
from linkbound.domain.schedule import SchedulePass, ScheduleSummary
from tests.bound import bounded
from tests.integration.replaceable import Replaceable
from tests.integration.servers import PATIENCE_SECONDS

REQUESTS = tuple(EngineRequest(prompt_tokens=1, output_tokens=1 + index) for index in range(1200))
"""Each ends in a pass of its own."""
SCHEDULER = SchedulerSettings(max_num_batched_tokens=10**6)
WITH_TIMES: dict[str, Any] = {"scheduler": SCHEDULER, "engine_calibration": "glm-5.3-dgx-spark-8-200g"}
"""All of it is replayed and priced before its first message."""
REQUESTS_WITH_TIMES = REQUESTS[:1000]


@pytest.fixture(scope="module")
def expected() -> list[SchedulePass | ScheduleSummary]:
    with EstimatorClient() as client:
        return list(client.stream_schedule(REQUESTS, scheduler=SCHEDULER))


@pytest.fixture(scope="module")
def expected_with_times() -> list[SchedulePass | ScheduleSummary]:
    with EstimatorClient() as client:
        return list(client.stream_schedule(REQUESTS_WITH_TIMES, **WITH_TIMES))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_schedule_outlives_its_server(
    replaceable: Replaceable, expected: list[SchedulePass | ScheduleSummary], number: signal.Signals
) -> None:
    received = []
    with bounded(), EstimatorClient(replaceable.target) as client:
        for entry in client.stream_schedule(REQUESTS, scheduler=SCHEDULER):
            received.append(entry)
            if len(received) in (5, 500):
                replaceable.stop(number)
                replaceable.start()
    assert received == expected


async def test_an_asyncio_schedule_outlives_its_server(
    replaceable: Replaceable, expected: list[SchedulePass | ScheduleSummary]
) -> None:
    received = []
    async with asyncio.timeout(PATIENCE_SECONDS), AsyncEstimatorClient(replaceable.target) as client:
        async for entry in client.stream_schedule(REQUESTS, scheduler=SCHEDULER):
            received.append(entry)
            if len(received) == 5:
                replaceable.stop(signal.SIGKILL)
                replaceable.start()
    assert received == expected


class Watching(grpc.UnaryStreamClientInterceptor):
    """Counts the streams that a client opens, and notes when a server has taken one."""

    def __init__(self) -> None:
        self.attempt_count = 0
        self.was_taken = threading.Event()

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        self.attempt_count += 1
        call = continuation(details, request)
        # Waits until a server has taken the call, or until there is none.
        if call.initial_metadata():
            self.was_taken.set()
        return call


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_schedule_with_times_outlives_its_server(
    replaceable: Replaceable, expected_with_times: list[SchedulePass | ScheduleSummary], number: signal.Signals
) -> None:
    """Nothing has come when its server goes away, and its successor takes longer than one that is not there may."""
    watching, received = Watching(), list[SchedulePass | ScheduleSummary]()
    options = [("grpc.enable_http_proxy", 0), ("grpc.max_reconnect_backoff_ms", 200)]
    with (
        bounded(),
        grpc.insecure_channel(replaceable.target, options) as channel,
        EstimatorClient(channel=grpc.intercept_channel(channel, watching)) as client,
        ThreadPoolExecutor(1) as reader,
    ):
        entries = client.stream_schedule(REQUESTS_WITH_TIMES, **WITH_TIMES)
        reading = reader.submit(lambda: received.extend(entries))
        assert watching.was_taken.wait(PATIENCE_SECONDS)
        replaceable.stop(number)
        assert not received
        while watching.attempt_count <= FIRST_ATTEMPT_COUNT and not reading.done():
            time.sleep(0.01)
        replaceable.start()
        reading.result()
    assert received == expected_with_times
