"""An agent that writes samples without end: run as a process of its own, to be killed.

    python -m tests.faults.agent TARGET RUN WRITER_ID SPOOL PROGRESS GENERATION

Sample number i of generation g has the time g * GENERATION_NS + i and the value i, so that SQL can tell what is missing
or twice. After each write that returned, and at the end, PROGRESS holds how many samples are in the spool, and up to
which number the service acknowledged. SIGTERM: deliver everything and end. SIGUSR1: say on stderr where each thread is.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import struct
import sys
import threading
from pathlib import Path

from attrs import frozen

from linkbound import IngestClient, SampleColumns, SeriesDescriptor, Spool

GENERATION_NS = 10**12
SAMPLES_PER_WRITE = 200
PAUSE_SECONDS = 0.01
SPOOL_LIMIT_BYTES = 64 * 2**20

_PROGRESS = struct.Struct("<qq")


@frozen
class Progress:
    """What an agent told: samples that it spooled in this generation, and the number that is committed in all."""

    spooled_count: int
    committed_number: int

    @property
    def acknowledged_count(self) -> int:
        """Samples of all generations that the agent knows to be stored: each write is a batch."""
        return self.committed_number * SAMPLES_PER_WRITE


def read_progress(path: Path) -> Progress:
    """What the agent told last; zeros before its first write returned."""
    content = path.read_bytes() if path.exists() else b""
    return Progress(*_PROGRESS.unpack(content)) if len(content) == _PROGRESS.size else Progress(0, 0)


def series_of(generation: int) -> list[SeriesDescriptor]:
    """Each boot of a host has series of its own."""
    return [SeriesDescriptor(metric="port_xmit_data", node="n1", unit_bytes=4, boot_id=f"boot-{generation}")]


@frozen(kw_only=True)
class Assignment:
    """What an agent is to do."""

    target: str
    run: str
    writer_id: str
    spool: Path
    progress: Path
    generation: int


def write_until(stop: threading.Event, told: Assignment) -> None:
    """Write until `stop` is set, then deliver everything."""
    file = os.open(told.progress, os.O_WRONLY | os.O_CREAT, 0o600)
    spool = Spool(told.spool, limit_bytes=SPOOL_LIMIT_BYTES)
    with (
        IngestClient(told.target) as client,
        client.writer(told.run, told.writer_id, series_of(told.generation), spool=spool, linger_seconds=0) as writer,
    ):
        count = 0
        while not stop.wait(PAUSE_SECONDS):
            values = range(count, count + SAMPLES_PER_WRITE)
            begin_ns = told.generation * GENERATION_NS + count
            times = range(begin_ns, begin_ns + SAMPLES_PER_WRITE)
            writer.write([SampleColumns(series_index=0, time_ns=times, value=values)])
            count += SAMPLES_PER_WRITE
            os.pwrite(file, _PROGRESS.pack(count, writer.committed), 0)
    os.pwrite(file, _PROGRESS.pack(count, writer.committed), 0)
    assert (writer.dropped, writer.damaged, writer.rejected, writer.pending) == (0, 0, 0, 0)


def main() -> None:
    """Run one agent."""
    target, run, writer_id, spool, progress, generation = sys.argv[1:]
    told = Assignment(
        target=target,
        run=run,
        writer_id=writer_id,
        spool=Path(spool),
        progress=Path(progress),
        generation=int(generation),
    )
    stop = threading.Event()
    faulthandler.register(signal.SIGUSR1)
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    write_until(stop, told)


if __name__ == "__main__":
    main()
