"""Health and reflection, as probes and tools ask for them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from structlog.testing import capture_logs

from serving.builder import build_server
from serving.settings import ServerSettings
from tests.integration.probes import (
    ESTIMATOR_SERVICES,
    NOT_SERVING,
    SERVING,
    error_of,
    health_of,
    reflection_stub,
    refused_reflection,
)
from tests.integration.servers import PATIENCE_SECONDS, estimator_server, ingest_server

INGEST_SERVICES = [
    "",
    "linkbound.ingest.v1.RunService",
    "linkbound.ingest.v1.IngestService",
    "linkbound.ingest.v1.QueryService",
]


@pytest.mark.parametrize("service", ESTIMATOR_SERVICES)
async def test_the_estimator_serves_by_full_name(service: str) -> None:
    async with estimator_server() as server, server.channel() as channel:
        assert await health_of(channel, service) == SERVING


@pytest.mark.storage
@pytest.mark.parametrize("service", INGEST_SERVICES)
async def test_the_ingest_service_serves_by_full_name(tmp_path: Path, service: str) -> None:
    async with ingest_server(tmp_path) as server, server.channel() as channel:
        assert await health_of(channel, service) == SERVING


async def test_the_health_of_an_unknown_service() -> None:
    async with estimator_server() as server, server.channel() as channel:
        assert (await error_of(health_of(channel, "linkbound.Other"))).code == "NOT_FOUND"


async def test_health_says_not_serving_before_the_start() -> None:
    built = await build_server(ServerSettings(), lambda _draining: [], error_domain="test.linkbound")
    await built.server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{built.port}") as channel:
        assert await health_of(channel, "") == NOT_SERVING
    await built.server.stop(0)


async def test_watchers_learn_of_the_shutdown_and_do_not_hold_it_up() -> None:
    settings = ServerSettings(grace_seconds=600.0, reflection=True)
    async with estimator_server(settings) as server, server.channel() as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(service=""))
        assert (await watch.read()).status == SERVING
        reflection = reflection_stub(channel)
        idle = reflection.ServerReflectionInfo()
        await idle.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        await idle.read()
        server.stop.set()
        assert (await watch.read()).status == NOT_SERVING
        assert await watch.read() is grpc.aio.EOF
        async with asyncio.timeout(PATIENCE_SECONDS):
            await server.task


async def test_probes_are_logged_quietly() -> None:
    with capture_logs() as logs:
        async with estimator_server() as server, server.channel() as channel:
            await health_of(channel, "")
            await error_of(health_of(channel, "linkbound.Other"))
    lines = [(line["code"], line["log_level"]) for line in logs if line["event"] == "rpc_finished"]
    assert lines == [("OK", "debug"), ("NOT_FOUND", "info")]


async def services_by_reflection(channel: grpc.aio.Channel) -> set[str]:
    stub = reflection_stub(channel)
    call = stub.ServerReflectionInfo()
    await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    response = await call.read()
    await call.done_writing()
    return {service.name for service in response.list_services_response.service}


async def test_reflection_lists_the_services_where_it_is_on() -> None:
    async with estimator_server(ServerSettings(reflection=True)) as server, server.channel() as channel:
        assert await services_by_reflection(channel) == {
            *ESTIMATOR_SERVICES[1:],
            "grpc.health.v1.Health",
            "grpc.reflection.v1alpha.ServerReflection",
        }


async def test_reflection_is_off_by_default() -> None:
    async with estimator_server() as server, server.channel() as channel:
        assert (await error_of(refused_reflection(channel))).code == "UNIMPLEMENTED"
