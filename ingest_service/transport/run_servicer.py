"""`linkbound.ingest.v1.RunService` over an `Ingest`. Its calls block on the store, so each runs in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc

from ingest_service.service import Ingest
from ingest_service.transport.run_watching import run_updates
from ingest_service.transport.store_threads import StoreThreads
from linkbound.convert import run_service as convert
from linkbound.ingest.v1 import run_service_pb2, run_service_pb2_grpc

Context = grpc.aio.ServicerContext[Any, Any]


class RunServicer(run_service_pb2_grpc.RunServiceServicer):
    """Answers with `ingest`; `draining` ends its watches.

    Errors of the domain are raised as they are; the interceptor makes statuses of them.
    """

    def __init__(self, ingest: Ingest, threads: StoreThreads, draining: asyncio.Event) -> None:
        self._ingest = ingest
        self._threads = threads
        self._draining = draining

    async def CreateRun(
        self, request: run_service_pb2.CreateRunRequest, _context: Context
    ) -> run_service_pb2.CreateRunResponse:
        """Create a run and freeze its prediction."""
        run = await self._threads.commands.run(self._ingest.create_run, convert.create_run_request_from_proto(request))
        return convert.create_run_response_to_proto(run)

    async def GetRun(self, request: run_service_pb2.GetRunRequest, _context: Context) -> run_service_pb2.GetRunResponse:
        """One run."""
        details = await self._threads.reads.run(self._ingest.get_run, convert.get_run_request_from_proto(request).run)
        return convert.run_details_to_proto(details)

    async def ListRuns(
        self, request: run_service_pb2.ListRunsRequest, _context: Context
    ) -> run_service_pb2.ListRunsResponse:
        """One page of the runs."""
        page = await self._threads.reads.run(self._ingest.list_runs, convert.list_runs_request_from_proto(request))
        return convert.list_runs_response_to_proto(page)

    async def SealRun(
        self, request: run_service_pb2.SealRunRequest, _context: Context
    ) -> run_service_pb2.SealRunResponse:
        """End a run."""
        run = await self._threads.commands.run(self._ingest.seal_run, convert.seal_run_request_from_proto(request))
        return convert.seal_run_response_to_proto(run)

    async def DeleteRun(
        self, request: run_service_pb2.DeleteRunRequest, _context: Context
    ) -> run_service_pb2.DeleteRunResponse:
        """Delete a run with everything in it."""
        counts = await self._threads.commands.run(
            self._ingest.delete_run, convert.delete_run_request_from_proto(request).run
        )
        return convert.delete_run_response_to_proto(counts)

    async def WatchRuns(
        self, request: run_service_pb2.WatchRunsRequest, _context: Context
    ) -> AsyncIterator[run_service_pb2.WatchRunsResponse]:
        """Runs as they change."""
        asked = convert.watch_runs_request_from_proto(request)
        async with aclosing(run_updates(self._ingest, self._threads, self._draining, asked)) as updates:
            async for update in updates:
                yield convert.watch_runs_response_to_proto(update)
