"""The ingest service's gRPC server: `serve` within an event loop, `run_ingest_server` as a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from ingest_service.transport.ingest_servicer import IngestServicer
from ingest_service.transport.names import ERROR_DOMAIN, INGEST_SERVICE, QUERY_SERVICE, RUN_SERVICE
from ingest_service.transport.query_servicer import QueryServicer
from ingest_service.transport.run_servicer import RunServicer
from ingest_service.transport.store_threads import StoreThreads
from linkbound.ingest.v1.ingest_service_pb2_grpc import add_IngestServiceServicer_to_server
from linkbound.ingest.v1.query_service_pb2_grpc import add_QueryServiceServicer_to_server
from linkbound.ingest.v1.run_service_pb2_grpc import add_RunServiceServicer_to_server
from serving.builder import PortSharing, ServiceBinding, build_server
from serving.lifecycle import OnStarted, run_until_signalled, run_until_stopped
from serving.logging import configure_logging
from serving.settings import ServerSettings

HEALTH_INTERVAL_SECONDS = 1.0
"""How often the store is asked whether it still stores."""


async def serve(settings: ServerSettings, ingest: Ingest, *, on_started: OnStarted, stop: asyncio.Event) -> None:
    """Serve `ingest` until `stop` is set; `on_started` is told the port once health says SERVING.

    The caller closes `ingest` afterwards; no call is in it any more then. The port is this process's alone: two ingest
    services on one port would each get a part of the writers. Health says NOT_SERVING once the store is broken. Raises
    InvalidArgumentError for files that cannot be used, UnavailableError (CANNOT_LISTEN) where the address cannot be
    listened on.
    """
    threads = StoreThreads()
    built = await build_server(
        settings, partial(_bindings, ingest, threads), error_domain=ERROR_DOMAIN, port_sharing=PortSharing.EXCLUSIVE
    )
    broken = asyncio.Event()
    watching = asyncio.ensure_future(_watch(ingest, broken))
    try:
        await run_until_stopped(
            built, stop=stop, grace_seconds=settings.grace_seconds, on_started=on_started, broken=broken
        )
    finally:
        watching.cancel()
        await threads.close()


def run_ingest_server(settings: ServerSettings, store: StoreSettings, *, on_started: OnStarted) -> None:
    """Open the store and serve it until SIGTERM or SIGINT; configures the logging of this process.

    Raises what `Ingest.open` raises besides what `serve` does. What is queued is stored before this returns.
    """
    configure_logging(settings.log_format, settings.log_level)

    with Ingest.open(store) as ingest:

        async def server(stop: asyncio.Event) -> None:
            await serve(settings, ingest, on_started=on_started, stop=stop)

        asyncio.run(run_until_signalled(server))


def _bindings(ingest: Ingest, threads: StoreThreads, draining: asyncio.Event) -> Sequence[ServiceBinding]:
    run_servicer = RunServicer(ingest, threads)
    ingest_servicer = IngestServicer(ingest, threads, draining)
    query_servicer = QueryServicer(ingest, threads)
    return (
        ServiceBinding(RUN_SERVICE, partial(add_RunServiceServicer_to_server, run_servicer)),
        ServiceBinding(INGEST_SERVICE, partial(add_IngestServiceServicer_to_server, ingest_servicer)),
        ServiceBinding(QUERY_SERVICE, partial(add_QueryServiceServicer_to_server, query_servicer)),
    )


async def _watch(ingest: Ingest, broken: asyncio.Event) -> None:
    while not broken.is_set():
        if not ingest.healthy:
            broken.set()
        await asyncio.sleep(HEALTH_INTERVAL_SECONDS)
