"""Records that a service acknowledged and lost with the end of its log: their writer still has them, over the wire."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from linkbound import AsyncIngestClient, Record, TrainingStep
from linkbound.client import record_delivery
from linkbound.client.spool.segment import segment_paths
from serving.settings import ServerSettings
from tests.integration.servers import ingest_server
from tests.integration.store_content import rows

pytestmark = pytest.mark.storage

STORE_FILE = "linkbound.duckdb"
RUN = "r1"


def records(number: int) -> list[Record]:
    return [TrainingStep(subject=f"s{number}", node_count=1, step_index=index, step_seconds=1.0) for index in range(3)]


def log_of(folder: Path) -> Path:
    return folder / f"{STORE_FILE}.wal"


def stored(folder: Path) -> list[tuple[str, int]]:
    return rows(folder, "SELECT subject, count(*) FROM training_steps GROUP BY ALL ORDER BY ALL")


@pytest.mark.parametrize("kept", ["in memory", "in a spool"])
@pytest.mark.parametrize("left_count", [0, 1, 2])
async def test_what_was_acknowledged_and_lost_is_sent_again(tmp_path: Path, kept: str, left_count: int) -> None:
    folder, spool = tmp_path / "store", tmp_path / "spool" if kept == "in a spool" else None
    async with ingest_server(folder) as server, AsyncIngestClient(server.target) as client:
        await client.create_run(RUN)
    server_settings = ServerSettings(port=server.port)
    sizes = []
    async with (
        AsyncIngestClient(f"127.0.0.1:{server.port}") as client,
        client.record_writer(RUN, "bench", spool=spool) as writer,
    ):
        async with ingest_server(folder, server_settings):
            for number in (1, 2, 3):
                sizes.append(log_of(folder).stat().st_size if log_of(folder).exists() else 0)
                await writer.write(records(number))
                await writer.flush()
            assert (writer.committed, writer.pending) == (3, 0)
            file, log = (folder / STORE_FILE).read_bytes(), log_of(folder).read_bytes()
        # The process is gone without a checkpoint, and the disk did not keep all of its log.
        (folder / STORE_FILE).write_bytes(file)
        log_of(folder).write_bytes(log[: sizes[left_count]])
        async with ingest_server(folder, server_settings):
            await writer.write(records(4))
            await writer.flush()
            assert (writer.committed, writer.pending) == (4, 0)
    assert stored(folder) == [(f"s{number}", 3) for number in (1, 2, 3, 4)]


async def test_a_writer_that_rests_hears_of_the_checkpoint_and_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_delivery, "CHECKPOINT_POLL_SECONDS", 0.3)
    path = tmp_path / "spool" / RUN / "bench.spool"
    async with (
        ingest_server(tmp_path / "store", checkpoint_idle_seconds=0.05) as server,
        AsyncIngestClient(server.target) as client,
    ):
        await client.create_run(RUN)
        async with client.record_writer(RUN, "bench", spool=tmp_path / "spool") as writer:
            await writer.write(records(1))
            await writer.flush()
        # The next process finds it in the spool, and by now a checkpoint holds it.
        async with client.record_writer(RUN, "bench", spool=tmp_path / "spool") as writer:
            while segment_paths(path):
                await asyncio.to_thread(time.sleep, 0.01)
            assert (writer.committed, writer.checkpointed, writer.pending) == (1, 1, 0)
    assert stored(tmp_path / "store") == [("s1", 3)]


async def test_an_append_tells_what_a_checkpoint_holds(tmp_path: Path) -> None:
    async with ingest_server(tmp_path) as server, AsyncIngestClient(server.target) as client:
        await client.create_run(RUN)
        first = await client.append(RUN, writer_id="bench", sequence_number=1, records=records(1))
        assert (first.committed_sequence_number, first.checkpointed_sequence_number) == (1, 0)
        # A snapshot begins with one.
        await client.publish_snapshot()
        again = await client.append(RUN, writer_id="bench", sequence_number=1, records=records(1))
        assert (again.committed_sequence_number, again.checkpointed_sequence_number) == (1, 1)
        second = await client.append(RUN, writer_id="bench", sequence_number=2, records=records(2))
        assert (second.committed_sequence_number, second.checkpointed_sequence_number) == (2, 1)
