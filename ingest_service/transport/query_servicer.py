"""`linkbound.ingest.v1.QueryService` over an `Ingest`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import grpc

from ingest_service.service import Ingest
from ingest_service.transport.store_threads import StoreThreads
from linkbound.convert import query_service as convert
from linkbound.domain.errors import DeadlineExceededError
from linkbound.ingest.v1 import query_service_pb2, query_service_pb2_grpc
from serving.rpc import CURRENT_RPC, time_remaining_seconds

Context = grpc.aio.ServicerContext[Any, Any]
AskedT = TypeVar("AskedT")
AnswerT = TypeVar("AnswerT")

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
        comparison = await self._within_limit(
            context, f"the comparison of run {run_id}", run_id, self._ingest.compare_run, run_id
        )
        CURRENT_RPC.get().rows = len(comparison.rows)
        return convert.run_comparison_to_proto(comparison)

    async def ListRequestRecords(
        self, request: query_service_pb2.ListRequestRecordsRequest, context: Context
    ) -> query_service_pb2.ListRequestRecordsResponse:
        """One page of the request records of a run."""
        asked = convert.list_request_records_request_from_proto(request)
        page = await self._within_limit(
            context, f"the list of the records of run {asked.run}", asked.run, self._ingest.list_request_records, asked
        )
        CURRENT_RPC.get().rows = len(page.entries)
        return convert.list_request_records_response_to_proto(page)

    async def _within_limit(
        self,
        context: Context,
        work: str,
        run_id: str,
        query: Callable[[AskedT, float], AnswerT],
        asked: AskedT,
    ) -> AnswerT:
        """What `query` answers within the limit, or the caller's deadline where that is shorter."""
        remaining_seconds = time_remaining_seconds(context)
        limit_seconds = (
            self._limit_seconds if remaining_seconds is None else min(self._limit_seconds, remaining_seconds)
        )
        try:
            async with asyncio.timeout(limit_seconds):
                return await self._threads.reads.run(query, asked, limit_seconds)
        except (TimeoutError, DeadlineExceededError) as error:
            raise DeadlineExceededError(
                f"{work} took longer than {limit_seconds:g} s",
                metadata={"run": run_id, "limitSeconds": f"{limit_seconds:g}"},
            ) from error
