"""What happens around every call of both servers: request id, token, errors, one log line."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import Any, TypeVar

import grpc
import structlog
from attrs import field, frozen
from google.protobuf.message import DecodeError

from linkbound.domain.errors import Error, InternalError, InvalidArgumentError, UnimplementedError, Violation
from serving.admission import CallLimit
from serving.auth import AUTHORIZATION_KEY, TokenCheck
from serving.errors import internal_error, row_of, rpc_status
from serving.logging import RPC_FAILED, RPC_FINISHED
from serving.rpc import CURRENT_RPC, RpcRecord, code_name, time_remaining_seconds

REQUEST_ID_KEY = "x-request-id"
INFRASTRUCTURE_PREFIX = "grpc."
"""Services that gRPC itself defines: health and reflection."""
HEALTH_PREFIX = "grpc.health."

T = TypeVar("T")
Context = grpc.aio.ServicerContext[Any, Any]
Deserializer = Callable[[bytes], Any]

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
_LOG = structlog.get_logger("serving")
_NO_LIMITS: Mapping[str, CallLimit] = {}
PermissionCheck = Callable[[str | None], None]
"""Given the authorization of a caller, raises where the caller may not make a call."""
_NO_PERMISSIONS: Mapping[str, PermissionCheck] = {}


class RpcInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every method of a server; `error_domain` is `<service>.linkbound`.

    The request id of the caller, or a new one, goes back as `x-request-id` in the initial metadata, and in the trailing
    metadata of an error. Errors of the domain become rich statuses; anything else is INTERNAL and its traceback goes to
    the log. `draining` is set when the server stops: streams of health and reflection, which never end by themselves,
    are ended then. Calls beyond the `limits` of their methods are refused before what they bring is read; of those that
    carry an accepted token, `permissions` refuses further ones, by method.
    """

    def __init__(
        self,
        *,
        error_domain: str,
        token_check: TokenCheck,
        draining: asyncio.Event,
        limits: Mapping[str, CallLimit] = _NO_LIMITS,
        permissions: Mapping[str, PermissionCheck] = _NO_PERMISSIONS,
    ) -> None:
        self._limits = limits
        self._permissions = permissions
        self._error_domain = error_domain
        self._token_check = token_check
        self._draining = draining

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """The handler of the method with everything around it; one that answers UNIMPLEMENTED where there is none."""
        handler = await continuation(handler_call_details)
        rpc = handler_call_details.method.lstrip("/")
        if handler is None:
            return self._refusing(rpc, UnimplementedError(f"this service has no method {rpc[:128]!r}"))
        limit = self._limits.get(rpc)
        if limit is not None and (refusal := limit.refusal()) is not None:
            return self._refusing(rpc, refusal)
        if not handler.request_streaming and not handler.response_streaming:
            return self._wrap_unary(rpc, handler)
        return self._wrap_stream(rpc, handler)

    def _wrap_unary(self, rpc: str, handler: Any) -> grpc.RpcMethodHandler[Any, Any]:
        behavior, deserialize = handler.unary_unary, handler.request_deserializer

        async def call(raw: bytes, context: Context) -> Any:
            async def work(record: RpcRecord) -> Any:
                record.request_bytes = len(raw)
                with self._slot(rpc):
                    return await behavior(_decoded(deserialize, raw), context)

            return await self._run(rpc, context, work)

        # The bytes are decoded within, so that undecodable ones are answered and logged like any other error.
        return grpc.unary_unary_rpc_method_handler(call, None, handler.response_serializer)

    def _wrap_stream(self, rpc: str, handler: Any) -> grpc.RpcMethodHandler[Any, Any]:
        behavior = (
            handler.stream_stream
            if handler.request_streaming and handler.response_streaming
            else handler.stream_unary
            if handler.request_streaming
            else handler.unary_stream
        )

        deserialize = handler.request_deserializer

        async def call(request: Any, context: Context) -> Any:
            async def work(record: RpcRecord) -> Any:
                with self._slot(rpc):
                    if handler.request_streaming:
                        return await _in_writing(behavior(request, context), context)
                    record.request_bytes = len(request)
                    return await _in_writing(behavior(_decoded(deserialize, request), context), context)

            if rpc.startswith(INFRASTRUCTURE_PREFIX):
                return await self._run(rpc, context, lambda record: _until(self._draining, work(record)))
            return await self._run(rpc, context, work)

        wrap: Any = (
            grpc.stream_stream_rpc_method_handler
            if handler.request_streaming and handler.response_streaming
            else grpc.stream_unary_rpc_method_handler
            if handler.request_streaming
            else grpc.unary_stream_rpc_method_handler
        )
        # A single request is decoded within, as in a unary call; those of a stream as the call reads them.
        decode = _counting(deserialize) if handler.request_streaming else None
        wrapped: grpc.RpcMethodHandler[Any, Any] = wrap(call, decode, handler.response_serializer)
        return wrapped

    def _refusing(self, rpc: str, error: Error) -> grpc.RpcMethodHandler[Any, Any]:
        """A handler that answers `error` and reads nothing, whatever the method is."""

        async def call(_requests: Any, context: Context) -> None:
            async def work(_record: RpcRecord) -> None:
                raise error

            await self._run(rpc, context, work)

        return grpc.stream_stream_rpc_method_handler(call)

    def _slot(self, rpc: str) -> AbstractContextManager[None]:
        limit = self._limits.get(rpc)
        return nullcontext() if limit is None else limit.slot()

    async def _run(self, rpc: str, context: Context, work: Callable[[RpcRecord], Awaitable[T]]) -> T:
        started_ns = time.monotonic_ns()
        metadata = _Metadata.of(context)
        record = RpcRecord(rpc=rpc, request_id=metadata.request_id)
        CURRENT_RPC.set(record)
        with structlog.contextvars.bound_contextvars(rpc=rpc, request_id=record.request_id):
            try:
                outcome = await self._outcome(record, metadata, context, work)
            finally:
                _log_line(record, time.monotonic_ns() - started_ns)
        if isinstance(outcome, Error):
            trailer = (REQUEST_ID_KEY, record.request_id)
            await context.abort_with_status(rpc_status(outcome, self._error_domain, trailer))
        return outcome

    async def _outcome(
        self, record: RpcRecord, metadata: _Metadata, context: Context, work: Callable[[RpcRecord], Awaitable[T]]
    ) -> T | Error:
        """What `work` answers, or the error that the caller is told; `record` has its code either way."""
        try:
            await context.send_initial_metadata(((REQUEST_ID_KEY, record.request_id),))
            if not record.rpc.startswith(HEALTH_PREFIX):
                self._token_check.check(metadata.authorization)
                self._permissions.get(record.rpc, _anybody)(metadata.authorization)
            return await work(record)
        except grpc.aio.AbortError:
            # gRPC's own servicers end calls themselves.
            record.code = code_name(context)
            raise
        except asyncio.CancelledError:
            is_late = time_remaining_seconds(context) == 0
            record.code = record.reason = "DEADLINE_EXCEEDED" if is_late else "CANCELLED"
            raise
        except Exception as failure:
            error = as_domain_error(failure, record.request_id)
            record.code, record.reason = row_of(error).code.name, error.reason
            return error


@frozen
class _Metadata:
    """What the caller sent beside the request."""

    request_id: str
    authorization: str | None = field(repr=False)

    @classmethod
    def of(cls, context: Context) -> _Metadata:
        given = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        request_id = given.get(REQUEST_ID_KEY, "")
        return cls(request_id if _REQUEST_ID.fullmatch(request_id) else uuid.uuid4().hex, given.get(AUTHORIZATION_KEY))


def _anybody(_authorization: str | None) -> None:
    """The permission of methods that every accepted caller may call."""


def as_domain_error(failure: Exception, request_id: str) -> Error:
    """What the caller is told of `failure`: an error of the domain as it is, nothing of a fault, which is logged."""
    if isinstance(failure, Error) and row_of(failure).error is not InternalError:
        return failure
    _LOG.error(RPC_FAILED, exc_info=failure)
    return internal_error(request_id)


def _log_line(record: RpcRecord, duration_ns: int) -> None:
    rows = {} if record.rows is None else {"rows": record.rows}
    # Probes come every few seconds and would bury the rest.
    is_quiet = record.rpc.startswith(HEALTH_PREFIX) and record.code in {"OK", "CANCELLED"}
    (_LOG.debug if is_quiet else _LOG.info)(
        RPC_FINISHED,
        rpc=record.rpc,
        request_id=record.request_id,
        code=record.code,
        reason=record.reason,
        duration_ns=duration_ns,
        request_bytes=record.request_bytes,
        **rows,
    )


def _decoded(deserialize: Deserializer | None, raw: bytes) -> Any:
    if deserialize is None:
        return raw
    try:
        return deserialize(raw)
    except DecodeError as error:
        violation = Violation("request", f"{len(raw)} bytes are not a message of this method")
        raise InvalidArgumentError([violation], reason="MALFORMED_MESSAGE") from error


def _counting(deserialize: Deserializer | None) -> Deserializer:
    def decode(raw: bytes) -> Any:
        record = CURRENT_RPC.get(None)
        if record is not None:
            record.request_bytes += len(raw)
        return _decoded(deserialize, raw)

    return decode


async def _in_writing(result: Any, context: Context) -> Any:
    """What a streaming servicer answers, whether it yields its answers or writes them itself."""
    if hasattr(result, "__aiter__"):
        # Closed here and not when it is collected: the servicer lets go of what it holds before the call ends.
        async with aclosing(result) as responses:
            async for response in responses:
                await context.write(response)
        return None
    return await result


async def _until(event: asyncio.Event, work: Awaitable[T]) -> T | None:
    """`work`, given up once `event` is set."""
    working = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, waiting):
            task.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
