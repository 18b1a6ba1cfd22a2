"""Batches that are refused, after which the stream goes on."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import duckdb
import grpc
import pytest

from ingest_service.server import serve as serve_ingest
from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from linkbound.client.remote.errors import error_of_status
from linkbound.domain.errors import AbortedError, InvalidArgumentError, OutOfRangeError
from linkbound.domain.run import CreateRunRequest
from linkbound.ingest.v1.ingest_service_pb2 import BatchAck, BatchError, StreamSamplesRequest
from linkbound.ingest.v1.ingest_service_pb2 import SampleBatch as SampleBatchMessage
from serving.settings import ServerSettings
from tests.integration.sample_stream.calls import STORE_FILE, Stream, arrow_message, batch_message
from tests.integration.servers import running
from tests.new_store import laid

pytestmark = pytest.mark.storage


async def test_a_gap_is_refused_and_the_stream_goes_on(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(batch_message(5))
    refusal = await stream.read()
    assert isinstance(refusal, BatchError)
    assert refusal.sequence_number == 5
    error = error_of_status(refusal.status)
    assert isinstance(error, OutOfRangeError)
    assert error.metadata["expectedSequenceNumber"] == "1"
    await stream.send(batch_message(1))
    await stream.ack_of(1)


async def test_a_number_with_other_samples_is_refused_and_the_stream_goes_on(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(batch_message(1))
    await stream.ack_of(1)
    await stream.send(batch_message(1, sample_count=4))
    refusal = await stream.read()
    assert isinstance(refusal, BatchError)
    error = error_of_status(refusal.status)
    assert isinstance(error, AbortedError)
    assert error.reason == "WRITER_CONFLICT"
    await stream.send(batch_message(2))
    await stream.ack_of(2)


def unequal_columns() -> StreamSamplesRequest:
    message = batch_message(1)
    message.batch.column_set.columns[0].value_deltas.append(1)
    return message


def garbage() -> StreamSamplesRequest:
    message = arrow_message(1)
    message.batch.arrow_ipc = b"\xff" * 100
    return message


def cut() -> StreamSamplesRequest:
    message = arrow_message(1)
    message.batch.arrow_ipc = message.batch.arrow_ipc[:-40]
    return message


def too_many_columns() -> StreamSamplesRequest:
    message = StreamSamplesRequest()
    message.batch.sequence_number = 1
    for _ in range(1025):
        message.batch.column_set.columns.add()
    return message


@pytest.mark.parametrize(
    "malformed",
    [
        unequal_columns(),
        batch_message(1, series_index=2),
        batch_message(1, series_index=-1),
        batch_message(1, sample_count=2**20),
        too_many_columns(),
        garbage(),
        cut(),
        arrow_message(1, series_index=2),
        arrow_message(1, sample_count=100_000),
    ],
    ids=[
        "unequal columns",
        "unknown series",
        "negative series",
        "above max_batch_bytes",
        "too many columns",
        "no Arrow stream",
        "an Arrow stream that is cut",
        "unknown series in Arrow",
        "Arrow above max_batch_bytes",
    ],
)
async def test_a_malformed_batch_uses_up_its_number(channel: grpc.aio.Channel, malformed: StreamSamplesRequest) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(malformed)
    refusal = await stream.read()
    assert isinstance(refusal, BatchError)
    assert refusal.sequence_number == 1
    assert isinstance(error_of_status(refusal.status), InvalidArgumentError)
    await stream.send(batch_message(2))
    await stream.ack_of(2)
    await stream.half_close()
    assert (await stream.rest())[-1] == BatchAck(committed_sequence_number=2)


async def test_an_encoding_that_is_not_known_is_refused_and_not_taken_for_an_empty_batch(
    channel: grpc.aio.Channel,
) -> None:
    stream = Stream(channel)
    await stream.opened()
    message = StreamSamplesRequest()
    message.batch.sequence_number = 1
    # Field 15, which is not one of this version's, with two bytes.
    message.batch.MergeFromString(b"\x7a\x02ab")
    await stream.send(message)
    refusal = await stream.read()
    assert isinstance(refusal, BatchError)
    error = error_of_status(refusal.status)
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == ["batch.content"]
    await stream.send(batch_message(2))
    await stream.ack_of(2)


async def test_what_is_refused_is_in_the_ledger_and_other_content_is_a_conflict(tmp_path: Path) -> None:
    settings = StoreSettings(path=laid(tmp_path / STORE_FILE), max_batch_bytes=1024)
    with Ingest.open(settings) as ingest:
        ingest.create_run(CreateRunRequest(run_id="r"))
        serve = partial(serve_ingest, ServerSettings(), ingest)
        async with (
            running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server,
            server.channel() as channel,
        ):
            stream = Stream(channel)
            await stream.opened()
            answers = []
            for message in (batch_message(1, 2000), batch_message(1, 2000), batch_message(1, 2001)):
                await stream.send(message)
                answers.append(await stream.read())
            await stream.send(StreamSamplesRequest(batch=SampleBatchMessage(sequence_number=1)))
            answers.append(await stream.read())
    errors = [error_of_status(answer.status) for answer in answers if isinstance(answer, BatchError)]
    assert [type(error) for error in errors] == [
        InvalidArgumentError,
        InvalidArgumentError,
        AbortedError,
        AbortedError,
    ]
    with duckdb.connect(str(settings.path), read_only=True) as connection:
        ledger = connection.execute("SELECT row_count, rejected_row_count, rejection_message FROM ledger").fetchall()
    assert ledger == [(0, 2000, errors[0].message)]


async def test_a_malformed_batch_at_the_end_is_part_of_the_last_acknowledgement(channel: grpc.aio.Channel) -> None:
    stream = Stream(channel)
    await stream.opened()
    await stream.send(batch_message(1), StreamSamplesRequest(batch=batch_message(2, series_index=9).batch))
    await stream.half_close()
    assert (await stream.rest())[-1] == BatchAck(committed_sequence_number=2)


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63)])
async def test_a_number_that_is_none_is_refused(channel: grpc.aio.Channel, number: int) -> None:
    stream = Stream(channel)
    await stream.opened()
    message = batch_message(1)
    message.batch.sequence_number = number
    await stream.send(message)
    refusal = await stream.read()
    assert isinstance(refusal, BatchError)
    assert refusal.sequence_number == number
    error = error_of_status(refusal.status)
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == ["sequence_number"]
    await stream.send(batch_message(1))
    await stream.ack_of(1)
