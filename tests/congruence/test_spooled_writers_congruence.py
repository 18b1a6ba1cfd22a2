"""Writers with a spool over every kind of client: one process after the other, samples and records."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from linkbound import (
    AbortedError,
    AsyncIngestClient,
    Event,
    FailedPreconditionError,
    IngestClient,
    NotFoundError,
    Record,
    SampleColumns,
    SeriesDescriptor,
    Spool,
    TrainingStep,
)
from linkbound.client.spool.options import SMALLEST_LIMIT_BYTES
from linkbound.client.spool.segment import segment_paths
from tests.bound import bounded
from tests.congruence.servers import ingest_server, running

SERIES = [SeriesDescriptor(metric="port_xmit_data", node="n1")]
PLACES = ["local", "remote"]


@pytest.fixture(autouse=True)
def no_test_hangs() -> Iterator[None]:
    with bounded():
        yield


@contextmanager
def target_of(place: str, directory: Path) -> Iterator[str]:
    """Where a store is."""
    if place == "local":
        yield "local:"
    else:
        with running(ingest_server(directory)) as server:
            yield server.target


def batch(number: int, count: int = 10) -> list[SampleColumns]:
    times = range(number * count, (number + 1) * count)
    return [SampleColumns(series_index=0, time_ns=times, value=times)]


def records(number: int) -> list[Record]:
    return [
        TrainingStep(subject=f"s{number}", node_count=1, step_seconds=1.0),
        Event(kind="note", node="n1", text=f"event {number}"),
    ]


@pytest.mark.parametrize("place", PLACES)
def test_one_process_goes_on_where_the_other_ended(tmp_path: Path, place: str) -> None:
    spool = tmp_path / "spool"
    with target_of(place, tmp_path) as target:
        for process in range(3):
            with IngestClient(target, data_directory=tmp_path) as client:
                client.create_run("r1")
                with client.writer("r1", "sampler", SERIES, spool=spool, linger_seconds=0) as writer:
                    for number in range(4):
                        writer.write(batch(4 * process + number))
                with client.record_writer("r1", "bench", spool=spool) as bench:
                    bench.write(records(process))
                assert (writer.committed, writer.pending, writer.rejected) == (4 * (process + 1), 0, 0)
                assert (bench.committed, bench.pending, bench.rejected) == (2 * (process + 1), 0, 0)
        with IngestClient(target, data_directory=tmp_path) as client:
            counts = client.get_run("r1").row_counts
    assert (counts.sample_count, counts.training_step_count, counts.event_count) == (120, 3, 3)


@pytest.mark.parametrize("place", PLACES)
async def test_the_asyncio_writers_do_the_same(tmp_path: Path, place: str) -> None:
    spool = tmp_path / "spool"
    with target_of(place, tmp_path) as target:
        async with AsyncIngestClient(target, data_directory=tmp_path) as client:
            await client.create_run("r1")
            for process in range(2):
                async with (
                    client.writer("r1", "sampler", SERIES, spool=spool) as writer,
                    client.record_writer("r1", "bench", spool=spool) as bench,
                ):
                    for number in range(20):
                        await writer.write(batch(20 * process + number))
                        await bench.write(records(number))
                assert (writer.pending, bench.pending, bench.committed) == (0, 0, 40 * (process + 1))
            counts = (await client.get_run("r1")).row_counts
    assert (counts.sample_count, counts.training_step_count, counts.event_count) == (400, 40, 40)


@pytest.mark.parametrize("place", PLACES)
def test_a_run_that_does_not_exist_or_has_ended_is_told_and_the_samples_stay(tmp_path: Path, place: str) -> None:
    spool = tmp_path / "spool"

    def write_and_leave(client: IngestClient, writer_id: str) -> None:
        with client.writer("r1", writer_id, SERIES, spool=spool) as writer:
            writer.write(batch(1))

    with target_of(place, tmp_path) as target, IngestClient(target, data_directory=tmp_path) as client:
        with pytest.raises(NotFoundError) as missing:
            write_and_leave(client, "early")
        client.create_run("r1")
        client.seal_run("r1")
        with pytest.raises(FailedPreconditionError) as sealed:
            write_and_leave(client, "late")
    assert (missing.value.reason, missing.value.metadata["spooledSampleCount"]) == ("RUN_NOT_FOUND", "10")
    assert (sealed.value.reason, sealed.value.metadata) == ("RUN_SEALED", {"run": "r1", "spooledSampleCount": "10"})


@pytest.mark.parametrize("place", PLACES)
async def test_a_second_process_with_the_writer_id_fences_the_first(tmp_path: Path, place: str) -> None:
    with target_of(place, tmp_path) as target:
        async with AsyncIngestClient(target, data_directory=tmp_path) as client:
            await client.create_run("r1")
            first = await client.writer("r1", "sampler", SERIES, spool=tmp_path / "first").__aenter__()
            await first.write(batch(0))
            await first.flush()
            async with client.writer("r1", "sampler", SERIES, spool=tmp_path / "second") as second:
                await second.write(batch(1))
                await second.flush()

                async def write_on() -> None:
                    while True:
                        await first.write(batch(2))
                        await asyncio.sleep(0.01)

                with pytest.raises(AbortedError) as caught:
                    await write_on()
                assert caught.value.reason == "WRITER_FENCED"
                # Whether a write was taken before it was told decides whether anything is left to raise for.
                with suppress(AbortedError):
                    await first.__aexit__(None, None, None)
            counts = (await client.get_run("r1")).row_counts
    assert counts.sample_count == 20


def wait_until_emptied(directory: Path) -> None:
    while len(segment_paths(directory)) > 1:
        time.sleep(0.05)


@pytest.mark.parametrize("place", PLACES)
async def test_the_spool_is_emptied_as_the_service_checkpoints(tmp_path: Path, place: str) -> None:
    spool = Spool(tmp_path / "spool", limit_bytes=16 * SMALLEST_LIMIT_BYTES)
    with target_of(place, tmp_path) as target:
        async with AsyncIngestClient(target, data_directory=tmp_path) as client:
            await client.create_run("r1")
            async with client.writer("r1", "sampler", SERIES, spool=spool, linger_seconds=0) as writer:
                number = 0
                directory = tmp_path / "spool" / "r1" / "sampler.spool"
                while len(segment_paths(directory)) < 4:
                    await writer.write(batch(number, count=8000))
                    number += 1
                await writer.flush()
                # Nothing is written any more, so that the store takes the time for a checkpoint.
                await asyncio.to_thread(wait_until_emptied, directory)
                assert writer.checkpointed == writer.committed == number
