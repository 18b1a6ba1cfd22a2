"""Every error that a user of Linkbound can meet, raised by the cores and again by the clients.

Error:
├── InvalidArgumentError      a request breaks a rule; every violation is listed
├── NotFoundError             no such model, hardware or run; near names are listed
├── AlreadyExistsError        the name is taken by other content
├── FailedPreconditionError   the request is fine, the state is not: a sealed run, missing acknowledged data
├── OutOfRangeError           a sequence number is too far ahead
├── AbortedError              the same sequence number came with other content
├── ResourceExhaustedError    a queue or a disk is full; retry_delay_seconds says when to try again, if at all
├── UnauthenticatedError      no token, or a wrong one
├── PermissionDeniedError     the token does not cover the method
├── UnavailableError          the service cannot be reached or is shutting down
├── DeadlineExceededError     the answer did not come in time
├── CancelledError            the call was cancelled
├── UnimplementedError        the service does not know the method
└── InternalError             a fault of the service; the request id finds it in the log
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from attrs import frozen

NO_METADATA: Mapping[str, str] = {}


@frozen
class Violation:
    """One broken rule of a request.

    `field` is the dotted path from the request (`workload.prompt_tokens`, `values[3].subject`), `description` names the
    value and what is allowed, `reason` is one word for programs.
    """

    field: str
    description: str
    reason: str = "INVALID_VALUE"


class Error(Exception):
    """Base of every error. `code` is the name of the gRPC status, `reason` one word in capitals for programs.

    `metadata` holds the values that the message mentions; `request_id` finds the call in the service's log and is
    empty for calls within the process.
    """

    code: ClassVar[str] = "UNKNOWN"
    default_reason: ClassVar[str] = "UNKNOWN"

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        metadata: Mapping[str, str] = NO_METADATA,
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason
        self.metadata = dict(metadata)
        self.request_id = request_id


class InvalidArgumentError(Error):
    """A request breaks at least one rule. `field_violations` holds all of them, in the order of the request."""

    code = "INVALID_ARGUMENT"
    default_reason = "INVALID_FIELD"

    def __init__(
        self,
        field_violations: Sequence[Violation],
        *,
        reason: str = "",
        metadata: Mapping[str, str] = NO_METADATA,
        request_id: str = "",
    ) -> None:
        self.field_violations = tuple(field_violations)
        message = "; ".join(f"{v.field}: {v.description}" for v in self.field_violations)
        super().__init__(message, reason=reason, metadata=metadata, request_id=request_id)


@frozen
class Resource:
    """The thing an error is about: `type` is `model`, `hardware` or `run`, `name` its id."""

    type: str
    name: str


class _ResourceError(Error):
    """An error about one named thing. `near_names` are existing names that look like it, nearest first."""

    def __init__(
        self,
        message: str,
        *,
        resource: Resource,
        near_names: Sequence[str] = (),
        reason: str = "",
        metadata: Mapping[str, str] = NO_METADATA,
        request_id: str = "",
    ) -> None:
        super().__init__(message, reason=reason, metadata=metadata, request_id=request_id)
        self.resource = resource
        self.near_names = tuple(near_names)


class NotFoundError(_ResourceError):
    """No such entry of the catalogue, or no such run.

    Reasons: MODEL_NOT_FOUND, HARDWARE_NOT_FOUND, CALIBRATION_NOT_FOUND, ENGINE_CALIBRATION_NOT_FOUND, SWITCH_NOT_FOUND,
    NIC_NOT_FOUND, RUN_NOT_FOUND.
    """

    code = "NOT_FOUND"
    default_reason = "NOT_FOUND"

    @classmethod
    def of(cls, resource: Resource, near_names: Sequence[str] = ()) -> NotFoundError:
        """The error for a `resource` that does not exist, with the `near_names` a person may have meant."""
        hint = f"; did you mean {', '.join(near_names)}?" if near_names else ""
        metadata = {resource.type: resource.name}
        if near_names:
            metadata["nearNames"] = ",".join(near_names)
        return cls(
            f"{resource.type.replace('_', ' ')} {resource.name!r} does not exist{hint}",
            resource=resource,
            near_names=near_names,
            reason=f"{resource.type.upper()}_NOT_FOUND",
            metadata=metadata,
        )


class AlreadyExistsError(_ResourceError):
    """The name is taken by other content.

    Reasons: MODEL_EXISTS, CALIBRATION_EXISTS, ENGINE_CALIBRATION_EXISTS, RUN_EXISTS.
    """

    code = "ALREADY_EXISTS"
    default_reason = "ALREADY_EXISTS"


class FailedPreconditionError(Error):
    """The state does not allow it.

    Reasons: RUN_SEALED, ROW_COUNT_MISMATCH, SEAL_FAILED, RUN_UNREADABLE, WRITER_KIND_MISMATCH, ACKED_DATA_MISSING,
    STREAM_CLOSED, SWEEPS_UNAVAILABLE, CATALOG_READ_ONLY, CATALOG_UNREADABLE; where a store cannot be opened
    STORE_UNREADABLE, STORE_LOG_DAMAGED, SCHEMA_NEWER, SCHEMA_OLDER; of a client that lacks a package PYARROW_MISSING.
    """

    code = "FAILED_PRECONDITION"
    default_reason = "FAILED_PRECONDITION"


class OutOfRangeError(Error):
    """A number is out of reach.

    Reasons: SEQUENCE_GAP, a sequence number is too far ahead, metadata `expectedSequenceNumber`; REVISION_COMPACTED, a
    revision of runs is not kept, metadata `oldestRevision` and `latestRevision`.
    """

    code = "OUT_OF_RANGE"
    default_reason = "OUT_OF_RANGE"


class AbortedError(Error):
    """The same sequence number came with other content. Reason: WRITER_CONFLICT."""

    code = "ABORTED"
    default_reason = "ABORTED"


class ResourceExhaustedError(Error):
    """A queue or a disk is full, or a query too large; without `retry_delay_seconds` trying again does not help.

    Reasons: QUEUE_FULL, DISK_FULL, TOO_MANY_STREAMS, TOO_MANY_QUERIES, TOO_MANY_WATCHES, QUERY_TOO_LARGE.
    """

    code = "RESOURCE_EXHAUSTED"
    default_reason = "RESOURCE_EXHAUSTED"

    def __init__(
        self,
        message: str,
        *,
        retry_delay_seconds: float | None = None,
        reason: str = "",
        metadata: Mapping[str, str] = NO_METADATA,
        request_id: str = "",
    ) -> None:
        super().__init__(message, reason=reason, metadata=metadata, request_id=request_id)
        self.retry_delay_seconds = retry_delay_seconds


class UnauthenticatedError(Error):
    """No token, or a wrong one."""

    code = "UNAUTHENTICATED"
    default_reason = "UNAUTHENTICATED"


class PermissionDeniedError(Error):
    """The token does not cover the method, or nobody may call it: SQL_OFF."""

    code = "PERMISSION_DENIED"
    default_reason = "PERMISSION_DENIED"


class UnavailableError(Error):
    """The service cannot be reached or is shutting down; the store is STORE_LOCKED, STORE_BROKEN or STORE_CLOSED.

    SNAPSHOT_FAILED: the copy of the store could not be written.
    """

    code = "UNAVAILABLE"
    default_reason = "UNAVAILABLE"


class DeadlineExceededError(Error):
    """The answer did not come in time."""

    code = "DEADLINE_EXCEEDED"
    default_reason = "DEADLINE_EXCEEDED"


class CancelledError(Error):
    """The call was cancelled."""

    code = "CANCELLED"
    default_reason = "CANCELLED"


class UnimplementedError(Error):
    """The service does not know the method."""

    code = "UNIMPLEMENTED"
    default_reason = "UNIMPLEMENTED"


class InternalError(Error):
    """A fault of the service; `request_id` finds it in the log."""

    code = "INTERNAL"
    default_reason = "INTERNAL"
