"""Sample streams to a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc

from linkbound.client.backend import Connection
from linkbound.client.remote.channel import call_metadata, channel_options
from linkbound.client.remote.errors import error_of_call, error_of_status
from linkbound.client.sample_stream import BatchRefusal, SampleConnection, SampleEvent
from linkbound.convert.ingest_service import (
    batch_outcome_from_proto,
    open_stream_request_to_proto,
    stream_start_from_proto,
)
from linkbound.convert.sample_payload import batch_message_bytes
from linkbound.domain.errors import Error, InternalError, UnavailableError
from linkbound.domain.samples import OpenStreamRequest, StreamLimits, StreamStart
from linkbound.ingest.v1.ingest_service_pb2 import StreamSamplesRequest, StreamSamplesResponse

_Call = grpc.aio.StreamStreamCall[bytes, StreamSamplesResponse]

_PATH = "/linkbound.ingest.v1.IngestService/StreamSamples"
_NOT_STARTED = StreamStart(committed_sequence_number=0, limits=StreamLimits(max_in_flight_batches=0, max_batch_bytes=0))


def open_aio_channel(connection: Connection, tls_credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    """A channel of the running event loop."""
    options = channel_options(connection)
    if tls_credentials is None:
        return grpc.aio.insecure_channel(connection.target.address, options)
    return grpc.aio.secure_channel(connection.target.address, tls_credentials, options)


class RemoteConnector:
    """Opens streams over a channel that someone else closes."""

    def __init__(self, connection: Connection, channel: Callable[[], grpc.aio.Channel]) -> None:
        self._connection = connection
        self._channel = channel

    async def connect(self, request: OpenStreamRequest) -> SampleConnection:
        """Open a stream, waiting for the server where it is not there yet."""
        # Batches are kept as bytes, and travel as they are.
        method = self._channel().stream_stream(
            _PATH, request_serializer=_as_it_is, response_deserializer=StreamSamplesResponse.FromString
        )
        call = method(metadata=call_metadata(self._connection), wait_for_ready=True)
        stream = _Stream(call, self._connection.target.address)
        try:
            await stream.open(request)
        except BaseException:
            await stream.close()
            raise
        return stream

    async def close(self) -> None:
        """Nothing: the channel is not of this connector."""


class OwnChannelConnector:
    """Opens streams over a channel of its own."""

    def __init__(self, connection: Connection, tls_credentials: grpc.ChannelCredentials | None) -> None:
        self._connection = connection
        self._tls_credentials = tls_credentials
        self._channel: grpc.aio.Channel | None = None

    async def connect(self, request: OpenStreamRequest) -> SampleConnection:
        """Open a stream, waiting for the server where it is not there yet."""
        return await RemoteConnector(self._connection, self._opened_channel).connect(request)

    async def close(self) -> None:
        """Close the channel."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    def _opened_channel(self) -> grpc.aio.Channel:
        if self._channel is None:
            self._channel = open_aio_channel(self._connection, self._tls_credentials)
        return self._channel


def _as_it_is(message: bytes) -> bytes:
    return message


class _Stream:
    """One stream. A break shows in `receive`, which knows why; `send` and `finish` pass over it."""

    def __init__(self, call: _Call, address: str) -> None:
        self._call = call
        self._address = address
        self.start = _NOT_STARTED

    async def open(self, request: OpenStreamRequest) -> None:
        """Send the opening and take the answer."""
        await self._write(StreamSamplesRequest(open=open_stream_request_to_proto(request)).SerializeToString())
        answer = await self._read()
        if answer is None or answer.WhichOneof("message") != "opened":
            raise UnavailableError(f"{self._address}: the stream ended before it was open", reason="STREAM_ENDED")
        self.start = stream_start_from_proto(answer.opened)

    async def send(self, sequence_number: int, payload: bytes) -> None:
        """Send one batch."""
        await self._write(batch_message_bytes(sequence_number, payload))

    async def receive(self) -> SampleEvent | None:
        """The next answer that this version knows; None at the end of the stream."""
        while (answer := await self._read()) is not None:
            match answer.WhichOneof("message"):
                case "ack":
                    return batch_outcome_from_proto(answer.ack)
                case "error":
                    return BatchRefusal(answer.error.sequence_number, error_of_status(answer.error.status))
        return None

    async def finish(self) -> None:
        """Say that no further batch comes."""
        try:
            await self._call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            return

    async def close(self) -> None:
        """Give the stream up."""
        self._call.cancel()

    async def _write(self, message: bytes) -> None:
        try:
            await self._call.write(message)
        except (grpc.RpcError, asyncio.InvalidStateError):
            return

    async def _read(self) -> StreamSamplesResponse | None:
        try:
            answer = await self._call.read()
        except grpc.RpcError as failure:
            raise self._broken_by(failure) from failure
        return answer if isinstance(answer, StreamSamplesResponse) else None

    def _broken_by(self, failure: grpc.RpcError) -> Error:
        """The error of a stream that ended.

        gRPC calls a write into a stream that the server has just ended an internal error, and that hides the status
        that the server sent. Opening the stream again tells what it was. The server's own carry a request id.
        """
        error = error_of_call(failure, self._address)
        if isinstance(error, InternalError) and not error.request_id:
            return UnavailableError(f"{self._address}: the server ended the stream", reason="STREAM_ENDED")
        return error
