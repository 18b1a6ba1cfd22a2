"""`linkbound.ingest.v1.QueryService` over an `Ingest`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, TypeVar

import grpc

from ingest_service.service import Ingest
from ingest_service.transport.admission import check_query_count
from ingest_service.transport.sql_stream import sql_responses, write_within
from ingest_service.transport.store_threads import StoreThreads
from linkbound.convert import query_service as convert
from linkbound.domain.errors import DeadlineExceededError
from linkbound.domain.traffic import TrafficRequest
from linkbound.ingest.v1 import query_service_pb2, query_service_pb2_grpc
from serving.rpc import CURRENT_RPC, time_remaining_seconds

Context = grpc.aio.ServicerContext[Any, Any]
AskedT = TypeVar("AskedT")
AnswerT = TypeVar("AnswerT")

QUERY_LIMIT_SECONDS = 30.0
"""What a query may take where the caller sets no shorter deadline."""

SQL_LIMIT_SECONDS = 300.0
"""What an SQL query may take likewise, slow readers included."""

MAX_SQL_QUERIES = 4
"""SQL queries at once."""


class QueryServicer(query_service_pb2_grpc.QueryServiceServicer):
    """Answers with `ingest`, each query in a thread and for `limit_seconds` at most; SQL for `sql_limit_seconds`."""

    def __init__(
        self,
        ingest: Ingest,
        threads: StoreThreads,
        limit_seconds: float = QUERY_LIMIT_SECONDS,
        sql_limit_seconds: float = SQL_LIMIT_SECONDS,
        max_sql_queries: int = MAX_SQL_QUERIES,
    ) -> None:
        self._ingest = ingest
        self._threads = threads
        self._limit_seconds = limit_seconds
        self._sql_limit_seconds = sql_limit_seconds
        self._max_sql_queries = max_sql_queries

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

    async def QueryTraffic(
        self, request: query_service_pb2.QueryTrafficRequest, context: Context
    ) -> query_service_pb2.QueryTrafficResponse:
        """Rates of the counters of a run."""
        asked = convert.query_traffic_request_from_proto(request)
        answer = await self._within_limit(
            context, f"the traffic of run {asked.run}", asked.run, self._traffic_message, asked
        )
        CURRENT_RPC.get().rows = len(answer.ports)
        return answer

    def _traffic_message(self, asked: TrafficRequest, limit_seconds: float) -> query_service_pb2.QueryTrafficResponse:
        """The answer as a message; it has too many points to be made on the event loop."""
        return convert.query_traffic_response_to_proto(self._ingest.query_traffic(asked, limit_seconds))

    async def ListPhaseTraffic(
        self, request: query_service_pb2.ListPhaseTrafficRequest, context: Context
    ) -> query_service_pb2.ListPhaseTrafficResponse:
        """One page of the traffic of a run in the phases of its requests."""
        asked = convert.list_phase_traffic_request_from_proto(request)
        page = await self._within_limit(
            context, f"the list of the phases of run {asked.run}", asked.run, self._ingest.list_phase_traffic, asked
        )
        CURRENT_RPC.get().rows = len(page.entries)
        return convert.list_phase_traffic_response_to_proto(page)

    # It writes its answers itself, which gRPC takes too: nothing else would end a write that its caller does not read.
    async def QuerySql(  # type: ignore[override]
        self, request: query_service_pb2.QuerySqlRequest, context: Context
    ) -> None:
        """The rows of one SELECT."""
        asked = convert.query_sql_request_from_proto(request)
        check_query_count(self._ingest.query_count, self._max_sql_queries)
        remaining_seconds = time_remaining_seconds(context)
        limit_seconds = min(self._sql_limit_seconds, remaining_seconds or self._sql_limit_seconds)
        async with aclosing(sql_responses(self._ingest, self._threads, asked, limit_seconds)) as responses:
            await write_within(context, responses, limit_seconds)

    async def PublishSnapshot(
        self, request: query_service_pb2.PublishSnapshotRequest, _context: Context
    ) -> query_service_pb2.PublishSnapshotResponse:
        """Write what is stored now into the copy that other processes open."""
        asked = convert.publish_snapshot_request_from_proto(request)
        snapshot = await self._threads.commands.run(self._ingest.publish_snapshot, asked)
        return convert.publish_snapshot_response_to_proto(snapshot)

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
