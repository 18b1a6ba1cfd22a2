"""Batches are stored, then acknowledged, and a writer resumes where the store is."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from ingest_service.transport.names import INGEST_SERVICE
from linkbound.convert import ingest_service as convert
from linkbound.domain.run import CreateRunRequest
from linkbound.domain.samples import SampleBatch, SampleColumns
from linkbound.ingest.v1.ingest_service_pb2 import BatchAck, StreamSamplesRequest
from tests.integration.sample_stream.calls import (
    STORE_FILE,
    Stream,
    arrow_message,
    batch_message,
    open_message,
    stored_sample_count,
)
from tests.integration.servers import ingest_server

pytestmark = pytest.mark.storage


async def test_batches_are_acknowledged_after_they_are_stored(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    opened = await stream.opened()
    assert opened.committed_sequence_number == 0
    assert opened.max_in_flight_batches == 16
    assert opened.max_batch_bytes == 2**20
    await stream.send(batch_message(1))
    first = await stream.ack_of(1)
    assert first[-1] == BatchAck(committed_sequence_number=1)
    await stream.send(batch_message(2), batch_message(3))
    await stream.ack_of(3)


async def test_half_close_stores_what_was_sent_and_ends_well(tmp_path: Path) -> None:
    with Ingest.open(StoreSettings(path=tmp_path / STORE_FILE)) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))
    async with ingest_server(tmp_path) as server, server.channel() as channel:
        stream = Stream(channel)
        await stream.opened()
        await stream.send(*(batch_message(number) for number in range(1, 41)))
        await stream.half_close()
        answers = await stream.rest()
        assert await stream.call.code() is grpc.StatusCode.OK
    numbers = [answer.committed_sequence_number for answer in answers if isinstance(answer, BatchAck)]
    assert len(numbers) == len(answers)
    assert numbers == sorted(numbers)
    assert numbers[-1] == 40
    assert stored_sample_count(tmp_path) == 40 * 3


async def test_a_stream_without_batches_ends_well(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.half_close()
    assert await stream.rest() == [BatchAck(committed_sequence_number=0)]


async def test_a_writer_resumes_where_the_store_is(channel: grpc.aio.Channel) -> None:
    first = Stream(channel)
    await first.opened()
    await first.send(batch_message(1), batch_message(2))
    await first.ack_of(2)
    first.call.cancel()

    second = Stream(channel)
    opened = await second.opened(last_acked_sequence_number=1)
    assert opened.committed_sequence_number == 2
    # The acknowledgement of 2 was lost, so it is sent again; it is stored no second time.
    await second.send(batch_message(2), batch_message(3))
    await second.ack_of(3)
    await second.half_close()
    await second.rest()


async def test_samples_that_are_not_stored_are_counted_once(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.opened()
    backwards = SampleBatch(
        sequence_number=1,
        columns=(SampleColumns(series_index=0, time_ns=(1000, 999, 1001), value=(1, 2, 3)),),
    )
    await stream.send(StreamSamplesRequest(batch=convert.sample_batch_to_proto(backwards)))
    (ack,) = await stream.ack_of(1)
    assert isinstance(ack, BatchAck)
    assert ack.rejected_sample_count == 1
    assert ack.rejection_message
    await stream.half_close()
    assert await stream.rest() == [BatchAck(committed_sequence_number=1)]


async def test_one_log_line_for_a_stream_with_what_it_stored(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    messages = [open_message(), batch_message(1), batch_message(2)]
    with capture_logs() as logs:
        await stream.send(*messages)
        await stream.half_close()
        await stream.rest()
        await stream.call.code()
    (line,) = [line for line in logs if line["event"] == "rpc_finished"]
    assert (line["rpc"], line["code"], line["rows"]) == (f"{INGEST_SERVICE}/StreamSamples", "OK", 6)
    assert line["request_bytes"] == sum(message.ByteSize() for message in messages)


async def test_both_encodings_store_the_same_and_one_repeats_the_other(
    tmp_path: Path, channel: grpc.aio.Channel
) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(batch_message(1), arrow_message(2))
    await stream.ack_of(2)
    # The same samples in the other encoding are a repetition, and no other content.
    await stream.send(arrow_message(1), batch_message(2), arrow_message(3))
    answers = await stream.ack_of(3)
    assert all(isinstance(answer, BatchAck) for answer in answers)
    await stream.half_close()
    await stream.rest()
