"""Errors over the wire: what the servers' table writes, the client reads back; what it did not write maps by code."""

from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2

from linkbound.client.remote.errors import error_of_call, error_of_status
from linkbound.domain import errors
from linkbound.domain.errors import Error, Resource, Violation
from serving.errors import status_proto

DOMAIN = "tests.linkbound"
METADATA = {"run": "r1", "expectedSequenceNumber": "7"}
NEAR = {"model": "glm-5.4", "nearNames": "glm-5.3,glm-5.2"}

EVERY_ERROR: list[Error] = [
    errors.InvalidArgumentError(
        [Violation("link.rate", "0 is not positive"), Violation("values[3].subject", "'' is empty", "REQUIRED")],
        metadata=METADATA,
    ),
    errors.NotFoundError(
        "no",
        resource=Resource("model", "glm-5.4"),
        near_names=["glm-5.3", "glm-5.2"],
        reason="MODEL_NOT_FOUND",
        metadata=NEAR,
    ),
    errors.NotFoundError("no", resource=Resource("run", "r1"), reason="RUN_NOT_FOUND"),
    errors.AlreadyExistsError("taken", resource=Resource("run", "r1"), reason="RUN_EXISTS", metadata=METADATA),
    errors.FailedPreconditionError("sealed", reason="RUN_SEALED", metadata=METADATA),
    errors.OutOfRangeError("gap", reason="SEQUENCE_GAP", metadata=METADATA),
    errors.AbortedError("conflict", reason="WRITER_CONFLICT", metadata=METADATA),
    errors.ResourceExhaustedError("queue", reason="QUEUE_FULL", retry_delay_seconds=0.25),
    errors.ResourceExhaustedError("queue", reason="QUEUE_FULL", retry_delay_seconds=0.0),
    errors.ResourceExhaustedError("disk", reason="DISK_FULL", metadata=METADATA),
    errors.UnauthenticatedError("who"),
    errors.PermissionDeniedError("no"),
    errors.UnavailableError("away", reason="SHUTTING_DOWN", metadata=METADATA),
    errors.DeadlineExceededError("late"),
    errors.CancelledError("never mind"),
    errors.UnimplementedError("what"),
    errors.InternalError("a fault"),
]


def every_class() -> set[type[Error]]:
    return {
        kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, Error) and not name.startswith("_") and kind is not Error
    }


def test_every_class_is_among_the_examples() -> None:
    assert {type(error) for error in EVERY_ERROR} == every_class()


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: f"{type(error).__name__}-{error.reason}")
def test_what_the_servers_write_is_read_back(error: Error) -> None:
    read = error_of_status(status_proto(error, DOMAIN), "request-1")
    assert type(read) is type(error)
    assert {**vars(read), "request_id": ""} == vars(error)
    assert read.request_id == "request-1"
    assert str(read) == str(error)


class Failed(grpc.RpcError):
    """A failed call as gRPC describes it."""

    def __init__(self, code: grpc.StatusCode, details: str | None, *metadata: tuple[str, str | bytes]) -> None:
        super().__init__()
        self._parts = (code, details, metadata)

    def code(self) -> grpc.StatusCode:
        return self._parts[0]

    def details(self) -> str | None:
        return self._parts[1]

    def trailing_metadata(self) -> Any:
        return self._parts[2]


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_a_status_without_details_maps_by_its_code(code: grpc.StatusCode) -> None:
    error = error_of_call(Failed(code, "by a proxy", ("x-request-id", "request-2")), "host:1")
    known = {kind.code: kind for kind in every_class()}
    assert type(error) is known.get(code.name, Error)
    assert "by a proxy" in str(error)
    assert error.request_id == "request-2"
    assert error.metadata == {}


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED])
def test_what_the_connection_did_names_the_target(code: grpc.StatusCode) -> None:
    assert str(error_of_call(Failed(code, None), "host:1")).startswith("host:1: ")


def test_details_that_contradict_the_status_are_left_out() -> None:
    details = status_proto(errors.InternalError("a fault"), DOMAIN).SerializeToString()
    error = error_of_call(Failed(grpc.StatusCode.UNAVAILABLE, "away", ("grpc-status-details-bin", details)), "host:1")
    assert isinstance(error, errors.UnavailableError)


def test_details_that_this_version_does_not_know_are_left_out() -> None:
    unknown = AnyMessage(type_url="type.googleapis.com/linkbound.Unheard", value=b"\x01")
    info = AnyMessage()
    info.Pack(error_details_pb2.ErrorInfo(reason="RUN_SEALED", domain=DOMAIN))
    status = status_pb2.Status(code=grpc.StatusCode.FAILED_PRECONDITION.value[0], message="m", details=[unknown, info])
    assert error_of_status(status).reason == "RUN_SEALED"


def test_a_code_that_this_version_does_not_know_is_an_error_all_the_same() -> None:
    assert type(error_of_status(status_pb2.Status(code=99, message="m"))) is Error
