"""The estimator's server with one method more, which answers at once with a message made before: the empty handler.

Interceptor, log line, request and response are those of `EstimatePrefill`. Run as a process: prints its port, stops
when standard input ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click
import grpc

from estimator_service.service import default_estimator
from estimator_service.transport.estimator_servicer import EstimatorServicer
from estimator_service.transport.names import ERROR_DOMAIN, ESTIMATOR_SERVICE
from linkbound.convert.prefill import prefill_estimate_to_proto, prefill_request_from_proto
from linkbound.estimator.v1.estimator_service_pb2 import EstimatePrefillRequest, EstimatePrefillResponse
from linkbound.estimator.v1.estimator_service_pb2_grpc import add_EstimatorServiceServicer_to_server
from serving.builder import ServiceBinding, build_server
from serving.lifecycle import run_until_stopped
from serving.logging import configure_logging
from serving.settings import ServerSettings
from tests.bench.questions import PREFILL_BYTES

EMPTY_SERVICE = "linkbound.bench.Empty"


def register_empty(answer: EstimatePrefillResponse, server: grpc.aio.Server) -> None:
    """Add the empty handler."""

    async def call(_request: EstimatePrefillRequest, _context: Any) -> EstimatePrefillResponse:
        return answer

    handler: Any = grpc.unary_unary_rpc_method_handler(
        call, EstimatePrefillRequest.FromString, EstimatePrefillResponse.SerializeToString
    )
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(EMPTY_SERVICE, {"Call": handler})])


async def main() -> None:
    """Serve until standard input ends."""
    settings, estimator = ServerSettings(grace_seconds=0), default_estimator()
    configure_logging(settings.log_format, settings.log_level)
    question = prefill_request_from_proto(EstimatePrefillRequest.FromString(PREFILL_BYTES))
    answer = prefill_estimate_to_proto(estimator.estimate_prefill(question))

    def bindings(draining: asyncio.Event) -> Sequence[ServiceBinding]:
        servicer = EstimatorServicer(estimator, draining)
        return (
            ServiceBinding(ESTIMATOR_SERVICE, partial(add_EstimatorServiceServicer_to_server, servicer)),
            ServiceBinding(EMPTY_SERVICE, partial(register_empty, answer)),
        )

    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stop.set)
    built = await build_server(settings, bindings, error_domain=ERROR_DOMAIN)
    await run_until_stopped(built, stop=stop, grace_seconds=0, on_started=click.echo)


if __name__ == "__main__":
    asyncio.run(main())
