"""A recording of counters and requests, as `lab_recording/README.md` describes it, and its way into a store."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from linkbound import AsyncIngestClient, RequestRecord, SampleColumns, SeriesDescriptor

REDUCED = Path(__file__).parent / "lab_recording"
"""The part of the recording that comes with the tests."""

NODE = "lab"
BOOT = "lab-boot"
DEVICES = ("va", "vb")
METRICS = ("tx_bytes", "rx_bytes")
WRITTEN_READING_COUNT = 50_000


@frozen
class Recording:
    """One rate of one folder."""

    folder: Path
    megabits_per_second: int

    @property
    def run(self) -> str:
        return f"lab-{self.megabits_per_second}"

    def requests(self) -> Iterator[RequestRecord]:
        """The requests; round 0 of the recording is the warm-up, which the store knows as -1."""
        path = self.folder / f"requests_{self.megabits_per_second}mbit.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines():
            request = json.loads(line)
            send_ns = request["t_send_start_ns"]
            offsets_ns = tuple(time_ns - send_ns for time_ns, _ in request["token_events"])
            yield RequestRecord(
                subject=request["test"],
                round_index=request["round"] - 1,
                request_index=request["request"],
                prompt_tokens=request["usage"]["prompt_tokens"],
                output_tokens=request["usage"]["completion_tokens"],
                send_ns=send_ns,
                ttft_ns=offsets_ns[0],
                last_token_ns=offsets_ns[-1],
                node=NODE,
                boot_id=BOOT,
                chunk_offset_ns=offsets_ns,
                chunk_tokens=tuple(count for _, count in request["token_events"]),
            )

    def counters(self, device: str) -> NDArray[np.int64]:
        """Readings of an interface, one a row: time before the read, after it, bytes sent, bytes received."""
        path = self.folder / f"counters_{device}_{self.megabits_per_second}mbit.csv.gz"
        with gzip.open(path, "rt", encoding="ascii") as lines:
            return np.loadtxt(lines, dtype=np.int64, delimiter=",", skiprows=2)


async def load(client: AsyncIngestClient, recording: Recording) -> int:
    """Stores the recording as a run, over the calls that agents use; returns how many samples it has."""
    await client.create_run(recording.run)
    await client.append(recording.run, writer_id="driver", sequence_number=1, records=tuple(recording.requests()))
    sample_count = 0
    for device in DEVICES:
        readings = recording.counters(device)
        series = [
            SeriesDescriptor(metric=metric, node=NODE, device=device, unit_bytes=1, boot_id=BOOT) for metric in METRICS
        ]
        async with client.writer(recording.run, f"sampler-{device}", series) as writer:
            for start in range(0, len(readings), WRITTEN_READING_COUNT):
                before_ns, after_ns, *counted = readings[start : start + WRITTEN_READING_COUNT].T
                await writer.write(
                    [
                        SampleColumns(
                            series_index=index,
                            time_ns=tuple(before_ns.tolist()),
                            value=tuple(value.tolist()),
                            read_duration_ns=tuple((after_ns - before_ns).tolist()),
                        )
                        for index, value in enumerate(counted)
                    ]
                )
        sample_count += readings.shape[0] * len(METRICS)
    return sample_count
