"""The one table from domain errors to gRPC statuses.

Every status carries `ErrorInfo{reason, domain, metadata}`; further details depend on the class. Statuses travel in
HTTP/2 headers, for which receivers allow 8 KiB, so a long one is cut and says what it left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import grpc
from attrs import frozen
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from linkbound.domain import errors

MAX_MESSAGE_BYTES = 512
"""Of the message, which a status carries twice, once with three characters for each byte that is not ASCII."""
MAX_VALUE_BYTES = 256
"""Of one value of the metadata, and of one description."""
MAX_VIOLATIONS_BYTES = 3072
"""Of all violations together; in base64 they leave room for the rest."""

_CUT_MARK = "..."

OMITTED_VIOLATIONS_KEY = "omittedViolationCount"
PUSHBACK_KEY = "grpc-retry-pushback-ms"


@frozen
class Situation:
    """When an error occurs, with its reason."""

    text: str
    reason: str


@frozen
class ErrorRow:
    """How one class of the domain travels: its code, its details besides ErrorInfo, and when it occurs."""

    error: type[errors.Error]
    code: grpc.StatusCode
    details: Callable[[Any], Sequence[Message]]
    details_description: str
    situations: tuple[Situation, ...]


def _none(_error: errors.Error) -> Sequence[Message]:
    return ()


def _bad_request(error: errors.InvalidArgumentError) -> Sequence[Message]:
    message = error_details_pb2.BadRequest()
    for violation in error.field_violations:
        entry = error_details_pb2.BadRequest.FieldViolation(
            field=_cut(violation.field), description=_cut(violation.description), reason=_cut(violation.reason)
        )
        if message.ByteSize() + entry.ByteSize() > MAX_VIOLATIONS_BYTES:
            break
        message.field_violations.append(entry)
    return (message,)


def _resource_info(error: errors.NotFoundError | errors.AlreadyExistsError) -> Sequence[Message]:
    return (
        error_details_pb2.ResourceInfo(
            resource_type=error.resource.type, resource_name=_cut(error.resource.name), description=_cut(error.message)
        ),
    )


def _precondition_failure(error: errors.FailedPreconditionError) -> Sequence[Message]:
    violation = error_details_pb2.PreconditionFailure.Violation(
        type=error.reason,
        subject=_cut(error.metadata.get("run") or error.metadata.get("writer", "")),
        description=_cut(error.message),
    )
    return (error_details_pb2.PreconditionFailure(violations=[violation]),)


def _retry_info(error: errors.ResourceExhaustedError) -> Sequence[Message]:
    if error.retry_delay_seconds is None:
        return ()
    delay = Duration()
    delay.FromMilliseconds(round(error.retry_delay_seconds * 1000))
    return (error_details_pb2.RetryInfo(retry_delay=delay),)


ERROR_TABLE = (
    ErrorRow(
        errors.InvalidArgumentError,
        grpc.StatusCode.INVALID_ARGUMENT,
        _bad_request,
        "`BadRequest`: every violation with field, description and reason",
        (
            Situation("a request breaks rules", "INVALID_FIELD"),
            Situation("the bytes are not a message of the method", "MALFORMED_MESSAGE"),
            Situation("a query is not one SELECT, or uses what a query may not", "SQL_NOT_READ_ONLY"),
            Situation("a query cannot be parsed, or fails as it runs", "SQL_ERROR"),
        ),
    ),
    ErrorRow(
        errors.NotFoundError,
        grpc.StatusCode.NOT_FOUND,
        _resource_info,
        "`ResourceInfo`; metadata `nearNames`, comma-separated, nearest first",
        (
            Situation("no such model", "MODEL_NOT_FOUND"),
            Situation("no such hardware", "HARDWARE_NOT_FOUND"),
            Situation("no such calibration", "CALIBRATION_NOT_FOUND"),
            Situation("no such engine calibration", "ENGINE_CALIBRATION_NOT_FOUND"),
            Situation("no such switch", "SWITCH_NOT_FOUND"),
            Situation("no such network adapter", "NIC_NOT_FOUND"),
            Situation("no such run", "RUN_NOT_FOUND"),
        ),
    ),
    ErrorRow(
        errors.AlreadyExistsError,
        grpc.StatusCode.ALREADY_EXISTS,
        _resource_info,
        "`ResourceInfo`",
        (
            Situation("the id is taken by a model with other content", "MODEL_EXISTS"),
            Situation("the id is taken by a run with other content", "RUN_EXISTS"),
            Situation("the id is taken by a calibration of other measured times", "CALIBRATION_EXISTS"),
            Situation("the id is taken by an engine calibration of other measured times", "ENGINE_CALIBRATION_EXISTS"),
        ),
    ),
    ErrorRow(
        errors.FailedPreconditionError,
        grpc.StatusCode.FAILED_PRECONDITION,
        _precondition_failure,
        "`PreconditionFailure`",
        (
            Situation("the run is sealed", "RUN_SEALED"),
            Situation("the run does not hold the expected number of rows", "ROW_COUNT_MISMATCH"),
            Situation("the files of a run to be sealed cannot be written; it stays open", "SEAL_FAILED"),
            Situation("a file of a sealed run is missing or damaged; metadata `path`", "RUN_UNREADABLE"),
            Situation("a writer changes between stream and unary calls", "WRITER_KIND_MISMATCH"),
            Situation("the writer saw more acknowledged than is stored", "ACKED_DATA_MISSING"),
            Situation("a batch comes on a stream that was closed", "STREAM_CLOSED"),
            Situation("a sweep, and NumPy is not installed", "SWEEPS_UNAVAILABLE"),
            Situation("something is to be kept in the catalogue, and it cannot be written to", "CATALOG_READ_ONLY"),
            Situation("a file of the catalogue is broken", "CATALOG_UNREADABLE"),
            Situation("at start: the file is not a store, or is damaged", "STORE_UNREADABLE"),
            Situation("at start: the log of the store is damaged", "STORE_LOG_DAMAGED"),
            Situation("at start: the store was written by a newer version", "SCHEMA_NEWER"),
            Situation("the snapshot to be read was written by an older version", "SCHEMA_OLDER"),
        ),
    ),
    ErrorRow(
        errors.OutOfRangeError,
        grpc.StatusCode.OUT_OF_RANGE,
        _none,
        "metadata `expectedSequenceNumber`; `oldestRevision` and `latestRevision`",
        (
            Situation("a sequence number is too far ahead", "SEQUENCE_GAP"),
            Situation("a watch begins at a revision that is not kept; begin at 0 again", "REVISION_COMPACTED"),
        ),
    ),
    ErrorRow(
        errors.AbortedError,
        grpc.StatusCode.ABORTED,
        _none,
        "metadata",
        (
            Situation("the sequence number is stored with other content", "WRITER_CONFLICT"),
            Situation("the writer opened another stream, which ends this one", "WRITER_FENCED"),
        ),
    ),
    ErrorRow(
        errors.ResourceExhaustedError,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        _retry_info,
        "`RetryInfo` and the trailer `grpc-retry-pushback-ms` where trying again helps; neither where it does not",
        (
            Situation("more is queued than the store can take; try again", "QUEUE_FULL"),
            Situation("as many sample streams are open as the service takes; try again", "TOO_MANY_STREAMS"),
            Situation("as many SQL queries run as the service takes; try again", "TOO_MANY_QUERIES"),
            Situation("as many watches are open as the service takes; try again", "TOO_MANY_WATCHES"),
            Situation("a query needs too much memory, or a row of it is too large for a message", "QUERY_TOO_LARGE"),
            Situation("the disk is full, or nearly; trying again does not help before there is room", "DISK_FULL"),
        ),
    ),
    ErrorRow(
        errors.UnauthenticatedError,
        grpc.StatusCode.UNAUTHENTICATED,
        _none,
        "never which part was wrong",
        (Situation("no token, or a wrong one", "UNAUTHENTICATED"),),
    ),
    ErrorRow(
        errors.PermissionDeniedError,
        grpc.StatusCode.PERMISSION_DENIED,
        _none,
        "never which part was wrong",
        (
            Situation("the token does not cover the method", "PERMISSION_DENIED"),
            Situation("SQL queries are switched off", "SQL_OFF"),
        ),
    ),
    ErrorRow(
        errors.UnavailableError,
        grpc.StatusCode.UNAVAILABLE,
        _none,
        "none",
        (
            Situation("the service cannot take the call now; try again", "UNAVAILABLE"),
            Situation("the service is shutting down", "SHUTTING_DOWN"),
            Situation("a stream reached its age limit; open it again", "STREAM_RECYCLED"),
            Situation("the store is closed", "STORE_CLOSED"),
            Situation("a snapshot could not be written; the one before stays", "SNAPSHOT_FAILED"),
            Situation("the store broke and nothing more is stored until a restart", "STORE_BROKEN"),
            Situation("at start: another process holds the store; metadata `pid`", "STORE_LOCKED"),
            Situation("at start: the address cannot be listened on", "CANNOT_LISTEN"),
            Situation("at start: one of several processes ended, or could not be started", "WORKER_FAILED"),
        ),
    ),
    ErrorRow(
        errors.DeadlineExceededError,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        _none,
        "none",
        (Situation("the answer did not come in time", "DEADLINE_EXCEEDED"),),
    ),
    ErrorRow(
        errors.CancelledError,
        grpc.StatusCode.CANCELLED,
        _none,
        "none",
        (Situation("the call was cancelled", "CANCELLED"),),
    ),
    ErrorRow(
        errors.UnimplementedError,
        grpc.StatusCode.UNIMPLEMENTED,
        _none,
        "none",
        (Situation("the service has no such method", "UNIMPLEMENTED"),),
    ),
    ErrorRow(
        errors.InternalError,
        grpc.StatusCode.INTERNAL,
        _none,
        "none; the message holds the request id, the log holds the rest",
        (Situation("anything else", "INTERNAL"),),
    ),
)

_ROWS = {row.error: row for row in ERROR_TABLE}


@frozen
class RpcStatus(grpc.Status):
    """A status with what `abort_with_status` sends: code, message and trailing metadata."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, str | bytes], ...]


def internal_error(request_id: str) -> errors.InternalError:
    """What a caller learns of a fault: nothing but where to look."""
    return errors.InternalError(f"internal error; request id {request_id}", metadata={"requestId": request_id})


def row_of(error: errors.Error) -> ErrorRow:
    """The row of an error's class, or of the nearest class above it; that of InternalError where there is none."""
    for kind in type(error).__mro__:
        if kind in _ROWS:
            return _ROWS[kind]
    return _ROWS[errors.InternalError]


def status_proto(error: errors.Error, domain: str) -> status_pb2.Status:
    """`error` as `google.rpc.Status`, short enough for a header. `domain` is `<service>.linkbound`."""
    row = row_of(error)
    details = row.details(error)
    metadata = {key: _cut(value) for key, value in error.metadata.items()}
    omitted_count = sum(_omitted_violation_count(error, detail) for detail in details)
    if omitted_count:
        metadata[OMITTED_VIOLATIONS_KEY] = str(omitted_count)
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=domain, metadata=metadata)
    return status_pb2.Status(
        code=row.code.value[0],
        message=_cut(error.message, MAX_MESSAGE_BYTES),
        details=[_packed(detail) for detail in (info, *details)],
    )


def rpc_status(error: errors.Error, domain: str, *trailers: tuple[str, str]) -> RpcStatus:
    """`error` as the status that ends a call, with `trailers` beside the details."""
    proto = status_proto(error, domain)
    pushback: tuple[tuple[str, str], ...] = ()
    if isinstance(error, errors.ResourceExhaustedError) and error.retry_delay_seconds is not None:
        pushback = ((PUSHBACK_KEY, str(round(error.retry_delay_seconds * 1000))),)
    return RpcStatus(
        row_of(error).code,
        proto.message,
        (("grpc-status-details-bin", proto.SerializeToString()), *pushback, *trailers),
    )


def _omitted_violation_count(error: errors.Error, detail: Message) -> int:
    if isinstance(error, errors.InvalidArgumentError) and isinstance(detail, error_details_pb2.BadRequest):
        return len(error.field_violations) - len(detail.field_violations)
    return 0


def _packed(message: Message) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(message)
    return packed


def _cut(text: str, limit_bytes: int = MAX_VALUE_BYTES) -> str:
    # A file name may hold what UTF-8 cannot.
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit_bytes:
        return encoded.decode()
    return encoded[: limit_bytes - len(_CUT_MARK)].decode(errors="ignore") + _CUT_MARK
