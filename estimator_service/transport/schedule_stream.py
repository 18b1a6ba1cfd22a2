"""`EstimateSchedule`: passes are replayed and encoded in a thread, a message at a time and ahead of nobody.

The next passes are replayed once the message before them went to the transport, whose flow control holds a stream back
from a client that does not read. So passes alone need the memory of one message, and the event loop is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from estimator_service.service import Estimator
from estimator_service.threads import in_thread
from linkbound.convert.schedule import schedule_request_from_proto
from linkbound.convert.schedule_parts import parts_that_fit, schedule_part_to_proto
from linkbound.domain.errors import UnavailableError
from linkbound.estimator.v1 import schedule_pb2
from serving.rpc import CURRENT_RPC


async def schedule_responses(
    estimator: Estimator, request: schedule_pb2.EstimateScheduleRequest, draining: asyncio.Event
) -> AsyncIterator[schedule_pb2.EstimateScheduleResponse]:
    """Passes in their order, then the summary.

    Raises the errors of the question before the first pass, and one that shows as requests compete for the cache where
    it does; UnavailableError (SHUTTING_DOWN) before the next message once `draining` is set: the client goes on
    elsewhere.
    """
    messages = _messages(estimator, request)
    while (message := await _next_or_drained(messages, draining)) is not None:
        CURRENT_RPC.get().add_rows(len(message.passes.passes))
        yield message


async def _next_or_drained(
    messages: Iterator[schedule_pb2.EstimateScheduleResponse], draining: asyncio.Event
) -> schedule_pb2.EstimateScheduleResponse | None:
    if draining.is_set():
        raise _drained()
    # With times, the first message of a long schedule takes long: neither the call nor the process waits for it.
    replaying = asyncio.ensure_future(in_thread(next, messages, None))
    ending = asyncio.ensure_future(draining.wait())
    try:
        await asyncio.wait({replaying, ending}, return_when=asyncio.FIRST_COMPLETED)
        if replaying.done():
            return replaying.result()
        raise _drained()
    finally:
        replaying.cancel()
        ending.cancel()


def _drained() -> UnavailableError:
    return UnavailableError("the service is shutting down", reason="SHUTTING_DOWN")


def _messages(
    estimator: Estimator, request: schedule_pb2.EstimateScheduleRequest
) -> Iterator[schedule_pb2.EstimateScheduleResponse]:
    # A generator, so that the request is read in the thread too: ten thousand entries take a while.
    parts = estimator.stream_schedule(schedule_request_from_proto(request))
    yield from map(schedule_part_to_proto, parts_that_fit(parts))
