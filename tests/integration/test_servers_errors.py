"""Each row of the error table through a real channel, and what the client makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from structlog.testing import capture_logs

from linkbound.client.remote.errors import error_of_call
from linkbound.domain import errors
from linkbound.domain.errors import Error, Resource, Violation
from serving.builder import ServiceBinding
from serving.errors import ERROR_TABLE
from tests.integration.servers import service_server

EXAMPLES: list[Error] = [
    errors.InvalidArgumentError([Violation("a.b", "is wrong"), Violation("c[2]", "is wrong too", "OTHER")]),
    errors.NotFoundError.of(Resource("model", "glm"), ("glm-5.3", "glm-5.2")),
    errors.AlreadyExistsError("taken", resource=Resource("run", "r"), reason="RUN_EXISTS", metadata={"run": "r"}),
    errors.FailedPreconditionError("sealed", reason="RUN_SEALED", metadata={"run": "r"}),
    errors.OutOfRangeError("ahead", reason="SEQUENCE_GAP", metadata={"expectedSequenceNumber": "3"}),
    errors.AbortedError("other content", reason="WRITER_CONFLICT", metadata={"writer": "w"}),
    errors.ResourceExhaustedError("full", reason="QUEUE_FULL", retry_delay_seconds=0.25),
    errors.ResourceExhaustedError("no room", reason="DISK_FULL"),
    errors.UnauthenticatedError("a token is required"),
    errors.PermissionDeniedError("not covered"),
    errors.UnavailableError("stopping", reason="SHUTTING_DOWN"),
    errors.DeadlineExceededError("late", metadata={"limitSeconds": "30"}),
    errors.CancelledError("cancelled"),
    errors.UnimplementedError("no such method"),
]


def raising(failure: BaseException) -> ServiceBinding:
    """A service whose two methods raise `failure`."""

    async def unary(_request: bytes, _context: Any) -> bytes:
        raise failure

    async def stream(_requests: Any, context: Any) -> None:
        await context.write(b"before")
        raise failure

    def register(server: grpc.aio.Server) -> None:
        methods: dict[str, Any] = {
            "Unary": grpc.unary_unary_rpc_method_handler(unary),
            "Stream": grpc.stream_stream_rpc_method_handler(stream),
        }
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Raising", methods)])

    return ServiceBinding("test.Raising", register)


async def call_unary(channel: grpc.aio.Channel) -> None:
    call: Any = channel.unary_unary("/test.Raising/Unary")
    await call(b"")


async def call_stream(channel: grpc.aio.Channel) -> None:
    call: Any = channel.stream_stream("/test.Raising/Stream")()
    assert await call.read() == b"before"
    await call.read()


async def failure_of(failure: BaseException, call: Callable[[grpc.aio.Channel], Any] = call_unary) -> Any:
    """What the call fails with on the client's side."""
    async with service_server(raising(failure)) as server, server.channel() as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(channel)
        return caught.value


def test_every_row_has_an_example() -> None:
    rows = {row.error for row in ERROR_TABLE}
    assert {type(example) for example in EXAMPLES} == rows - {errors.InternalError}


@pytest.mark.parametrize("call", [call_unary, call_stream])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{type(example).__name__}-{example.reason}")
async def test_an_error_arrives_as_it_was_raised(example: Error, call: Callable[[grpc.aio.Channel], Any]) -> None:
    arrived = error_of_call(await failure_of(example, call), "the server")
    assert type(arrived) is type(example)
    assert arrived.request_id
    unchanged = {**vars(example), "request_id": arrived.request_id}
    assert vars(arrived) == unchanged


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{type(example).__name__}-{example.reason}")
async def test_every_status_has_error_info_and_each_detail_once(example: Error) -> None:
    status = rpc_status.from_call(await failure_of(example))
    assert status is not None
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain, dict(info.metadata)) == (example.reason, "test.linkbound", example.metadata)
    urls = [detail.type_url for detail in status.details]
    assert len(set(urls)) == len(urls)


async def test_a_precondition_names_what_it_is_about() -> None:
    status = rpc_status.from_call(await failure_of(EXAMPLES[3]))
    assert status is not None
    failure = error_details_pb2.PreconditionFailure()
    assert status.details[1].Unpack(failure)
    assert [(v.type, v.subject, v.description) for v in failure.violations] == [("RUN_SEALED", "r", "sealed")]


async def test_only_what_may_be_tried_again_says_when() -> None:
    full, no_room = EXAMPLES[6], EXAMPLES[7]
    trailers = dict((await failure_of(full)).trailing_metadata())
    assert trailers["grpc-retry-pushback-ms"] == "250"
    trailers = dict((await failure_of(no_room)).trailing_metadata())
    assert "grpc-retry-pushback-ms" not in trailers


@pytest.mark.parametrize(
    "fault", [RuntimeError("secret"), errors.InternalError("secret"), errors.Error("secret"), KeyError("secret")]
)
@pytest.mark.parametrize("call", [call_unary, call_stream])
async def test_a_fault_says_nothing_but_where_to_look(
    fault: Exception, call: Callable[[grpc.aio.Channel], Any]
) -> None:
    with capture_logs() as logs:
        failure = await failure_of(fault, call)
    arrived = error_of_call(failure, "the server")
    assert isinstance(arrived, errors.InternalError)
    assert arrived.message == f"internal error; request id {arrived.request_id}"
    assert "secret" not in str(failure)
    (failed,) = [line for line in logs if line["event"] == "rpc_failed"]
    assert failed["exc_info"] is fault
    (finished,) = [line for line in logs if line["event"] == "rpc_finished"]
    assert (finished["code"], finished["reason"]) == ("INTERNAL", "INTERNAL")


async def test_thousands_of_violations_fit_into_a_header() -> None:
    violations = [Violation(f"records[{index}].subject", "ü" * 300) for index in range(10_000)]
    arrived = error_of_call(await failure_of(errors.InvalidArgumentError(violations)), "the server")
    assert isinstance(arrived, errors.InvalidArgumentError)
    assert arrived.field_violations
    assert int(arrived.metadata["omittedViolationCount"]) == 10_000 - len(arrived.field_violations)


async def test_long_names_fit_into_a_header() -> None:
    error = errors.NotFoundError.of(Resource("model", "ü" * 10**5), ["ü" * 10**5])
    arrived = error_of_call(await failure_of(error), "the server")
    assert isinstance(arrived, errors.NotFoundError)
    assert arrived.resource.name.startswith("üüü")


@pytest.mark.parametrize(("remaining_seconds", "code"), [(500.0, "CANCELLED"), (0.0, "DEADLINE_EXCEEDED")])
async def test_a_call_that_is_given_up_is_logged_with_why(
    monkeypatch: pytest.MonkeyPatch, remaining_seconds: float, code: str
) -> None:
    entered = asyncio.Event()

    async def wait(_request: bytes, _context: Any) -> bytes:
        entered.set()
        await asyncio.Event().wait()
        return b""

    def register(server: grpc.aio.Server) -> None:
        methods: dict[str, Any] = {"Wait": grpc.unary_unary_rpc_method_handler(wait)}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Waiting", methods)])

    # Whose clock ends a late call first, the caller's or the server's, is chance; the server looks at its own.
    monkeypatch.setattr("serving.interceptors.time_remaining_seconds", lambda _context: remaining_seconds)
    with capture_logs() as logs:
        async with service_server(ServiceBinding("test.Waiting", register)) as server, server.channel() as channel:
            method: Any = channel.unary_unary("/test.Waiting/Wait")
            call = method(b"")
            await entered.wait()
            call.cancel()
    lines = [(line["code"], line["reason"]) for line in logs if line["event"] == "rpc_finished"]
    assert lines == [(code, code)]
