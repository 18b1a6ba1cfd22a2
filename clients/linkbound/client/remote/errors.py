"""The classes of `linkbound.domain.errors` from what gRPC reports.

Our own services send `google.rpc` details with every error. A status without them comes from gRPC itself or from a
proxy on the way; its code alone decides then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar, cast

import grpc
from attrs import frozen
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from linkbound.domain.errors import (
    NO_METADATA,
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    DeadlineExceededError,
    Error,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
    Resource,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
    Violation,
)

REQUEST_ID_KEY = "x-request-id"
_NEAR_NAMES_KEY = "nearNames"
_NS_PER_SECOND = 1_000_000_000
_NO_RESOURCE = Resource(type="", name="")

M = TypeVar("M", bound=Message)


class FailedCall(Protocol):
    """What a failed call of either API tells: the blocking one and the one for asyncio."""

    def code(self) -> grpc.StatusCode:
        """Its status code."""
        ...

    def details(self) -> str | None:
        """Its message."""
        ...

    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """What the server sent at the end."""
        ...


def error_of_call(failure: grpc.RpcError, address: str) -> Error:
    """The error of a call to `address` that failed; raise it `from` the failure."""
    call = cast("FailedCall", failure)
    request_id = _request_id(call)
    try:
        status = rpc_status.from_call(cast("grpc.Call", call))
    except ValueError:
        # The details contradict the status; a proxy replaced one of them.
        status = None
    if status is not None:
        return error_of_status(status, request_id)
    message = call.details() or call.code().name
    if call.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        message = f"{address}: {message}"
    return _error(call.code().name, message, _Details(request_id=request_id))


def error_of_status(status: Status, request_id: str = "") -> Error:
    """The error that `status` describes with its details."""
    codes = {code.value[0]: code.name for code in grpc.StatusCode}
    return _error(codes.get(status.code, "UNKNOWN"), status.message, _details_of(status, request_id))


@frozen(kw_only=True)
class _Details:
    """The `google.rpc` details of a status; what is absent is empty, what this version does not know is left out."""

    request_id: str
    reason: str = ""
    metadata: Mapping[str, str] = NO_METADATA
    violations: tuple[Violation, ...] = ()
    resource: Resource = _NO_RESOURCE
    retry_delay_seconds: float | None = None


def _details_of(status: Status, request_id: str) -> _Details:
    info = _detail(status, error_details_pb2.ErrorInfo())
    resource = _detail(status, error_details_pb2.ResourceInfo())
    retry = _detail(status, error_details_pb2.RetryInfo())
    return _Details(
        request_id=_detail(status, error_details_pb2.RequestInfo()).request_id or request_id,
        reason=info.reason,
        metadata=dict(info.metadata),
        violations=tuple(
            Violation(violation.field, violation.description, violation.reason)
            for violation in _detail(status, error_details_pb2.BadRequest()).field_violations
        ),
        resource=Resource(type=resource.resource_type, name=resource.resource_name),
        retry_delay_seconds=(
            retry.retry_delay.seconds + retry.retry_delay.nanos / _NS_PER_SECOND
            if retry.HasField("retry_delay")
            else None
        ),
    )


def _detail(status: Status, message: M) -> M:
    """`message` filled from the first detail of its type, or as it is."""
    for packed in status.details:
        if packed.Unpack(message):
            break
    return message


_PLAIN_CLASSES: dict[str, type[Error]] = {
    kind.code: kind
    for kind in (
        FailedPreconditionError,
        OutOfRangeError,
        AbortedError,
        UnauthenticatedError,
        PermissionDeniedError,
        UnavailableError,
        DeadlineExceededError,
        CancelledError,
        UnimplementedError,
        InternalError,
    )
}
"""Classes that are made of a message alone."""


def _error(code: str, message: str, details: _Details) -> Error:
    reason, metadata, request_id = details.reason, details.metadata, details.request_id
    if code == InvalidArgumentError.code:
        violations = details.violations or [Violation("request", message)]
        return InvalidArgumentError(violations, reason=reason, metadata=metadata, request_id=request_id)
    if code in (NotFoundError.code, AlreadyExistsError.code):
        resource_class = NotFoundError if code == NotFoundError.code else AlreadyExistsError
        return resource_class(
            message,
            resource=details.resource,
            near_names=[name for name in metadata.get(_NEAR_NAMES_KEY, "").split(",") if name],
            reason=reason,
            metadata=metadata,
            request_id=request_id,
        )
    if code == ResourceExhaustedError.code:
        return ResourceExhaustedError(
            message,
            retry_delay_seconds=details.retry_delay_seconds,
            reason=reason,
            metadata=metadata,
            request_id=request_id,
        )
    return _PLAIN_CLASSES.get(code, Error)(message, reason=reason, metadata=metadata, request_id=request_id)


def _request_id(call: FailedCall) -> str:
    for key, value in call.trailing_metadata() or ():
        if key == REQUEST_ID_KEY and isinstance(value, str):
            return value
    return ""
