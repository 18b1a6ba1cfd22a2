"""`StreamSweep`: stretches of points are computed and encoded in a thread, one at a time and ahead of nobody.

The next stretch is begun once the one before it went to the transport, whose flow control holds a stream back from a
client that does not read. So a sweep of any length needs the memory of a few stretches, and the event loop is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from estimator_service.service import Estimator
from linkbound.convert.sweep import sweep_columns_to_proto
from linkbound.domain.errors import UnavailableError
from linkbound.domain.sweep import SweepRequest
from linkbound.estimator.v1 import sweep_pb2
from serving.rpc import CURRENT_RPC


async def sweep_responses(
    estimator: Estimator, request: SweepRequest, draining: asyncio.Event
) -> AsyncIterator[sweep_pb2.StreamSweepResponse]:
    """The answers in the order of the index.

    Raises UnavailableError (SHUTTING_DOWN) between two of them once `draining` is set: the client goes on elsewhere.
    """
    stretches = await asyncio.to_thread(estimator.stream_sweep, request)
    messages = map(sweep_columns_to_proto, stretches)
    while (message := await asyncio.to_thread(next, messages, None)) is not None:
        if draining.is_set():
            raise UnavailableError("the service is shutting down", reason="SHUTTING_DOWN")
        CURRENT_RPC.get().add_rows(message.point_count)
        yield message
