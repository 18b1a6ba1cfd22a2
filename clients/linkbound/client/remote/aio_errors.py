"""The errors of calls on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from linkbound.client.closing import closed_error
from linkbound.client.remote.errors import error_of_call


@contextmanager
def errors_of_aio_calls(address: str) -> Iterator[None]:
    """Raises the error of a call to `address` that fails within the block."""
    try:
        yield
    except grpc.RpcError as failure:
        raise error_of_call(failure, address) from failure
    except asyncio.CancelledError as cancellation:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled the caller: gRPC cancels every call of a channel that is closed.
        raise closed_error() from cancellation
