"""Keeps a server busy: a few connections, one call under way on each. Run as a process.

For every line on standard input it calls for that many seconds and prints how many answers came.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import click
import grpc

from estimator_service.transport.names import ESTIMATOR_SERVICE
from tests.bench.questions import PREFILL_BYTES

CONNECTION_COUNT = 8
OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]


async def calls_until(channel: grpc.aio.Channel, end_time: float) -> int:
    """Answers that come on one connection until `end_time`."""
    method: Any = channel.unary_unary(f"/{ESTIMATOR_SERVICE}/EstimatePrefill")
    count = 0
    while time.monotonic() < end_time:
        await method(PREFILL_BYTES)
        count += 1
    return count


async def main(target: str) -> None:
    """Answer the lines of standard input."""
    channels = [grpc.aio.insecure_channel(target, options=OPTIONS) for _ in range(CONNECTION_COUNT)]
    while line := await asyncio.to_thread(sys.stdin.readline):
        end_time = time.monotonic() + float(line)
        click.echo(sum(await asyncio.gather(*(calls_until(channel, end_time) for channel in channels))))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
