"""A process that appends until it is killed: `python -m tests.integration.store_appender FILE [LARGEST_FILE_BYTES]`.

Prints `writer number` after each acknowledgement, and `broken CODE` when the store gives up. Two writers stream samples
and one appends records; each goes on from the number that the store holds. The content of an append tells its number:
batch n has `SAMPLES_PER_BATCH` values from n * 1000, append n has `RECORDS_PER_APPEND` records of subject n.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from collections import deque
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any

import structlog

from ingest_service.service import Ingest, StoreSettings
from linkbound.domain.errors import Error
from linkbound.domain.records import AppendRequest
from linkbound.domain.run import CreateRunRequest
from tests.integration.store_content import RUN, batch, request_record, stream

STREAM_WRITERS = ("sampler-a", "sampler-b")
UNARY_WRITER = "bench"
SAMPLES_PER_BATCH = 500
RECORDS_PER_APPEND = 20
WINDOW = 8


def say(line: str) -> None:
    """Prints a line in one system call, so that lines of several threads do not mix."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def acknowledged(writer: str, future: Future[Any]) -> None:
    """Prints the number that `future` acknowledges."""
    say(f"{writer} {future.result().committed_sequence_number}")


def stream_samples(ingest: Ingest, writer: str) -> None:
    """Sends batches for ever, `WINDOW` of them under way."""
    session = ingest.open_stream(stream(writer=writer))
    under_way: deque[Future[Any]] = deque()
    for number in count(session.start.committed_sequence_number + 1):
        under_way.append(session.submit(batch(number, sample_count=SAMPLES_PER_BATCH)))
        if len(under_way) == WINDOW:
            acknowledged(writer, under_way.popleft())


def append_records(ingest: Ingest, first_number: int) -> None:
    """Appends records for ever, one append at a time."""
    for number in count(first_number):
        records = tuple(request_record(str(number), index) for index in range(RECORDS_PER_APPEND))
        request = AppendRequest(run=RUN, writer_id=UNARY_WRITER, sequence_number=number, records=records)
        acknowledged(UNARY_WRITER, ingest.append(request))


def report(ingest: Ingest, work: Any, *arguments: Any) -> None:
    """Runs `work` until the store gives up, then says how."""
    try:
        work(ingest, *arguments)
    except Error as error:
        say(f"broken {error.code} {error.reason} {ingest.healthy}")


def main(path: Path, largest_file_bytes: int | None) -> None:
    """Appends until killed, or until the store gives up because its file may not grow."""
    with Ingest.open(StoreSettings(path=path)) as ingest:
        ingest.create_run(CreateRunRequest(run_id=RUN))
        first_number = ingest.get_run(RUN).row_counts.request_record_count // RECORDS_PER_APPEND + 1
        if largest_file_bytes is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file_bytes, largest_file_bytes))
        threads = [
            threading.Thread(target=report, args=(ingest, stream_samples, writer), daemon=True)
            for writer in STREAM_WRITERS
        ]
        threads.append(threading.Thread(target=report, args=(ingest, append_records, first_number), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
