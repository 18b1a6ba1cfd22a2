"""What the blocking backend and the asyncio one share: paths to serializers, and the words of their errors."""

from __future__ import annotations

from google.protobuf.message import Message

from linkbound.domain.errors import DeadlineExceededError, Error, UnavailableError

READY_POLL_SECONDS = 0.05
"""Pause between two questions whether a service takes calls."""


HEALTH_CHECK_PATH = "/grpc.health.v1.Health/Check"


def serialize(message: Message) -> bytes:
    """The bytes of a message."""
    return message.SerializeToString()


def is_not_ready_yet(error: Error) -> bool:
    """Whether a service that answers a health check with `error` may still become ready."""
    # NOT_FOUND: the server runs, but has not announced the service yet.
    return isinstance(error, UnavailableError) or error.code == "NOT_FOUND"


def not_ready_error(address: str, timeout_seconds: float | None) -> DeadlineExceededError:
    """The error of a service that does not take calls in time."""
    return DeadlineExceededError(f"{address} takes no calls after {timeout_seconds:g} s", reason="NOT_READY")
