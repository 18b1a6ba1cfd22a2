"""Openings that are refused, and messages that a stream does not survive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
import pytest

from ingest_service.transport.names import INGEST_SERVICE
from linkbound.client.remote.errors import error_of_call
from linkbound.domain.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from linkbound.ingest.v1.ingest_service_pb2 import StreamSamplesRequest, StreamSamplesResponse
from tests.integration.sample_stream.calls import Stream, batch_message, open_message

pytestmark = pytest.mark.storage


@pytest.mark.parametrize(
    ("messages", "fields"),
    [
        ([], ["open"]),
        ([StreamSamplesRequest()], ["open"]),
        ([batch_message(1)], ["open"]),
        ([open_message(), open_message()], ["batch"]),
        ([open_message(), StreamSamplesRequest()], ["batch"]),
    ],
    ids=["nothing", "empty", "batch first", "opened twice", "empty later"],
)
async def test_messages_out_of_order(
    channel: grpc.aio.Channel, messages: Sequence[StreamSamplesRequest], fields: list[str]
) -> None:
    stream = Stream(channel)
    await stream.send(*messages)
    if not messages:
        await stream.half_close()
    error = await stream.error()
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == fields


async def test_an_opening_with_violations(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    message = StreamSamplesRequest()
    message.open.series.add(unit_bytes=-1)
    await stream.send(message)
    error = await stream.error()
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == [
        "run",
        "writer_id",
        "series[0].metric",
        "series[0].node",
        "series[0].unit_bytes",
    ]


async def test_a_run_that_does_not_exist(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.send(open_message(run="other"))
    assert isinstance(await stream.error(), NotFoundError)


async def test_acknowledged_data_that_is_gone(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.send(open_message(last_acked_sequence_number=7))
    error = await stream.error()
    assert isinstance(error, FailedPreconditionError)
    assert error.reason == "ACKED_DATA_MISSING"


async def test_bytes_that_are_no_message_end_the_stream(channel: grpc.aio.Channel) -> None:
    call: Any = channel.stream_stream(f"/{INGEST_SERVICE}/StreamSamples")()
    await call.write(open_message().SerializeToString())
    assert StreamSamplesResponse.FromString(await call.read()).HasField("opened")
    await call.write(b"\xff\xff\xff")
    # What is durable is acknowledged first.
    assert StreamSamplesResponse.FromString(await call.read()).HasField("ack")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call.read()
    error = error_of_call(caught.value, "the server")
    assert isinstance(error, InvalidArgumentError)
    assert error.reason == "MALFORMED_MESSAGE"
