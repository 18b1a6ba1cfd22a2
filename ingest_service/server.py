"""The ingest service's gRPC server; `linkbound serve` runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from ingest_service.service import Ingest
from ingest_service.settings import AdmissionSettings, ReadingSettings
from ingest_service.transport.admission import (
    ingest_call_limits,
    query_permissions,
    run_call_limits,
)
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
from serving.health import HealthReporter
from serving.lifecycle import OnStarted, run_until_stopped
from serving.settings import ServerSettings

HEALTH_INTERVAL_SECONDS = 1.0
"""How often the store is asked whether it still stores."""

_DEFAULT_ADMISSION = AdmissionSettings()
_DEFAULT_READING = ReadingSettings()


async def serve(
    settings: ServerSettings,
    ingest: Ingest,
    *,
    on_started: OnStarted,
    stop: asyncio.Event,
    admission: AdmissionSettings = _DEFAULT_ADMISSION,
    reading: ReadingSettings = _DEFAULT_READING,
) -> None:
    """Serve `ingest` until `stop` is set; `on_started` is told the port once health says SERVING.

    While the disk is short of room, health of `IngestService` alone says NOT_SERVING. Snapshots are published from the
    start on, until `ingest` is closed.

    The caller closes `ingest` afterwards; no call is in it any more then. The port is this process's alone: two ingest
    services on one port would each get a part of the writers. If the store breaks, health says NOT_SERVING, the server
    stops and UnavailableError (STORE_BROKEN) is raised. Raises InvalidArgumentError for files that cannot be used, and
    UnavailableError (CANNOT_LISTEN) where the address cannot be listened on.
    """
    threads = StoreThreads()
    bindings = partial(_bindings, ingest, threads, admission, reading)
    built = await build_server(settings, bindings, error_domain=ERROR_DOMAIN)
    if reading.snapshot_interval_seconds:
        ingest.publish_every(reading.snapshot_interval_seconds)
    ending = asyncio.Event()
    watching = asyncio.ensure_future(_watch(ingest, built.health, ending, stop))
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


def _bindings(
    ingest: Ingest,
    threads: StoreThreads,
    admission: AdmissionSettings,
    reading: ReadingSettings,
    draining: asyncio.Event,
) -> Sequence[ServiceBinding]:
    run_servicer = RunServicer(ingest, threads, draining)
    ingest_servicer = IngestServicer(ingest, threads, draining)
    query_servicer = QueryServicer(
        ingest,
        threads,
        sql_limit_seconds=reading.sql_time_limit_seconds,
        max_sql_queries=admission.max_sql_queries,
    )
    return (
        ServiceBinding(
            RUN_SERVICE, partial(add_RunServiceServicer_to_server, run_servicer), run_call_limits(admission)
        ),
        ServiceBinding(
            INGEST_SERVICE,
            partial(add_IngestServiceServicer_to_server, ingest_servicer),
            ingest_call_limits(admission),
        ),
        ServiceBinding(
            QUERY_SERVICE,
            partial(add_QueryServiceServicer_to_server, query_servicer),
            permissions=query_permissions(reading),
        ),
    )


async def _watch(ingest: Ingest, health: HealthReporter, ending: asyncio.Event, stop: asyncio.Event) -> None:
    """Set `ending` once `stop` is set or the store no longer stores, or cannot be asked; report its room meanwhile."""
    try:
        while ingest.healthy and not stop.is_set():
            await health.report(INGEST_SERVICE, serves=ingest.has_room)
            with suppress(TimeoutError):
                async with asyncio.timeout(HEALTH_INTERVAL_SECONDS):
                    await stop.wait()
    finally:
        ending.set()
