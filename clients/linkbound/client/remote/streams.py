"""One stream of answers from a server; whoever reads it decides whether to open another."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from typing import Any, Generic, TypeVar

import grpc
from attrs import frozen
from google.protobuf.message import Message

from linkbound.client.remote.aio_errors import errors_of_aio_calls
from linkbound.client.remote.calls import serialize
from linkbound.client.remote.channel import Metadata
from linkbound.client.remote.errors import REQUEST_ID_KEY, error_of_call
from linkbound.domain.errors import Error, UnavailableError

RequestT = TypeVar("RequestT")
PartT = TypeVar("PartT")


@frozen(kw_only=True)
class StreamMethod(Generic[RequestT, PartT]):
    """One method that is answered by a stream: its path, and what converts to and from its messages.

    `part_from_proto` is what a message says; None: nothing that this version knows. `tells_taken_streams`: whether
    the error of a stream that a server had taken before it went away says so, STREAM_ENDED.
    """

    path: str
    request_to_proto: Callable[[RequestT], Message]
    response_type: type[Message]
    part_from_proto: Callable[[Any], PartT | None]
    tells_taken_streams: bool


@frozen(kw_only=True)
class StreamCall:
    """What a call takes beside its request; `address` is that of the server, for messages."""

    address: str
    timeout_seconds: float | None
    metadata: Metadata


def stream(
    channel: grpc.Channel, method: StreamMethod[RequestT, PartT], request: RequestT, call: StreamCall
) -> Generator[PartT, None, None]:
    """What the server sends, as it is read; closing the generator cancels the call."""
    ask = channel.unary_stream(
        method.path, request_serializer=serialize, response_deserializer=method.response_type.FromString
    )
    answers = ask(method.request_to_proto(request), timeout=call.timeout_seconds, metadata=call.metadata)
    try:
        for message in answers:
            part = method.part_from_proto(message)
            if part is not None:
                yield part
    except grpc.RpcError as failure:
        error = error_of_call(failure, call.address)
        if method.tells_taken_streams:
            error = _of_stream(error, answers.initial_metadata())
        raise error from failure
    finally:
        answers.cancel()


async def aio_stream(
    channel: grpc.aio.Channel, method: StreamMethod[RequestT, PartT], request: RequestT, call: StreamCall
) -> AsyncGenerator[PartT, None]:
    """The same on the event loop of `channel`."""
    ask = channel.unary_stream(
        method.path, request_serializer=serialize, response_deserializer=method.response_type.FromString
    )
    answers = ask(method.request_to_proto(request), timeout=call.timeout_seconds, metadata=call.metadata)
    try:
        with errors_of_aio_calls(call.address):
            async for message in answers:
                part = method.part_from_proto(message)
                if part is not None:
                    yield part
    except UnavailableError as error:
        if not method.tells_taken_streams:
            raise
        raise _of_stream(error, await answers.initial_metadata()) from error.__cause__
    finally:
        answers.cancel()


def _of_stream(error: Error, initial_metadata: Iterable[tuple[str, str | bytes]] | None) -> Error:
    """`error`, or that a server which had taken the stream is gone, where it says no more than UNAVAILABLE.

    Our servers name the request before they work on it; a stream that no server took has no such metadata.
    """
    request_id = next((value for key, value in initial_metadata or () if key == REQUEST_ID_KEY), "")
    says_why = not isinstance(error, UnavailableError) or error.reason != UnavailableError.default_reason
    if says_why or not isinstance(request_id, str) or not request_id:
        return error
    return UnavailableError(error.message, reason="STREAM_ENDED", request_id=request_id)
