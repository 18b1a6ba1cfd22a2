"""More calls than a service takes, and large ones: the others are told when to come again, and memory holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from linkbound.ingest.v1.ingest_service_pb2 import AppendEventsRequest, AppendEventsResponse
from linkbound.ingest.v1.query_service_pb2 import QuerySqlRequest
from linkbound.ingest.v1.query_service_pb2_grpc import QueryServiceStub
from linkbound.ingest.v1.records_pb2 import Event
from linkbound.ingest.v1.run_service_pb2 import WatchRunsRequest
from linkbound.ingest.v1.run_service_pb2_grpc import RunServiceStub
from tests.faults.conftest import Report
from tests.faults.crowd import CROWD_RUN, Crowd, answered, as_it_is, crowd, first_answer
from tests.faults.figures import FaultFigures
from tests.faults.repeats import IS_FULL
from tests.integration.sample_stream.calls import Stream

pytestmark = pytest.mark.storage

WAVES = 5 if IS_FULL else 1
STREAM_LIMIT, APPEND_LIMIT, QUERY_LIMIT, WATCH_LIMIT = 256, 64, 4, 64
"""The defaults of the service."""

AGENT_STREAMS = 1
STREAMS, APPENDS, QUERIES, WATCHES = 400, 300, 40, 150
EVENTS_PER_APPEND = 1000
LONG_QUERY = "SELECT range FROM range(1000000000)"


async def test_a_flood_of_streams_appends_queries_and_watches(tmp_path: Path, report: Report) -> None:
    accepted, refused = Counter[str](), Counter[str]()
    async with crowd(tmp_path, channel_count=16, settings={}) as many:
        for wave in range(WAVES):
            for name, (count, refusals) in {
                "streams": await _streams(many),
                "appends": await _appends(many, wave),
                "queries": await _queries(many),
                "watches": await _watches(many),
            }.items():
                accepted[name] += count
                refused.update(refusals)
            await many.others_go_on()
        found = many.stage.end()
        events = many.stage.stored_event_count()
    report(
        FaultFigures(
            fault="flood beyond the limits",
            times=WAVES,
            rows=found.rows,
            peak_rss_bytes=many.stage.service.peak_rss_bytes,
            remarks=[
                f"accepted {', '.join(f'{n:,} {name}' for name, n in accepted.items())}",
                f"refused with advice {', '.join(f'{n:,} {reason}' for reason, n in sorted(refused.items()))}",
            ],
        )
    )
    assert found.is_right, found
    assert accepted["streams"] == WAVES * (STREAM_LIMIT - AGENT_STREAMS)
    assert accepted["queries"] == WAVES * QUERY_LIMIT
    assert accepted["watches"] == WAVES * WATCH_LIMIT
    assert accepted["appends"] >= WAVES * APPEND_LIMIT
    assert events == accepted["appends"] * EVENTS_PER_APPEND
    assert refused == {
        "TOO_MANY_STREAMS": WAVES * (STREAMS - STREAM_LIMIT + AGENT_STREAMS),
        "QUEUE_FULL": WAVES * APPENDS - accepted["appends"],
        "TOO_MANY_QUERIES": WAVES * (QUERIES - QUERY_LIMIT),
        "TOO_MANY_WATCHES": WAVES * (WATCHES - WATCH_LIMIT),
    }
    assert refused["QUEUE_FULL"] > 0
    assert many.is_memory_bounded, many


async def _streams(many: Crowd) -> tuple[int, Counter[str]]:
    """Streams that are opened and stay open until all were answered."""
    streams = [Stream(many.channel(index)) for index in range(STREAMS)]
    found = await answered([first_answer(stream, f"w{index}") for index, stream in enumerate(streams)])
    for stream in streams:
        stream.call.cancel()
    await many.until_free("StreamSamples", STREAMS)
    return found


async def _appends(many: Crowd, wave: int) -> tuple[int, Counter[str]]:
    """Appends of large messages, all at once."""
    records = AppendEventsRequest(records=[Event(kind="note", text="x" * 1000)] * EVENTS_PER_APPEND).SerializeToString()

    def append(index: int) -> Any:
        head = AppendEventsRequest(run=CROWD_RUN, writer_id=f"flood-{wave}-{index}", sequence_number=1)
        method: Any = many.channel(index).unary_unary(
            "/linkbound.ingest.v1.IngestService/AppendEvents",
            request_serializer=as_it_is,
            response_deserializer=AppendEventsResponse.FromString,
        )
        # Parts of a message may follow each other: the large one is made once.
        return method(head.SerializeToString() + records)

    return await answered([append(index) for index in range(APPENDS)])


async def _queries(many: Crowd) -> tuple[int, Counter[str]]:
    """Queries that have more to answer than their caller reads until all were answered."""
    stubs: list[Any] = [QueryServiceStub(channel) for channel in many.channels]
    request = QuerySqlRequest(sql=LONG_QUERY, row_limit=10**9)
    calls = [stubs[index % len(stubs)].QuerySql(request) for index in range(QUERIES)]
    found = await answered([call.read() for call in calls])
    for call in calls:
        call.cancel()
    await many.until_free("QuerySql", QUERIES)
    return found


async def _watches(many: Crowd) -> tuple[int, Counter[str]]:
    """Watches that stay open until all were answered."""
    stubs: list[Any] = [RunServiceStub(channel) for channel in many.channels]
    calls = [stubs[index % len(stubs)].WatchRuns(WatchRunsRequest()) for index in range(WATCHES)]
    found = await answered([call.read() for call in calls])
    for call in calls:
        call.cancel()
    await many.until_free("WatchRuns", WATCHES)
    return found
