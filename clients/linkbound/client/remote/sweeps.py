"""One stream of a sweep from a server; whoever reads it decides whether to open another."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator

import grpc

from linkbound.client.remote.calls import serialize
from linkbound.client.remote.channel import Metadata
from linkbound.client.remote.errors import error_of_call
from linkbound.convert.sweep import sweep_columns_from_proto, sweep_request_to_proto
from linkbound.domain.sweep import SweepColumns, SweepRequest
from linkbound.estimator.v1.sweep_pb2 import StreamSweepResponse

SWEEP_PATH = "/linkbound.estimator.v1.EstimatorService/StreamSweep"


def sweep_stream(
    channel: grpc.Channel, request: SweepRequest, *, address: str, timeout_seconds: float | None, metadata: Metadata
) -> Generator[SweepColumns, None, None]:
    """The stretches that the server at `address` sends; closing the generator cancels the call."""
    method = channel.unary_stream(
        SWEEP_PATH, request_serializer=serialize, response_deserializer=StreamSweepResponse.FromString
    )
    call = method(sweep_request_to_proto(request), timeout=timeout_seconds, metadata=metadata)
    try:
        for message in call:
            yield sweep_columns_from_proto(message)
    except grpc.RpcError as failure:
        raise error_of_call(failure, address) from failure
    finally:
        call.cancel()


async def aio_sweep_stream(
    channel: grpc.aio.Channel,
    request: SweepRequest,
    *,
    address: str,
    timeout_seconds: float | None,
    metadata: Metadata,
) -> AsyncGenerator[SweepColumns, None]:
    """The same on the event loop of `channel`."""
    method = channel.unary_stream(
        SWEEP_PATH, request_serializer=serialize, response_deserializer=StreamSweepResponse.FromString
    )
    call = method(sweep_request_to_proto(request), timeout=timeout_seconds, metadata=metadata)
    try:
        async for message in call:
            yield sweep_columns_from_proto(message)
    except grpc.RpcError as failure:
        raise error_of_call(failure, address) from failure
    finally:
        call.cancel()
