"""Callers that ask and never read the answer: they are not read either, memory holds, and others go on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from linkbound.ingest.v1.query_service_pb2 import QuerySqlRequest
from linkbound.ingest.v1.query_service_pb2_grpc import QueryServiceStub
from linkbound.ingest.v1.run_service_pb2 import CreateRunRequest, WatchRunsRequest
from linkbound.ingest.v1.run_service_pb2_grpc import RunServiceStub
from tests.faults.conftest import Report
from tests.faults.crowd import Crowd, crowd, first_answer
from tests.faults.figures import FaultFigures
from tests.faults.repeats import IS_FULL
from tests.integration.sample_stream.calls import Stream, arrow_message, batch_message

pytestmark = pytest.mark.storage

STREAMS, QUERIES, WATCHES = 32, 4, 64
LARGE_SAMPLE_COUNT = 30_000
"""Nearly the largest batch that a stream may send."""

SMALL_STREAMS = 16
"""Streams of these send batches of one sample, each of which is acknowledged: acknowledgements are what piles up."""

SECONDS = 30.0 if IS_FULL else 5.0
SQL_LIMIT_SECONDS = 3.0 if IS_FULL else 2.0
TURNS = 3
RUN_COUNT = 100 if IS_FULL else 10
LONG_QUERY = "SELECT range, repeat_me FROM range(1000000000), (SELECT 'a text that takes room' AS repeat_me)"


async def test_acknowledgements_that_nobody_reads(tmp_path: Path, report: Report) -> None:
    sent: list[int] = []
    async with crowd(tmp_path, channel_count=8, settings={}) as many:
        streams = [Stream(many.channel(index)) for index in range(STREAMS)]
        for index, stream in enumerate(streams):
            await first_answer(stream, f"w{index}")
        end_time = time.monotonic() + SECONDS
        sending = [asyncio.ensure_future(_send(stream, index, sent)) for index, stream in enumerate(streams)]
        while time.monotonic() < end_time:
            await many.others_go_on()
        for call in sending:
            call.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        for stream in streams:
            stream.call.cancel()
        await many.until_free("StreamSamples", STREAMS)
        found = many.stage.end()
    report(
        FaultFigures(
            fault="acknowledgements unread",
            times=STREAMS,
            rows=found.rows,
            peak_rss_bytes=many.stage.service.peak_rss_bytes,
            remarks=[f"{len(sent):,} batches taken from them in {SECONDS:.0f} s, {sum(sent) / 1e6:,.0f} MB"],
        )
    )
    assert found.is_right, found
    assert many.is_memory_bounded, many


async def _send(stream: Stream, index: int, sent: list[int]) -> None:
    """Send batches for as long as they are taken, and read nothing."""
    number = 0
    while True:
        number += 1
        message = batch_message(number, 1) if index < SMALL_STREAMS else arrow_message(number, LARGE_SAMPLE_COUNT)
        await stream.send(message)
        sent.append(message.ByteSize())


async def test_rows_and_changes_that_nobody_reads(tmp_path: Path, report: Report) -> None:
    settings = {"LINKBOUND_INGEST_SQL_TIME_LIMIT_SECONDS": str(SQL_LIMIT_SECONDS)}
    async with crowd(tmp_path, channel_count=8, settings=settings) as many:
        watches = await _unread_watches(many)
        for turn in range(TURNS):
            queries = await _unread_queries(many)
            await _many_changes(many, turn)
            await many.others_go_on()
            # They end by themselves, and their places are taken by others.
            await many.until_free("QuerySql", len(queries))
        for watch in watches:
            watch.cancel()
        await many.until_free("WatchRuns", WATCHES)
        found = many.stage.end()
    report(
        FaultFigures(
            fault="rows of SQL and changes unread",
            times=TURNS * QUERIES + WATCHES,
            rows=found.rows,
            peak_rss_bytes=many.stage.service.peak_rss_bytes,
            remarks=[f"{TURNS * RUN_COUNT:,} changes while {WATCHES} watches read nothing"],
        )
    )
    assert found.is_right, found
    assert many.is_memory_bounded, many


async def _unread_queries(many: Crowd) -> Sequence[Any]:
    stubs: list[Any] = [QueryServiceStub(channel) for channel in many.channels]
    calls = [stubs[index].QuerySql(QuerySqlRequest(sql=LONG_QUERY, row_limit=10**9)) for index in range(QUERIES)]
    for call in calls:
        # The schema: from here on there is nothing but rows.
        await call.read()
    return calls


async def _unread_watches(many: Crowd) -> Sequence[Any]:
    stubs: list[Any] = [RunServiceStub(channel) for channel in many.channels]
    calls = [stubs[index % len(stubs)].WatchRuns(WatchRunsRequest()) for index in range(WATCHES)]
    for call in calls:
        await call.read()
    return calls


async def _many_changes(many: Crowd, turn: int) -> None:
    async with grpc.aio.insecure_channel(many.stage.service.target) as channel:
        runs: Any = RunServiceStub(channel)
        for number in range(RUN_COUNT):
            await runs.CreateRun(CreateRunRequest(run_id=f"run-{turn}-{number}", source="x" * 1000))
