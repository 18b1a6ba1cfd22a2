"""The ingest service's gRPC server; `linkbound serve` runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from ingest_service.service import Ingest
from ingest_service.transport.ingest_servicer import IngestServicer
from ingest_service.transport.names import ERROR_DOMAIN, INGEST_SERVICE, QUERY_SERVICE, RUN_SERVICE
from ingest_service.transport.query_servicer import QueryServicer
from ingest_service.transport.run_servicer import RunServicer
from ingest_service.transport.store_threads import StoreThreads
from linkbound.domain.errors import UnavailableError
from linkbound.ingest.v1.ingest_service_pb2_grpc import add_IngestServiceServicer_to_server
from linkbound.ingest.v1.query_service_pb2_grpc import add_QueryServiceServicer_to_server
from linkbound.ingest.v1.run_service_pb2_grpc import add_RunServiceServicer_to_server
from serving.builder import ServiceBinding, build_server
from serving.lifecycle import OnStarted, run_until_stopped
from serving.settings import ServerSettings

HEALTH_INTERVAL_SECONDS = 1.0
"""How often the store is asked whether it still stores."""


async def serve(settings: ServerSettings, ingest: Ingest, *, on_started: OnStarted, stop: asyncio.Event) -> None:
    """Serve `ingest` until `stop` is set; `on_started` is told the port once health says SERVING.

    The caller closes `ingest` afterwards; no call is in it any more then. The port is this process's alone: two ingest
    services on one port would each get a part of the writers. If the store breaks, health says NOT_SERVING, the server
    stops and UnavailableError (STORE_BROKEN) is raised. Raises InvalidArgumentError for files that cannot be used, and
    UnavailableError (CANNOT_LISTEN) where the address cannot be listened on.
    """
    threads = StoreThreads()
    built = await build_server(settings, partial(_bindings, ingest, threads), error_domain=ERROR_DOMAIN)
    ending = asyncio.Event()
    watching = asyncio.ensure_future(_set_at_the_end(ending, ingest, stop))
    try:
        await run_until_stopped(built, stop=ending, grace_seconds=settings.grace_seconds, on_started=on_started)
    finally:
        watching.cancel()
        await asyncio.wait({watching})
        await threads.close()
    if not watching.cancelled():
        watching.result()
    if not stop.is_set():
        raise UnavailableError(
            "the store broke and the service stopped; what was acknowledged is there when it starts again",
            reason="STORE_BROKEN",
        )


def _bindings(ingest: Ingest, threads: StoreThreads, draining: asyncio.Event) -> Sequence[ServiceBinding]:
    run_servicer = RunServicer(ingest, threads)
    ingest_servicer = IngestServicer(ingest, threads, draining)
    query_servicer = QueryServicer(ingest, threads)
    return (
        ServiceBinding(RUN_SERVICE, partial(add_RunServiceServicer_to_server, run_servicer)),
        ServiceBinding(INGEST_SERVICE, partial(add_IngestServiceServicer_to_server, ingest_servicer)),
        ServiceBinding(QUERY_SERVICE, partial(add_QueryServiceServicer_to_server, query_servicer)),
    )


async def _set_at_the_end(ending: asyncio.Event, ingest: Ingest, stop: asyncio.Event) -> None:
    """Set `ending` once `stop` is set or the store no longer stores, or cannot be asked."""
    try:
        while ingest.healthy and not stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(HEALTH_INTERVAL_SECONDS):
                    await stop.wait()
    finally:
        ending.set()
