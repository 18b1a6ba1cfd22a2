"""The estimator's gRPC server: `serve` within an event loop, `run_estimator_server` as a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from estimator_service.service import Estimator
from estimator_service.transport.catalog_servicer import CatalogServicer
from estimator_service.transport.estimator_servicer import EstimatorServicer
from linkbound.estimator.v1.catalog_service_pb2_grpc import add_CatalogServiceServicer_to_server
from linkbound.estimator.v1.estimator_service_pb2_grpc import add_EstimatorServiceServicer_to_server
from serving.builder import PortSharing, ServiceBinding, build_server
from serving.lifecycle import OnStarted, run_until_signalled, run_until_stopped
from serving.logging import configure_logging
from serving.settings import ServerSettings

ERROR_DOMAIN = "estimator.linkbound"
ESTIMATOR_SERVICE = "linkbound.estimator.v1.EstimatorService"
CATALOG_SERVICE = "linkbound.estimator.v1.CatalogService"


async def serve(settings: ServerSettings, estimator: Estimator, *, on_started: OnStarted, stop: asyncio.Event) -> None:
    """Serve `estimator` until `stop` is set; `on_started` is told the port once health says SERVING.

    The port can be shared: every process with the same catalogue gives the same answers. Raises InvalidArgumentError
    for files that cannot be used, UnavailableError (CANNOT_LISTEN) where the address cannot be listened on.
    """
    built = await build_server(
        settings,
        lambda _draining: _bindings(estimator),
        error_domain=ERROR_DOMAIN,
        port_sharing=PortSharing.SHARED,
    )
    await run_until_stopped(built, stop=stop, grace_seconds=settings.grace_seconds, on_started=on_started)


def run_estimator_server(settings: ServerSettings, estimator: Estimator, *, on_started: OnStarted) -> None:
    """Serve `estimator` until SIGTERM or SIGINT; configures the logging of this process."""
    configure_logging(settings.log_format, settings.log_level)

    async def server(stop: asyncio.Event) -> None:
        await serve(settings, estimator, on_started=on_started, stop=stop)

    asyncio.run(run_until_signalled(server))


def _bindings(estimator: Estimator) -> Sequence[ServiceBinding]:
    estimator_servicer, catalog_servicer = EstimatorServicer(estimator), CatalogServicer(estimator)
    return (
        ServiceBinding(ESTIMATOR_SERVICE, partial(add_EstimatorServiceServicer_to_server, estimator_servicer)),
        ServiceBinding(CATALOG_SERVICE, partial(add_CatalogServiceServicer_to_server, catalog_servicer)),
    )
