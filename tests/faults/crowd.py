"""A service with a little to do, and crowds of raw callers that no client of ours would be."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
from attrs import field, frozen

from linkbound import IngestClient
from linkbound.client.remote.errors import error_of_call
from linkbound.domain.errors import Error
from tests.faults.figures import peak_rss_bytes
from tests.faults.killing import Scene, scene
from tests.integration.command_line import POLL_SECONDS
from tests.integration.sample_stream.calls import Stream, open_message
from tests.integration.servers import PATIENCE_SECONDS

CROWD_RUN = "crowd"
MEBIBYTE_BYTES = 2**20
DATABASE_BYTES = 256 * MEBIBYTE_BYTES
"""What DuckDB may use in these tests, so that a crowd is seen beside it."""

BESIDE_BYTES = 384 * MEBIBYTE_BYTES
"""What may come on top of that and of what the service takes without a crowd: queues of 64 MiB, what they are converted
to and from, and what 256 streams have on their way, 128 KiB each."""

CHANNEL_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", 16 * MEBIBYTE_BYTES),
]

SETTINGS = {
    "LINKBOUND_STORE_MEMORY_LIMIT_BYTES": str(DATABASE_BYTES),
    "LINKBOUND_STORE_FREE_SPACE_FLOOR_BYTES": "0",
}


@frozen
class Crowd:
    """One writer that is as others should be, the service, and channels for a crowd."""

    stage: Scene
    channels: Sequence[grpc.aio.Channel]
    quiet_rss_bytes: int = field(init=False)
    _finished: Counter[str] = field(init=False, factory=Counter, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "quiet_rss_bytes", peak_rss_bytes(self.stage.service.pid))

    def channel(self, index: int) -> grpc.aio.Channel:
        """One of the channels, the same for the same index."""
        return self.channels[index % len(self.channels)]

    @property
    def is_memory_bounded(self) -> bool:
        """Whether the service never took more than its limits allow."""
        return self.stage.service.peak_rss_bytes < self.quiet_rss_bytes + DATABASE_BYTES + BESIDE_BYTES

    async def until_free(self, method: str, call_count: int) -> None:
        """Return once the service has heard that so many more calls of a method are over."""
        self._finished[method] += call_count
        await asyncio.to_thread(self._wait_until_finished, method)

    def _wait_until_finished(self, method: str) -> None:
        give_up = time.monotonic() + PATIENCE_SECONDS
        while self._finished_count(method) < self._finished[method]:
            assert time.monotonic() < give_up, method
            time.sleep(POLL_SECONDS)

    def _finished_count(self, method: str) -> int:
        ended = self.stage.service.log_lines("rpc_finished")
        return sum(line["rpc"].endswith(f"/{method}") for line in ended)

    async def others_go_on(self) -> None:
        """Return once the writer that is as it should be got something more stored."""
        await asyncio.to_thread(self.stage.let_things_move)


@asynccontextmanager
async def crowd(directory: Path, channel_count: int, settings: dict[str, str]) -> AsyncIterator[Crowd]:
    """A service under a little load while the block lasts."""
    async with AsyncExitStack() as resources:
        stage = resources.enter_context(scene(directory, 1, seed=1, settings={**SETTINGS, **settings}))
        with IngestClient(stage.service.target) as client:
            client.create_run(CROWD_RUN)
        await asyncio.to_thread(stage.let_things_move)
        channels = [
            await resources.enter_async_context(grpc.aio.insecure_channel(stage.service.target, CHANNEL_OPTIONS))
            for _ in range(channel_count)
        ]
        yield Crowd(stage, channels)


async def answered(calls: Sequence[Awaitable[Any]]) -> tuple[int, Counter[str]]:
    """How many calls were answered, and the others by reason. Each of those says when to come again."""
    count, refusals = 0, Counter[str]()
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, grpc.aio.AioRpcError):
            refusals[reason_with_advice(error_of_call(outcome, "the service"))] += 1
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            count += 1
    return count, refusals


async def first_answer(stream: Stream, writer_id: str) -> Any:
    """What a stream is told once it was opened. A refusal may be there before the opening is out."""
    with suppress(grpc.aio.AioRpcError):
        await stream.send(open_message(run=CROWD_RUN, writer_id=writer_id))
    return await stream.read()


def reason_with_advice(error: Error) -> str:
    """The reason of a refusal, which must say when to come again."""
    delay_seconds = getattr(error, "retry_delay_seconds", None)
    assert error.code == "RESOURCE_EXHAUSTED", error
    assert delay_seconds is not None, error
    assert delay_seconds > 0
    return error.reason


def as_it_is(content: bytes) -> bytes:
    """Bytes that are a message already."""
    return content
