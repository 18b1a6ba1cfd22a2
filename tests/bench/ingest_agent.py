"""Agents that stream samples to an ingest service, several in one process. Run as a process.

`python -m tests.bench.ingest_agent TARGET FIRST_AGENT AGENT_COUNT ENCODING ROWS_PER_BATCH SERIES_COUNT`

Batches are built before anything is measured, so that what an agent takes is little more than gRPC. Every line on
standard input, `SECONDS BATCHES_PER_SECOND` with 0 for as many as the window lets through, is one round; its answer is
one line of JSON: rows that became durable, the time until the last one was, and how long acknowledgements took.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import deque
from typing import Any

import click
import grpc

from linkbound.convert.ingest_service import (
    open_stream_request_to_proto,
    sample_batch_to_arrow_proto,
    sample_batch_to_proto,
)
from linkbound.convert.sample_payload import batch_message_bytes
from linkbound.domain.samples import OpenStreamRequest, SampleBatch, SampleColumns, SeriesDescriptor
from linkbound.ingest.v1.ingest_service_pb2 import StreamSamplesRequest, StreamSamplesResponse

RUN = "bench"
PATH = "/linkbound.ingest.v1.IngestService/StreamSamples"
OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
ENCODERS = {"arrow": sample_batch_to_arrow_proto, "columns": sample_batch_to_proto}
PAYLOAD_COUNT = 8
"""Batches that take turns; the numbers in front of them differ."""
MILLISECOND_NS = 1_000_000


def payloads(encoding: str, rows_per_batch: int, series_count: int) -> list[bytes]:
    """Batches without their numbers: counters read every millisecond, with the jitter that reads have."""
    dice = random.Random(1)
    count = rows_per_batch // series_count
    made = []
    for turn in range(PAYLOAD_COUNT):
        start_ns = turn * count * MILLISECOND_NS
        columns = tuple(
            SampleColumns(
                series_index=index,
                time_ns=[start_ns + row * MILLISECOND_NS + dice.randrange(20_000) for row in range(count)],
                value=[(turn * count + row) * 30_000 + dice.randrange(30_000) for row in range(count)],
                read_duration_ns=[2_000 + dice.randrange(2_000) for _ in range(count)],
            )
            for index in range(series_count)
        )
        message = ENCODERS[encoding](SampleBatch(sequence_number=1, columns=columns))
        message.ClearField("sequence_number")
        made.append(message.SerializeToString())
    return made


class Agent:
    """One writer with its stream."""

    def __init__(self, channel: grpc.aio.Channel, name: str, made: list[bytes]) -> None:
        method: Any = channel.stream_stream(PATH, response_deserializer=StreamSamplesResponse.FromString)
        self._call = method()
        self._name = name
        self._payloads = made
        self._number = 0
        self._acknowledged = 0
        self._window = 0
        self._send_times: deque[float] = deque()
        self._changed = asyncio.Event()
        self.waits: list[float] = []

    async def open(self, series_count: int) -> None:
        """Open the stream and take acknowledgements from then on."""
        series = tuple(SeriesDescriptor(metric=f"m{index}", node=self._name) for index in range(series_count))
        request = OpenStreamRequest(run=RUN, writer_id=self._name, series=series)
        opening = StreamSamplesRequest(open=open_stream_request_to_proto(request))
        await self._call.write(opening.SerializeToString())
        opened = (await self._call.read()).opened
        self._number = self._acknowledged = opened.committed_sequence_number
        self._window = opened.max_in_flight_batches
        self._acknowledging = asyncio.ensure_future(self._take_acknowledgements())

    async def round(self, seconds: float, batches_per_second: float) -> int:
        """Batches that were sent for `seconds` and are durable."""
        if batches_per_second:
            # Agents that nobody starts together do not send together.
            await asyncio.sleep(random.random() / batches_per_second)
        before, started = self._number, time.perf_counter()
        while (now := time.perf_counter()) < started + seconds:
            due = started + (self._number - before) / batches_per_second if batches_per_second else now
            if due > now:
                await asyncio.sleep(due - now)
                continue
            while self._number - self._acknowledged >= self._window:
                await self._news()
            self._number += 1
            self._send_times.append(time.perf_counter())
            payload = self._payloads[self._number % PAYLOAD_COUNT]
            await self._call.write(batch_message_bytes(self._number, payload))
        while self._acknowledged < self._number:
            await self._news()
        return self._number - before

    async def _news(self) -> None:
        self._changed.clear()
        if self._acknowledging.done():
            self._acknowledging.result()
            raise RuntimeError("the stream ended")
        await self._changed.wait()

    async def _take_acknowledgements(self) -> None:
        try:
            while isinstance(answer := await self._call.read(), StreamSamplesResponse):
                if answer.HasField("error"):
                    raise RuntimeError(f"a batch was refused: {answer.error.status.message}")
                now = time.perf_counter()
                while self._acknowledged < answer.ack.committed_sequence_number:
                    self._acknowledged += 1
                    self.waits.append(now - self._send_times.popleft())
                self._changed.set()
        finally:
            self._changed.set()


async def main(target: str, first: int, agent_count: int, encoding: str, rows_per_batch: int, series: int) -> None:
    """Answer the lines of standard input."""
    made = payloads(encoding, rows_per_batch, series)
    channels = [grpc.aio.insecure_channel(target, options=OPTIONS) for _ in range(agent_count)]
    agents = [Agent(channel, f"agent-{first + index}", made) for index, channel in enumerate(channels)]
    for agent in agents:
        await agent.open(series)
    click.echo("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        seconds, batches_per_second = map(float, line.split())
        started = time.perf_counter()
        counts = await asyncio.gather(*(agent.round(seconds, batches_per_second) for agent in agents))
        elapsed = time.perf_counter() - started
        waits = [wait for agent in agents for wait in agent.waits]
        for agent in agents:
            agent.waits.clear()
        click.echo(json.dumps({"rows": sum(counts) * rows_per_batch, "seconds": elapsed, "waits": waits}))


if __name__ == "__main__":
    _, target_address, first_agent, count, chosen_encoding, rows, series_number = sys.argv
    asyncio.run(main(target_address, int(first_agent), int(count), chosen_encoding, int(rows), int(series_number)))
