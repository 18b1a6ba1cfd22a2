"""The requests of the recorded engine, as a client of the ingest service would store them."""

from __future__ import annotations

import csv
from pathlib import Path

from linkbound.domain.records import RequestRecord

FILE = Path(__file__).with_name("engine_recording_requests.csv")


def recorded_requests() -> tuple[RequestRecord, ...]:
    """Every request at 400 Mb/s, the warm-up with a negative round."""
    lines = (line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#"))
    return tuple(_record(**row) for row in csv.DictReader(lines))


def _record(subject: str, **numbers: str) -> RequestRecord:
    told = {name: int(number) for name, number in numbers.items()}
    chunks: tuple[int, ...] = ()
    return RequestRecord(
        subject=subject, node="lab", boot_id="boot", chunk_offset_ns=chunks, chunk_tokens=chunks, writer_id="", **told
    )
