"""Streams of the ingest service that answer one request: the rows of a query, and what happens to runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, Generic, TypeVar

import grpc
from attrs import frozen
from google.protobuf.message import Message

from linkbound.client.remote.calls import serialize
from linkbound.client.remote.channel import Metadata
from linkbound.client.remote.errors import error_of_call
from linkbound.convert import query_service, run_service
from linkbound.domain.run_watch import RunUpdate, WatchRunsRequest
from linkbound.domain.sql import SqlPart, SqlRequest
from linkbound.ingest.v1.query_service_pb2 import QuerySqlResponse
from linkbound.ingest.v1.run_service_pb2 import WatchRunsResponse

RequestT = TypeVar("RequestT")
EntryT = TypeVar("EntryT")


@frozen
class AnswerStream(Generic[RequestT, EntryT]):
    """A method that is answered by a stream of entries: its path and its converters.

    `entry_of` is what a message says; None: nothing that this version knows.
    """

    path: str
    request_to_proto: Callable[[RequestT], Message]
    response_type: type[Message]
    entry_of: Callable[[Any], EntryT | None]


def _sql_part(message: QuerySqlResponse) -> SqlPart | None:
    match message.WhichOneof("message"):
        case "arrow_schema":
            return message.arrow_schema
        case "arrow_record_batch":
            return message.arrow_record_batch
        case "summary":
            return query_service.query_sql_summary_from_proto(message.summary)
    return None


QUERY_SQL: AnswerStream[SqlRequest, SqlPart] = AnswerStream(
    "/linkbound.ingest.v1.QueryService/QuerySql",
    query_service.query_sql_request_to_proto,
    QuerySqlResponse,
    _sql_part,
)
WATCH_RUNS: AnswerStream[WatchRunsRequest, RunUpdate] = AnswerStream(
    "/linkbound.ingest.v1.RunService/WatchRuns",
    run_service.watch_runs_request_to_proto,
    WatchRunsResponse,
    run_service.watch_runs_response_from_proto,
)


@frozen(kw_only=True)
class Caller:
    """Who calls: the address for errors, the deadline and what is sent with the call."""

    address: str
    timeout_seconds: float | None
    metadata: Metadata


def answers(
    channel: grpc.Channel, stream: AnswerStream[RequestT, EntryT], request: RequestT, caller: Caller
) -> Generator[EntryT, None, None]:
    """The entries that the server sends; closing the generator cancels the call."""
    method = channel.unary_stream(
        stream.path, request_serializer=serialize, response_deserializer=stream.response_type.FromString
    )
    call = method(stream.request_to_proto(request), timeout=caller.timeout_seconds, metadata=caller.metadata)
    try:
        for message in call:
            entry = stream.entry_of(message)
            if entry is not None:
                yield entry
    except grpc.RpcError as failure:
        raise error_of_call(failure, caller.address) from failure
    finally:
        call.cancel()


async def aio_answers(
    channel: grpc.aio.Channel, stream: AnswerStream[RequestT, EntryT], request: RequestT, caller: Caller
) -> AsyncGenerator[EntryT, None]:
    """The same on the event loop of `channel`."""
    method = channel.unary_stream(
        stream.path, request_serializer=serialize, response_deserializer=stream.response_type.FromString
    )
    call = method(stream.request_to_proto(request), timeout=caller.timeout_seconds, metadata=caller.metadata)
    try:
        async for message in call:
            entry = stream.entry_of(message)
            if entry is not None:
                yield entry
    except grpc.RpcError as failure:
        raise error_of_call(failure, caller.address) from failure
    finally:
        call.cancel()
