"""The sample writer over every kind of client, and through the restart of a server."""

import asyncio
import threading
from pathlib import Path

import pytest

from linkbound import (
    AsyncIngestClient,
    FailedPreconditionError,
    IngestClient,
    NotFoundError,
    SampleColumns,
    SeriesDescriptor,
    UnavailableError,
)
from tests.congruence.servers import ServerThread, ingest_server, running

SERIES = [
    SeriesDescriptor(metric="port_xmit_data", node="n1", device="mlx5_0", port=1, unit_bytes=4),
    SeriesDescriptor(metric="temperature", node="n1", counter_bits=0),
]


def batch(number: int, count: int = 10) -> list[SampleColumns]:
    start = number * count
    return [
        SampleColumns(series_index=0, time_ns=tuple(range(start, start + count)), value=tuple(range(count))),
        SampleColumns(series_index=1, time_ns=(start,), value=(-number,), read_duration_ns=(3,)),
    ]


def write_and_read(client: IngestClient) -> tuple[int, int, int]:
    """Write with a good and a bad sample, twice; return what is committed, rejected and stored."""
    client.create_run("r1")
    with client.writer("r1", "w1", SERIES, linger_seconds=0) as writer:
        for number in range(5):
            writer.write(batch(number))
        writer.flush()
        writer.write([SampleColumns(series_index=0, time_ns=(7, 3, 9), value=(1, -1, 2))])
    with client.writer("r1", "w1", SERIES, linger_seconds=0) as again:
        assert again.committed == 6
        again.write(batch(9))
    return again.committed, writer.rejected, client.get_run("r1").row_counts.sample_count


def test_local_and_remote_store_the_same(tmp_path: Path) -> None:
    with IngestClient(data_directory=tmp_path / "local") as client:
        local = write_and_read(client)
    with running(ingest_server(tmp_path / "remote")) as server, IngestClient(server.target) as client:
        remote = write_and_read(client)
    assert local == remote == (7, 1, 5 * 11 + 2 + 11)


async def test_the_asyncio_writer_stores_the_same_locally_and_remotely(tmp_path: Path) -> None:
    server = await asyncio.to_thread(ServerThread, ingest_server(tmp_path / "remote"))
    outcomes = []
    try:
        for client in (AsyncIngestClient(data_directory=tmp_path / "local"), AsyncIngestClient(server.target)):
            async with client:
                await client.create_run("r1")
                async with client.writer("r1", "w1", SERIES, linger_seconds=0) as writer:
                    for number in range(50):
                        await writer.write(batch(number))
                details = await client.get_run("r1")
                outcomes.append((writer.committed, writer.rejected, details.row_counts.sample_count))
    finally:
        await asyncio.to_thread(server.stop)
    assert outcomes == [(50, 0, 550), (50, 0, 550)]


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_refusals_are_the_same(tmp_path: Path, kind: str) -> None:
    with running(ingest_server(tmp_path / "remote")) as server:
        target = "local:" if kind == "local" else server.target
        with IngestClient(target, data_directory=tmp_path / "local") as client:
            with pytest.raises(NotFoundError), client.writer("r1", "w1", SERIES, linger_seconds=0):
                pytest.fail("the block must not run")
            client.create_run("r1")
            client.seal_run("r1")
            with (
                pytest.raises(FailedPreconditionError) as caught,
                client.writer("r1", "w1", SERIES, linger_seconds=0),
            ):
                pytest.fail("the block must not run")
            assert (caught.value.reason, caught.value.metadata) == ("RUN_SEALED", {"run": "r1"})


def test_a_run_sealed_under_an_open_writer_raises_what_was_not_delivered(tmp_path: Path) -> None:
    with running(ingest_server(tmp_path)) as server, IngestClient(server.target) as client:
        client.create_run("r1")

        def write_past_the_seal() -> None:
            with client.writer("r1", "w1", SERIES, linger_seconds=0) as writer:
                writer.write(batch(1))
                writer.flush()
                client.seal_run("r1")
                writer.write(batch(2))

        with pytest.raises(FailedPreconditionError) as caught:
            write_past_the_seal()
        assert caught.value.reason == "RUN_SEALED"
        assert caught.value.metadata["undeliveredSampleCount"] == "11"
        assert client.get_run("r1").row_counts.sample_count == 11


def test_a_restarted_server_gets_every_batch_once(tmp_path: Path) -> None:
    first = ServerThread(ingest_server(tmp_path))
    second: list[ServerThread] = []
    try:
        with IngestClient(first.target) as client:
            client.create_run("r1")
            with client.writer("r1", "w1", SERIES, linger_seconds=0) as writer:
                for number in range(20):
                    writer.write(batch(number))
                first.stop()
                restart = threading.Thread(
                    target=lambda: second.append(ServerThread(ingest_server(tmp_path, port=first.port)))
                )
                restart.start()
                for number in range(20, 60):
                    writer.write(batch(number))
                restart.join()
            assert writer.committed == 60
            assert client.get_run("r1").row_counts.sample_count == 60 * 11
    finally:
        for server in (first, *second):
            server.stop()


def test_a_server_that_does_not_come_back_raises_what_was_not_delivered(tmp_path: Path) -> None:
    server = ServerThread(ingest_server(tmp_path))
    try:
        with IngestClient(server.target) as client:
            client.create_run("r1")

            def write_past_the_end() -> None:
                with client.writer("r1", "w1", SERIES, linger_seconds=0, timeout_seconds=3) as writer:
                    writer.write(batch(1))
                    writer.flush()
                    server.stop()
                    writer.write(batch(2))

            with pytest.raises(UnavailableError) as caught:
                write_past_the_end()
        assert caught.value.metadata["undeliveredSampleCount"] == "11"
    finally:
        server.stop()
