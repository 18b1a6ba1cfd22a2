"""Calls to a server that block."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from typing import Any, TypeVar

import grpc
from attrs import evolve
from grpc_health.v1 import health_pb2

from linkbound.client.backend import Connection
from linkbound.client.operations import Operation
from linkbound.client.remote.calls import (
    HEALTH_CHECK_PATH,
    READY_POLL_SECONDS,
    is_not_ready_yet,
    not_ready_error,
    serialize,
)
from linkbound.client.remote.channel import call_metadata, channel_options, credentials, given_channel_error
from linkbound.client.remote.errors import error_of_call
from linkbound.client.remote.estimator_streams import ESTIMATE_SCHEDULE, STREAM_SWEEP
from linkbound.client.remote.ingest_streams import QUERY_SQL, WATCH_RUNS
from linkbound.client.remote.samples import OwnChannelConnector
from linkbound.client.remote.streams import StreamCall, stream
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


class RemoteBackend:
    """A server behind a blocking channel. `services` are the full names that `wait_until_ready` waits for."""

    def __init__(self, connection: Connection, channel: grpc.Channel | None, services: Sequence[str]) -> None:
        self._connection = connection if channel is None else evolve(connection, target=GIVEN_CHANNEL)
        self._owns_channel = channel is None
        self._tls_credentials = credentials(connection) if channel is None else None
        self._channel = channel if channel is not None else _open_channel(connection, self._tls_credentials)
        self._metadata = call_metadata(connection)
        self._services = services
        self._callables: dict[str, grpc.UnaryUnaryMultiCallable[Any, Any]] = {}
        self._callables_lock = threading.Lock()

    def call(
        self, operation: Operation[RequestT, ResultT], request: RequestT, timeout_seconds: float | None
    ) -> ResultT:
        """The answer of the server."""
        method = wire_method(operation, request)
        message = method.request_to_proto(request)
        try:
            answer = self._callable(method)(message, timeout=timeout_seconds, metadata=self._metadata)
        except grpc.RpcError as failure:
            raise error_of_call(failure, self._connection.target.address) from failure
        return method.response_from_proto(answer)

    def sweep(self, request: SweepRequest, timeout_seconds: float | None) -> Generator[SweepColumns, None, None]:
        """One stream of the server."""
        return stream(self._channel, STREAM_SWEEP, request, self._stream_call(timeout_seconds))

    def schedule(self, request: ScheduleRequest, timeout_seconds: float | None) -> Generator[SchedulePart, None, None]:
        """One stream of the server."""
        return stream(self._channel, ESTIMATE_SCHEDULE, request, self._stream_call(timeout_seconds))

    def sql(self, request: SqlRequest, timeout_seconds: float | None) -> Generator[SqlPart, None, None]:
        """One stream of the server."""
        return stream(self._channel, QUERY_SQL, request, self._stream_call(timeout_seconds))

    def watch_runs(self, request: WatchRunsRequest, timeout_seconds: float | None) -> Generator[RunUpdate, None, None]:
        """One stream of the server."""
        return stream(self._channel, WATCH_RUNS, request, self._stream_call(timeout_seconds))

    def wait_until_ready(self, timeout_seconds: float | None) -> None:
        """Return once the health service reports every service as serving."""
        give_up_time = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        for service in self._services:
            while True:
                remaining_seconds = None if give_up_time is None else give_up_time - time.monotonic()
                if remaining_seconds is not None and remaining_seconds <= 0:
                    raise not_ready_error(self._connection.target.address, timeout_seconds)
                if self._is_serving(service, remaining_seconds):
                    break
                time.sleep(READY_POLL_SECONDS)

    def sample_connector(self) -> SampleConnector:
        """What opens streams over a channel of its own: streaming needs an event loop."""
        if not self._owns_channel:
            raise given_channel_error()
        return OwnChannelConnector(self._connection, self._tls_credentials)

    def close(self) -> None:
        """Close the channel, unless it was given."""
        if self._owns_channel:
            self._channel.close()

    def _stream_call(self, timeout_seconds: float | None) -> StreamCall:
        address = self._connection.target.address
        return StreamCall(address=address, timeout_seconds=timeout_seconds, metadata=self._metadata)

    def _callable(self, method: WireMethod[Any, Any]) -> grpc.UnaryUnaryMultiCallable[Any, Any]:
        with self._callables_lock:
            if method.path not in self._callables:
                self._callables[method.path] = self._channel.unary_unary(
                    method.path,
                    request_serializer=serialize,
                    response_deserializer=method.response_type.FromString,
                )
            return self._callables[method.path]

    def _is_serving(self, service: str, timeout_seconds: float | None) -> bool:
        check = self._channel.unary_unary(
            HEALTH_CHECK_PATH,
            request_serializer=serialize,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = check(
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


def _open_channel(connection: Connection, tls_credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    options = channel_options(connection)
    if tls_credentials is None:
        return grpc.insecure_channel(connection.target.address, options)
    return grpc.secure_channel(connection.target.address, tls_credentials, options)
