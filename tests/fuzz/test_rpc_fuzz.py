"""Every method of both services, asked what no client would ask: an answer or a typed refusal, nothing else.

`FUZZ_CALLS` says how many calls each method gets (`make fuzz`: 2,000), `FUZZ_SEED` which.
"""

import asyncio
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message_factory import GetMessageClass

from linkbound.estimator.v1 import catalog_service_pb2, estimator_service_pb2
from linkbound.ingest.v1 import ingest_service_pb2, query_service_pb2, run_service_pb2
from tests.fuzz.random_messages import random_message
from tests.integration.servers import estimator_server, ingest_server

DEFAULT_CALL_COUNT = 25
STREAMED_ANSWER_COUNT = 3
QUIET_SECONDS = 1.0
CALLS_AT_ONCE = 5
PATIENCE_SECONDS = 30.0
ESTIMATOR_SERVICES = (
    estimator_service_pb2.DESCRIPTOR.services_by_name["EstimatorService"],
    catalog_service_pb2.DESCRIPTOR.services_by_name["CatalogService"],
)
INGEST_SERVICES = (
    ingest_service_pb2.DESCRIPTOR.services_by_name["IngestService"],
    run_service_pb2.DESCRIPTOR.services_by_name["RunService"],
    query_service_pb2.DESCRIPTOR.services_by_name["QueryService"],
)
NEVER = {
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
}
NO_MESSAGE = b"\xff\xff\xff\xff"
AS_THEY_ARE: Any = {"request_serializer": bytes, "response_deserializer": bytes}


async def converse(call: Any, requests: list[bytes]) -> None:
    """Sends the next request when the one before is answered: a client that writes to an ended call makes up a code."""
    for request in requests:
        await call.write(request)
        if await call.read() is grpc.aio.EOF:
            return
    await call.done_writing()
    while await call.read() is not grpc.aio.EOF:
        pass


async def code_of(channel: grpc.aio.Channel, method: MethodDescriptor, requests: list[bytes]) -> grpc.StatusCode:
    """How a call with serialised `requests` ends; a stream of answers is left after a few of them."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    try:
        if method.client_streaming:
            await converse(channel.stream_stream(path, **AS_THEY_ARE)(timeout=PATIENCE_SECONDS), requests)
        elif method.server_streaming:
            call = channel.unary_stream(path, **AS_THEY_ARE)(requests[0], timeout=PATIENCE_SECONDS)
            for _ in range(STREAMED_ANSWER_COUNT):
                reading = asyncio.ensure_future(call.read())
                # A watch says nothing while nothing happens.
                done, _ = await asyncio.wait({reading}, timeout=QUIET_SECONDS)
                if not done or reading.result() is grpc.aio.EOF:
                    break
            call.cancel()
        else:
            await channel.unary_unary(path, **AS_THEY_ARE)(requests[0], timeout=PATIENCE_SECONDS)
    except grpc.aio.AioRpcError as error:
        assert error.code() not in NEVER, f"{path} {error.code()}: {error.details()}"
        return error.code()
    return grpc.StatusCode.OK


async def every_method(folder: Path) -> AsyncIterator[tuple[grpc.aio.Channel, MethodDescriptor]]:
    """Every method of both services, each with a channel to one that runs."""
    async with AsyncExitStack() as stack:
        estimator = await stack.enter_async_context(estimator_server())
        ingest = await stack.enter_async_context(ingest_server(folder))
        sides: list[tuple[str, tuple[ServiceDescriptor, ...]]] = [
            (estimator.target, ESTIMATOR_SERVICES),
            (ingest.target, INGEST_SERVICES),
        ]
        for target, services in sides:
            channel = await stack.enter_async_context(
                grpc.aio.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)])
            )
            for method in (method for service in services for method in service.methods):
                yield channel, method


def group_sizes(call_count: int) -> Iterator[int]:
    """How many of the calls are made at once, one group after the other."""
    for start in range(0, call_count, CALLS_AT_ONCE):
        yield min(CALLS_AT_ONCE, call_count - start)


async def test_bytes_that_are_no_message_are_an_invalid_argument(tmp_path: Path) -> None:
    found = {
        method.full_name: await code_of(channel, method, [NO_MESSAGE])
        async for channel, method in every_method(tmp_path)
    }
    assert found == dict.fromkeys(found, grpc.StatusCode.INVALID_ARGUMENT)


async def test_no_request_breaks_a_service(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_count = int(os.environ.get("FUZZ_CALLS", DEFAULT_CALL_COUNT))
    seed = int(os.environ.get("FUZZ_SEED", "0"))
    codes: Counter[str] = Counter()
    async for channel, method in every_method(tmp_path):
        source = random.Random(f"{seed} {method.full_name}")
        kind = GetMessageClass(method.input_type)
        for count in group_sizes(call_count):
            calls = [[random_message(kind, source).SerializeToString() for _ in range(3)] for _ in range(count)]
            ended = await asyncio.gather(*(code_of(channel, method, requests) for requests in calls))
            codes.update(code.name for code in ended)
    assert codes["OK"] > 0
    assert codes["INVALID_ARGUMENT"] > 0
    with capsys.disabled():
        told = ", ".join(f"{count} {code}" for code, count in codes.most_common())
        sys.stdout.write(f"\n{codes.total()} calls of random requests: {told}\n")
