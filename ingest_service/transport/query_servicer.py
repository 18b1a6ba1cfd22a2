"""`linkbound.ingest.v1.QueryService` over an `Ingest`."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc

from ingest_service.service import Ingest
from ingest_service.transport.store_threads import StoreThreads
from linkbound.convert import query_service as convert
from linkbound.domain.errors import DeadlineExceededError
from linkbound.ingest.v1 import query_service_pb2, query_service_pb2_grpc
from serving.rpc import CURRENT_RPC, time_remaining_seconds

Context = grpc.aio.ServicerContext[Any, Any]

QUERY_LIMIT_SECONDS = 30.0
"""What a query may take where the caller sets no shorter deadline."""


class QueryServicer(query_service_pb2_grpc.QueryServiceServicer):
    """Answers with `ingest`, each query in a thread and for `limit_seconds` at most."""

    def __init__(self, ingest: Ingest, threads: StoreThreads, limit_seconds: float = QUERY_LIMIT_SECONDS) -> None:
        self._ingest = ingest
        self._threads = threads
        self._limit_seconds = limit_seconds

    async def CompareRun(
        self, request: query_service_pb2.CompareRunRequest, context: Context
    ) -> query_service_pb2.CompareRunResponse:
        """The frozen prediction of a run beside what was measured."""
        run_id = convert.compare_run_request_from_proto(request).run
        remaining_seconds = time_remaining_seconds(context)
        limit_seconds = (
            self._limit_seconds if remaining_seconds is None else min(self._limit_seconds, remaining_seconds)
        )
        try:
            async with asyncio.timeout(limit_seconds):
                comparison = await self._threads.reads.run(self._ingest.compare_run, run_id, limit_seconds)
        except (TimeoutError, DeadlineExceededError) as error:
            raise DeadlineExceededError(
                f"the comparison of run {run_id} took longer than {limit_seconds:g} s",
                metadata={"run": run_id, "limitSeconds": f"{limit_seconds:g}"},
            ) from error
        CURRENT_RPC.get().rows = len(comparison.rows)
        return convert.run_comparison_to_proto(comparison)
