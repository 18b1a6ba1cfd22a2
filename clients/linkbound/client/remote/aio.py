"""Calls to a server on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, TypeVar

import grpc
from attrs import evolve
from grpc_health.v1 import health_pb2

from linkbound.client.backend import Connection
from linkbound.client.operations import Operation
from linkbound.client.remote.aio_errors import errors_of_aio_calls
from linkbound.client.remote.calls import (
    HEALTH_CHECK_PATH,
    READY_POLL_SECONDS,
    is_not_ready_yet,
    not_ready_error,
    serialize,
)
from linkbound.client.remote.channel import call_metadata, credentials
from linkbound.client.remote.errors import error_of_call
from linkbound.client.remote.estimator_streams import ESTIMATE_SCHEDULE, STREAM_SWEEP
from linkbound.client.remote.ingest_streams import QUERY_SQL, WATCH_RUNS
from linkbound.client.remote.samples import RemoteConnector, open_aio_channel
from linkbound.client.remote.streams import StreamCall, aio_stream
from linkbound.client.remote.wire import WireMethod, wire_method
from linkbound.client.sample_stream import SampleConnector
from linkbound.client.target import GIVEN_CHANNEL
from linkbound.domain.errors import DeadlineExceededError, Error
from linkbound.domain.run_watch import RunUpdate, WatchRunsRequest
from linkbound.domain.schedule import SchedulePart, ScheduleRequest
from linkbound.domain.sql import SqlPart, SqlRequest
from linkbound.domain.sweep import SweepColumns, SweepRequest

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")


class AsyncRemoteBackend:
    """A server behind an asyncio channel. `services` are the full names that `wait_until_ready` waits for."""

    def __init__(self, connection: Connection, channel: grpc.aio.Channel | None, services: Sequence[str]) -> None:
        self._connection = connection if channel is None else evolve(connection, target=GIVEN_CHANNEL)
        self._given_channel = channel
        self._own_channel: grpc.aio.Channel | None = None
        self._tls_credentials = credentials(connection) if channel is None else None
        self._metadata = call_metadata(connection)
        self._services = services
        self._callables: dict[str, grpc.aio.UnaryUnaryMultiCallable[Any, Any]] = {}

    async def call(
        self, operation: Operation[RequestT, ResultT], request: RequestT, timeout_seconds: float | None
    ) -> ResultT:
        """The answer of the server."""
        method = wire_method(operation, request)
        message = method.request_to_proto(request)
        with errors_of_aio_calls(self._connection.target.address):
            answer = await self._callable(method)(message, timeout=timeout_seconds, metadata=self._metadata)
        return method.response_from_proto(answer)

    def sweep(self, request: SweepRequest, timeout_seconds: float | None) -> AsyncGenerator[SweepColumns, None]:
        """One stream of the server."""
        return aio_stream(self._channel(), STREAM_SWEEP, request, self._stream_call(timeout_seconds))

    def schedule(self, request: ScheduleRequest, timeout_seconds: float | None) -> AsyncGenerator[SchedulePart, None]:
        """One stream of the server."""
        return aio_stream(self._channel(), ESTIMATE_SCHEDULE, request, self._stream_call(timeout_seconds))

    def sql(self, request: SqlRequest, timeout_seconds: float | None) -> AsyncGenerator[SqlPart, None]:
        """One stream of the server."""
        return aio_stream(self._channel(), QUERY_SQL, request, self._stream_call(timeout_seconds))

    def watch_runs(self, request: WatchRunsRequest, timeout_seconds: float | None) -> AsyncGenerator[RunUpdate, None]:
        """One stream of the server."""
        return aio_stream(self._channel(), WATCH_RUNS, request, self._stream_call(timeout_seconds))

    async def wait_until_ready(self, timeout_seconds: float | None) -> None:
        """Return once the health service reports every service as serving."""
        clock = asyncio.get_running_loop()
        give_up_time = None if timeout_seconds is None else clock.time() + timeout_seconds
        for service in self._services:
            while True:
                remaining_seconds = None if give_up_time is None else give_up_time - clock.time()
                if remaining_seconds is not None and remaining_seconds <= 0:
                    raise not_ready_error(self._connection.target.address, timeout_seconds)
                if await self._is_serving(service, remaining_seconds):
                    break
                await asyncio.sleep(READY_POLL_SECONDS)

    def sample_connector(self) -> SampleConnector:
        """What opens streams over the channel of this backend."""
        return RemoteConnector(self._connection, self._channel)

    async def close(self) -> None:
        """Close the channel, unless it was given."""
        if self._own_channel is not None:
            await self._own_channel.close()

    def _channel(self) -> grpc.aio.Channel:
        # A channel belongs to an event loop, so it is opened where one runs.
        if self._given_channel is not None:
            return self._given_channel
        if self._own_channel is None:
            self._own_channel = open_aio_channel(self._connection, self._tls_credentials)
        return self._own_channel

    def _stream_call(self, timeout_seconds: float | None) -> StreamCall:
        address = self._connection.target.address
        return StreamCall(address=address, timeout_seconds=timeout_seconds, metadata=self._metadata)

    def _callable(self, method: WireMethod[Any, Any]) -> grpc.aio.UnaryUnaryMultiCallable[Any, Any]:
        if method.path not in self._callables:
            self._callables[method.path] = self._channel().unary_unary(
                method.path,
                request_serializer=serialize,
                response_deserializer=method.response_type.FromString,
            )
        return self._callables[method.path]

    async def _is_serving(self, service: str, timeout_seconds: float | None) -> bool:
        check = self._channel().unary_unary(
            HEALTH_CHECK_PATH,
            request_serializer=serialize,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = await check(
                health_pb2.HealthCheckRequest(service=service),
                timeout=timeout_seconds,
                metadata=self._metadata,
                wait_for_ready=True,
            )
        except grpc.RpcError as failure:
            error: Error = error_of_call(failure, self._connection.target.address)
            if isinstance(error, DeadlineExceededError) or is_not_ready_yet(error):
                return False
            raise error from failure
        return answer.status == health_pb2.HealthCheckResponse.SERVING
