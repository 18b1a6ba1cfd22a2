"""The estimator's gRPC server; `linkbound serve` runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from estimator_service.service import Estimator
from estimator_service.transport.catalog_servicer import CatalogServicer
from estimator_service.transport.estimator_servicer import EstimatorServicer
from estimator_service.transport.names import CATALOG_SERVICE, ERROR_DOMAIN, ESTIMATOR_SERVICE
from linkbound.estimator.v1.catalog_service_pb2_grpc import add_CatalogServiceServicer_to_server
from linkbound.estimator.v1.estimator_service_pb2_grpc import add_EstimatorServiceServicer_to_server
from serving.builder import ServiceBinding, build_server
from serving.lifecycle import OnStarted, run_until_stopped
from serving.settings import ServerSettings


async def serve(settings: ServerSettings, estimator: Estimator, *, on_started: OnStarted, stop: asyncio.Event) -> None:
    """Serve `estimator` until `stop` is set; `on_started` is told the port once health says SERVING.

    Raises InvalidArgumentError for files that cannot be used, UnavailableError (CANNOT_LISTEN) where the address cannot
    be listened on.
    """
    built = await build_server(settings, partial(_bindings, estimator), error_domain=ERROR_DOMAIN)
    await run_until_stopped(built, stop=stop, grace_seconds=settings.grace_seconds, on_started=on_started)


def _bindings(estimator: Estimator, draining: asyncio.Event) -> Sequence[ServiceBinding]:
    estimator_servicer, catalog_servicer = EstimatorServicer(estimator, draining), CatalogServicer(estimator)
    return (
        ServiceBinding(ESTIMATOR_SERVICE, partial(add_EstimatorServiceServicer_to_server, estimator_servicer)),
        ServiceBinding(CATALOG_SERVICE, partial(add_CatalogServiceServicer_to_server, catalog_servicer)),
    )
