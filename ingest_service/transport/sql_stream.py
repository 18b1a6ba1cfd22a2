"""One `QuerySql` call: the schema, record batches and the summary, as fast as the caller takes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import grpc

from ingest_service.service import Ingest
from ingest_service.transport.store_threads import StoreThreads
from linkbound.convert import query_service as convert
from linkbound.domain.errors import DeadlineExceededError, InternalError
from linkbound.domain.sql import SqlRequest
from linkbound.ingest.v1 import query_service_pb2
from serving.rpc import CURRENT_RPC

DEAF_SECONDS = 2.0
"""How long a query that was told to end is waited for: while DuckDB plans, it hears no interrupt."""

T = TypeVar("T")


async def sql_responses(
    ingest: Ingest, threads: StoreThreads, request: SqlRequest, limit_seconds: float
) -> AsyncGenerator[query_service_pb2.QuerySqlResponse, None]:
    """What the call answers; it ends after `limit_seconds` at the latest. A caller who goes away ends the query.

    Raises DeadlineExceededError, and what `Ingest.query_sql` says.
    """
    answer = ingest.query_sql(request, limit_seconds)
    give_up_time = asyncio.get_running_loop().time() + limit_seconds + DEAF_SECONDS

    async def run(call: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout_at(give_up_time):
                return await threads.queries.run(call)
        except TimeoutError as error:
            raise DeadlineExceededError("the query does not end") from error

    try:
        yield query_service_pb2.QuerySqlResponse(arrow_schema=await run(answer.begin))
        while (batch := await run(answer.next_batch)) is not None:
            yield query_service_pb2.QuerySqlResponse(arrow_record_batch=batch)
        summary = answer.summary
        if summary is None:
            raise InternalError("a query ended without a summary")
        CURRENT_RPC.get().add_rows(summary.row_count)
        yield query_service_pb2.QuerySqlResponse(summary=convert.query_sql_summary_to_proto(summary))
    except DeadlineExceededError as error:
        raise _too_long(limit_seconds) from error
    finally:
        answer.cancel()
        # What runs of it ends soon, and the call then; one that hears no interrupt is left behind.
        with suppress(TimeoutError):
            async with asyncio.timeout(DEAF_SECONDS):
                await threads.queries.run(answer.close)


async def write_within(
    context: grpc.aio.ServicerContext[Any, Any],
    responses: AsyncIterable[query_service_pb2.QuerySqlResponse],
    limit_seconds: float,
) -> None:
    """Writes what the call answers. A caller who does not read keeps the query no longer than `limit_seconds`.

    Raises DeadlineExceededError then.
    """
    try:
        async with asyncio.timeout(limit_seconds):
            async for response in responses:
                await context.write(response)
    except TimeoutError as error:
        raise _too_long(limit_seconds) from error


def _too_long(limit_seconds: float) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"the query took longer than {limit_seconds:g} s", metadata={"limitSeconds": f"{limit_seconds:g}"}
    )
