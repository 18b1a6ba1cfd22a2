"""Errors of remote calls, as the clients raise them. Against real servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from linkbound import (
    AsyncEstimatorClient,
    AsyncIngestClient,
    DeadlineExceededError,
    EstimatorClient,
    FailedPreconditionError,
    IngestClient,
    InternalError,
    NotFoundError,
    UnavailableError,
    UnimplementedError,
)
from tests.congruence.scripted import NOBODY_LISTENS, scripted
from tests.congruence.servers import ServerThread


class TestErrors:
    def test_an_error_of_the_service_carries_its_request_id_and_the_grpc_error(self, estimator: ServerThread) -> None:
        with EstimatorClient(estimator.target) as client, pytest.raises(NotFoundError) as caught:
            client.get_model("glm-5.33")
        error = caught.value
        assert error.request_id
        assert isinstance(error.__cause__, grpc.RpcError)
        assert error.near_names[0] == "glm-5.3"
        assert (error.resource.type, error.resource.name) == ("model", "glm-5.33")

    async def test_so_does_that_of_the_asyncio_client(self, estimator: ServerThread) -> None:
        async with AsyncEstimatorClient(estimator.target) as client:
            with pytest.raises(NotFoundError) as caught:
                await client.get_hardware("dgx-sparc")
        assert caught.value.request_id
        assert isinstance(caught.value.__cause__, grpc.aio.AioRpcError)

    def test_a_method_that_the_service_does_not_know_is_unimplemented(self, estimator: ServerThread) -> None:
        with IngestClient(estimator.target) as client, pytest.raises(UnimplementedError):
            client.get_run("r")

    def test_a_status_without_details_maps_by_its_code(self) -> None:
        with (
            scripted(grpc.StatusCode.INTERNAL) as (target, _),
            EstimatorClient(target) as client,
            pytest.raises(InternalError, match="as the script says") as caught,
        ):
            client.get_model("m")
        assert (caught.value.reason, caught.value.metadata) == ("INTERNAL", {})

    async def test_cancelling_a_task_stays_a_cancellation(self) -> None:
        with scripted(None) as (target, script):
            async with AsyncEstimatorClient(target) as client:
                asking = asyncio.create_task(client.get_model("m", timeout_seconds=60))
                await asyncio.to_thread(script.called.wait)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking

    async def test_a_call_under_way_of_a_client_that_is_closed_is_not_a_cancellation_of_the_caller(self) -> None:
        with scripted(None) as (target, script):
            client = AsyncEstimatorClient(target)
            asking = asyncio.create_task(client.get_model("m", timeout_seconds=60))
            await asyncio.to_thread(script.called.wait)
            await client.close()
            with pytest.raises(FailedPreconditionError) as caught:
                await asking
            assert caught.value.reason == "CLIENT_CLOSED"

    @pytest.mark.parametrize(
        "first_answer",
        [lambda client: anext(client.watch_runs()), lambda client: client.query_sql("SELECT 1")],
        ids=["watch_runs", "query_sql"],
    )
    async def test_nor_is_a_stream_under_way(
        self, first_answer: Callable[[AsyncIngestClient], Awaitable[object]]
    ) -> None:
        with scripted(None) as (target, script):
            client = AsyncIngestClient(target)
            asking = asyncio.ensure_future(first_answer(client))
            await asyncio.to_thread(script.called.wait)
            await client.close()
            with pytest.raises(FailedPreconditionError) as caught:
                await asking
            assert caught.value.reason == "CLIENT_CLOSED"

    async def test_a_given_channel_is_named_as_such(self) -> None:
        with grpc.insecure_channel(NOBODY_LISTENS) as channel, EstimatorClient(channel=channel) as client:
            with pytest.raises(UnavailableError, match=r"^the given channel: "):
                client.get_model("m")
            with pytest.raises(DeadlineExceededError, match=r"^the given channel takes no calls"):
                client.wait_until_ready(0.1)
        async with (
            grpc.aio.insecure_channel(NOBODY_LISTENS) as aio_channel,
            AsyncEstimatorClient(channel=aio_channel) as aio_client,
        ):
            with pytest.raises(UnavailableError, match=r"^the given channel: "):
                await aio_client.get_model("m")

    def test_many_threads_share_one_client(self, estimator: ServerThread) -> None:
        with EstimatorClient(estimator.target) as client, ThreadPoolExecutor(8) as pool:
            models = list(pool.map(client.get_model, ["glm-5.3", "glm-5.2"] * 20))
        assert [model.model_id for model in models] == ["glm-5.3", "glm-5.2"] * 20
