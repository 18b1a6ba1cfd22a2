"""One call of the sample stream, as a client drives it, and the messages it sends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from linkbound.client.remote.errors import error_of_call
from linkbound.convert import ingest_service as convert
from linkbound.domain.errors import Error
from linkbound.domain.samples import OpenStreamRequest, SampleBatch, SampleColumns, SeriesDescriptor
from linkbound.ingest.v1.ingest_service_pb2 import (
    BatchAck,
    BatchError,
    StreamOpened,
    StreamSamplesRequest,
    StreamSamplesResponse,
)
from linkbound.ingest.v1.ingest_service_pb2_grpc import IngestServiceStub
from tests.integration.servers import PATIENCE_SECONDS

if TYPE_CHECKING:
    # It exists for type checkers only.
    from linkbound.ingest.v1.ingest_service_pb2_grpc import IngestServiceAsyncStub


SERIES = (
    SeriesDescriptor(metric="port_xmit_data", node="node-a", device="mlx5_0", port=1, unit_bytes=4),
    SeriesDescriptor(metric="port_rcv_data", node="node-a", device="mlx5_0", port=1, unit_bytes=4),
)
STORE_FILE = "linkbound.duckdb"


def open_message(**changes: Any) -> StreamSamplesRequest:
    fields: dict[str, Any] = {"run": "r", "writer_id": "sampler", "series": SERIES, **changes}
    return StreamSamplesRequest(open=convert.open_stream_request_to_proto(OpenStreamRequest(**fields)))


def batch_of(number: int, sample_count: int = 3, series_index: int = 0) -> SampleBatch:
    times = tuple(range(number * 1000, number * 1000 + sample_count))
    columns = SampleColumns(series_index=series_index, time_ns=times, value=times)
    return SampleBatch(sequence_number=number, columns=(columns,))


def batch_message(number: int, sample_count: int = 3, series_index: int = 0) -> StreamSamplesRequest:
    return StreamSamplesRequest(batch=convert.sample_batch_to_proto(batch_of(number, sample_count, series_index)))


def arrow_message(number: int, sample_count: int = 3, series_index: int = 0) -> StreamSamplesRequest:
    batch = convert.sample_batch_to_arrow_proto(batch_of(number, sample_count, series_index))
    return StreamSamplesRequest(batch=batch)


class Stream:
    """One call, as a client drives it."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        stub: IngestServiceAsyncStub = IngestServiceStub(channel)
        self.call: Any = stub.StreamSamples()

    async def send(self, *messages: StreamSamplesRequest) -> None:
        for message in messages:
            await self.call.write(message)

    async def half_close(self) -> None:
        await self.call.done_writing()

    async def read(self) -> StreamOpened | BatchAck | BatchError | None:
        """The next answer; None at the end of a call that ends well."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            response = await self.call.read()
        if not isinstance(response, StreamSamplesResponse):
            return None
        content: StreamOpened | BatchAck | BatchError = getattr(response, str(response.WhichOneof("message")))
        return content

    async def opened(self, **changes: Any) -> StreamOpened:
        await self.send(open_message(**changes))
        answer = await self.read()
        assert isinstance(answer, StreamOpened)
        return answer

    async def ack_of(self, number: int) -> list[StreamOpened | BatchAck | BatchError | None]:
        """Answers up to the acknowledgement of `number`."""
        answers = []
        while True:
            answer = await self.read()
            answers.append(answer)
            assert answer is not None
            if isinstance(answer, BatchAck) and answer.committed_sequence_number == number:
                return answers

    async def rest(self) -> list[StreamOpened | BatchAck | BatchError]:
        """Answers up to the end of a call that ends well."""
        answers: list[StreamOpened | BatchAck | BatchError] = []
        while (answer := await self.read()) is not None:
            answers.append(answer)
        return answers

    async def error(self) -> Error:
        """The error that the call ends with, whatever comes before."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.rest()
        return error_of_call(caught.value, "the server")


def stored_sample_count(folder: Path) -> int:
    with Ingest.open(StoreSettings(path=folder / STORE_FILE)) as ingest:
        return ingest.get_run("r").row_counts.sample_count
