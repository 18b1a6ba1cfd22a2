"""Health of a server, per full service name (`grpc.health.v1`)."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING

OVERALL = ""
"""The name under which a probe asks for the server as a whole."""


class HealthReporter:
    """Says for each of `services`, and for the server as a whole, whether it serves. NOT_SERVING at first."""

    def __init__(self, services: Sequence[str]) -> None:
        self._services = (OVERALL, *services)
        self._servicer = health.aio.HealthServicer()

    async def add_to(self, server: grpc.aio.Server) -> None:
        """Register with `server`, before it starts."""
        await self.not_serving()
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def serving(self) -> None:
        """Everything serves."""
        await self._set(_SERVING)

    async def not_serving(self) -> None:
        """Nothing serves, for now."""
        await self._set(_NOT_SERVING)

    async def report(self, service: str, *, serves: bool) -> None:
        """Whether one of the services serves, while the others go on as they are."""
        await self._servicer.set(service, _SERVING if serves else _NOT_SERVING)

    async def shut_down(self) -> None:
        """Nothing serves any more; later changes are ignored."""
        await self._servicer.enter_graceful_shutdown()

    async def _set(self, status: int) -> None:
        for service in self._services:
            await self._servicer.set(service, status)
