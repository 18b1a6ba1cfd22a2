"""A client with several servers asks them in turn, and goes on with those that are left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.server import serve as serve_estimator
from estimator_service.service import Estimator
from linkbound import AsyncEstimatorClient, EstimatorClient
from linkbound.domain.catalog import Model
from serving.lifecycle import OnStarted
from serving.settings import ServerSettings
from tests.integration.servers import PATIENCE_SECONDS, Running, running


class Counting(Estimator):
    """Counts the models that were asked for."""

    def __init__(self) -> None:
        super().__init__(Catalog(SHIPPED_DIRECTORY))
        self.call_count = 0

    def get_model(self, model_id: str) -> Model:
        self.call_count += 1
        return super().get_model(model_id)


async def serve(settings: ServerSettings, estimator: Estimator, on_started: OnStarted, stop: asyncio.Event) -> None:
    await serve_estimator(settings, estimator, on_started=on_started, stop=stop)


@asynccontextmanager
async def replicas(count: int, settings: ServerSettings) -> AsyncIterator[list[tuple[Counting, Running]]]:
    async with AsyncExitStack() as stack:
        started = []
        for _ in range(count):
            estimator = Counting()
            server = await stack.enter_async_context(running(partial(serve, settings, estimator)))
            started.append((estimator, server))
        yield started


def target_of(servers: list[tuple[Counting, Running]]) -> str:
    return "ipv4:" + ",".join(server.target for _, server in servers)


async def until_all_are_asked(client: AsyncEstimatorClient, servers: list[tuple[Counting, Running]]) -> None:
    """Call until each server was asked: connections are made one after another."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not all(estimator.call_count for estimator, _ in servers):
            await client.get_model("glm-5.3")


async def test_each_call_goes_to_the_next_server() -> None:
    async with replicas(3, ServerSettings()) as servers, AsyncEstimatorClient(target_of(servers)) as client:
        await until_all_are_asked(client, servers)
        earlier = [estimator.call_count for estimator, _ in servers]
        for _ in range(30):
            await client.get_model("glm-5.3")
        assert [e.call_count - count for (e, _), count in zip(servers, earlier, strict=True)] == [10, 10, 10]


async def test_a_blocking_client_does_the_same() -> None:
    def ask(target: str) -> None:
        with EstimatorClient(target) as client:
            for _ in range(100):
                client.get_model("glm-5.3")

    async with replicas(2, ServerSettings()) as servers:
        await asyncio.to_thread(ask, target_of(servers))
        assert sum(estimator.call_count for estimator, _ in servers) == 100
        assert all(estimator.call_count for estimator, _ in servers)


async def test_calls_go_on_when_a_server_stops() -> None:
    async with replicas(2, ServerSettings()) as servers, AsyncEstimatorClient(target_of(servers)) as client:
        await until_all_are_asked(client, servers)
        (_, first), (second, _) = servers
        first.stop.set()
        await first.task
        earlier = second.call_count
        for _ in range(10):
            await client.get_model("glm-5.3")
        assert second.call_count == earlier + 10


async def test_an_old_connection_is_replaced_while_calls_go_on() -> None:
    settings = ServerSettings(connection_age_seconds=1.0)
    async with replicas(1, settings) as servers, AsyncEstimatorClient(target_of(servers)) as client:
        give_up = asyncio.get_running_loop().time() + 3
        while asyncio.get_running_loop().time() < give_up:
            await client.get_model("glm-5.3")
