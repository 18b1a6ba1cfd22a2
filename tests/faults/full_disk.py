"""A spool on a file system that is really full: run as a process of its own, within a small tmpfs.

    python -m tests.faults.full_disk DIR

Prints what was kept, dropped and stored, as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import sys
from pathlib import Path

from linkbound import Spool, UnavailableError
from linkbound.client.aio_sample_writer import AsyncSampleWriter
from linkbound.client.closing import Closing
from linkbound.client.writer_options import writer_options
from tests.unit.client.memory_service import MemoryService
from tests.unit.client.test_aio_sample_writer import REQUEST, samples

LIMIT_BYTES = 2**30
SAMPLES_PER_BATCH = 2000
MORE_THAN_FIT = 2000
TIMEOUT_SECONDS = 0.5


def writer(service: MemoryService, directory: Path) -> AsyncSampleWriter:
    """A writer whose spool may grow far beyond the file system."""
    spool = Spool(directory / "spool", limit_bytes=LIMIT_BYTES)
    return AsyncSampleWriter(service, REQUEST, writer_options(spool, 0, TIMEOUT_SECONDS), Closing())


def fill_up(directory: Path) -> Path:
    """A file of somebody else that takes all the room that is left."""
    path = directory / "somebody-else"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(65536))
        except OSError as error:
            assert error.errno == errno.ENOSPC
    return path


async def fill_and_drain(directory: Path) -> dict[str, object]:
    """Write more than fits, end, come back on the full disk, and deliver everything that was kept."""
    service = MemoryService(connect_errors=[UnavailableError("refused") for _ in range(1000)])
    kept: list[int] = []
    with contextlib.suppress(UnavailableError):
        async with writer(service, directory) as spooled:
            for value in range(MORE_THAN_FIT):
                dropped = spooled.dropped
                await spooled.write(samples(value, SAMPLES_PER_BATCH))
                if spooled.dropped == dropped:
                    kept.append(value)
            first_dropped = spooled.dropped
    other = fill_up(directory)
    with contextlib.suppress(UnavailableError):
        async with writer(service, directory) as spooled:
            await spooled.write(samples(MORE_THAN_FIT, SAMPLES_PER_BATCH))
            second_dropped = spooled.dropped
    service.connect_errors.clear()
    async with writer(service, directory) as spooled:
        await spooled.flush()
        # What is delivered makes way, even where nothing is checkpointed and nobody else frees a byte.
        await spooled.write(samples(-1, SAMPLES_PER_BATCH))
        await spooled.flush()
    other.unlink()
    return {
        "kept": kept,
        "stored": [batch.columns[0].value[0] for batch in service.stored],
        "first_dropped": first_dropped,
        "second_dropped": second_dropped,
        "last_dropped": spooled.dropped,
    }


if __name__ == "__main__":
    json.dump(asyncio.run(fill_and_drain(Path(sys.argv[1]))), sys.stdout)
