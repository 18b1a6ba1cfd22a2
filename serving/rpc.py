"""What is known of the call that runs: for the log line, and for servicers that add to it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import grpc
from attrs import define


@define
class RpcRecord:
    """One call. `rows` is set by servicers that store or return rows; None is not logged."""

    rpc: str
    request_id: str
    request_bytes: int = 0
    rows: int | None = None
    code: str = "OK"
    reason: str = ""

    def add_rows(self, count: int) -> None:
        """Count `count` more rows."""
        self.rows = count if self.rows is None else self.rows + count


CURRENT_RPC: ContextVar[RpcRecord] = ContextVar("linkbound_current_rpc")
"""The call of the running task; tasks that it starts see the same record."""


def time_remaining_seconds(context: grpc.aio.ServicerContext[Any, Any]) -> float | None:
    """Time until the caller's deadline, not below 0; None where it has none."""
    return context.time_remaining()


def code_name(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """Name of the code that a call was ended with; UNKNOWN before it was."""
    code: object = context.code()
    return code.name if isinstance(code, grpc.StatusCode) else grpc.StatusCode.UNKNOWN.name
