"""`EstimateSchedule`: passes are replayed and encoded in a thread, a message at a time and ahead of nobody.

The next passes are replayed once the message before them went to the transport, whose flow control holds a stream back
from a client that does not read. So passes alone need the memory of one message, and the event loop is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from estimator_service.service import Estimator
from linkbound.convert.schedule import bounded_parts, schedule_part_to_proto, schedule_request_from_proto
from linkbound.estimator.v1 import schedule_pb2
from serving.rpc import CURRENT_RPC


async def schedule_responses(
    estimator: Estimator, request: schedule_pb2.EstimateScheduleRequest
) -> AsyncIterator[schedule_pb2.EstimateScheduleResponse]:
    """Passes in their order, then the summary.

    Raises the errors of the question before the first pass, and one that shows as requests compete for the cache where
    it does.
    """
    messages = _messages(estimator, request)
    while (message := await asyncio.to_thread(next, messages, None)) is not None:
        CURRENT_RPC.get().add_rows(len(message.passes.passes))
        yield message


def _messages(
    estimator: Estimator, request: schedule_pb2.EstimateScheduleRequest
) -> Iterator[schedule_pb2.EstimateScheduleResponse]:
    # A generator, so that the request is read in the thread too: ten thousand entries take a while.
    parts = estimator.stream_schedule(schedule_request_from_proto(request))
    yield from map(schedule_part_to_proto, bounded_parts(parts))
