"""`linkbound.ingest.v1.IngestService` over an `Ingest`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import grpc

from ingest_service.service import Ingest, StreamSession
from ingest_service.transport.sample_stream import SampleStream, StreamTiming
from ingest_service.transport.store_threads import StoreThreads
from linkbound.convert import ingest_service as convert
from linkbound.domain.records import AppendOutcome
from linkbound.domain.samples import OpenStreamRequest
from linkbound.ingest.v1 import ingest_service_pb2, ingest_service_pb2_grpc
from serving.rpc import CURRENT_RPC

Context = grpc.aio.ServicerContext[Any, Any]


class IngestServicer(ingest_service_pb2_grpc.IngestServiceServicer):
    """Stores with `ingest`. `draining` ends the streams; `stream_timing` gives each new stream its times."""

    def __init__(
        self,
        ingest: Ingest,
        threads: StoreThreads,
        draining: asyncio.Event,
        stream_timing: Callable[[], StreamTiming] = StreamTiming.drawn,
    ) -> None:
        self._ingest = ingest
        self._threads = threads
        self._draining = draining
        self._stream_timing = stream_timing

    def StreamSamples(
        self, _requests: Any, context: Context
    ) -> AsyncIterator[ingest_service_pb2.StreamSamplesResponse]:
        """Store samples as they come."""
        stream = SampleStream(context, self._open_stream, self._threads, self._draining, self._stream_timing())
        return stream.responses()

    async def AppendRequestRecords(
        self, request: ingest_service_pb2.AppendRequestRecordsRequest, _context: Context
    ) -> ingest_service_pb2.AppendRequestRecordsResponse:
        """Store request records."""
        return await self._append(request, ingest_service_pb2.AppendRequestRecordsResponse)

    async def AppendMetricAggregates(
        self, request: ingest_service_pb2.AppendMetricAggregatesRequest, _context: Context
    ) -> ingest_service_pb2.AppendMetricAggregatesResponse:
        """Store aggregates of metrics."""
        return await self._append(request, ingest_service_pb2.AppendMetricAggregatesResponse)

    async def AppendCollectiveResults(
        self, request: ingest_service_pb2.AppendCollectiveResultsRequest, _context: Context
    ) -> ingest_service_pb2.AppendCollectiveResultsResponse:
        """Store results of collective benchmarks."""
        return await self._append(request, ingest_service_pb2.AppendCollectiveResultsResponse)

    async def AppendTrainingSteps(
        self, request: ingest_service_pb2.AppendTrainingStepsRequest, _context: Context
    ) -> ingest_service_pb2.AppendTrainingStepsResponse:
        """Store training steps."""
        return await self._append(request, ingest_service_pb2.AppendTrainingStepsResponse)

    async def AppendLinkTests(
        self, request: ingest_service_pb2.AppendLinkTestsRequest, _context: Context
    ) -> ingest_service_pb2.AppendLinkTestsResponse:
        """Store tests of links."""
        return await self._append(request, ingest_service_pb2.AppendLinkTestsResponse)

    async def AppendEvents(
        self, request: ingest_service_pb2.AppendEventsRequest, _context: Context
    ) -> ingest_service_pb2.AppendEventsResponse:
        """Store events."""
        return await self._append(request, ingest_service_pb2.AppendEventsResponse)

    async def _open_stream(self, request: OpenStreamRequest) -> StreamSession:
        return await self._threads.commands.run(self._ingest.open_stream, request)

    async def _append(
        self, message: convert.AppendRequestMessage, answer: type[convert.AppendResponseMessage]
    ) -> convert.AppendResponseMessage:
        appended = await self._threads.convert_records(message.ByteSize(), partial(self._queued, message))
        CURRENT_RPC.get().add_rows(len(message.records))
        # A caller that goes away changes nothing: what is queued is stored, and its future cannot be cancelled.
        return convert.append_response_to_proto(await asyncio.wrap_future(appended), answer)

    def _queued(self, message: convert.AppendRequestMessage) -> Future[AppendOutcome]:
        return self._ingest.append(convert.append_request_from_proto(message))
