"""What the tests ask a server from outside: a call, its health, its reflection."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2_grpc

from linkbound.client.remote.errors import error_of_call
from linkbound.domain.errors import Error
from linkbound.estimator.v1.catalog_service_pb2 import ListModelsRequest
from linkbound.estimator.v1.catalog_service_pb2_grpc import CatalogServiceStub

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
ESTIMATOR_SERVICES = ["", "linkbound.estimator.v1.EstimatorService", "linkbound.estimator.v1.CatalogService"]


async def models_of(channel: grpc.aio.Channel, **call_arguments: Any) -> int:
    stub: Any = CatalogServiceStub(channel)
    return len((await stub.ListModels(ListModelsRequest(), **call_arguments)).models)


async def health_of(channel: grpc.aio.Channel, service: str) -> int:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    status: int = (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status
    return status


async def error_of(call: Any) -> Error:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return error_of_call(caught.value, "the server")


def reflection_stub(channel: Any) -> Any:
    # Its stubs know the blocking channel only.
    return reflection_pb2_grpc.ServerReflectionStub(channel)


async def refused_reflection(channel: grpc.aio.Channel) -> None:
    # Nothing is written: a write that meets the end of the call would hide its status.
    await reflection_stub(channel).ServerReflectionInfo().read()
