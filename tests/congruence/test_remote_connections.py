"""Remote targets, waiting for a server, and closing. Against real servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from linkbound import (
    AsyncEstimatorClient,
    AsyncIngestClient,
    DeadlineExceededError,
    EstimatorClient,
    FailedPreconditionError,
    IngestClient,
    InvalidArgumentError,
    SeriesDescriptor,
    UnimplementedError,
)
from tests.congruence.scripted import NOBODY_LISTENS, scripted
from tests.congruence.servers import ServerThread


class TestTargets:
    def test_a_unix_socket(self, tmp_path: Path) -> None:
        with scripted(address=f"unix:{tmp_path}/socket") as (target, script), EstimatorClient(target) as client:
            assert client.get_model("m").model_id == "m"
        assert script.calls == ["GetModel"]

    @pytest.mark.parametrize("client", [EstimatorClient, AsyncEstimatorClient, IngestClient, AsyncIngestClient])
    def test_nonsense(self, client: Callable[[str], object]) -> None:
        with pytest.raises(InvalidArgumentError, match="target"):
            client("somewhere")


class TestReadiness:
    def test_a_server_is_waited_for(self, estimator: ServerThread) -> None:
        with EstimatorClient(estimator.target) as client:
            client.wait_until_ready(60)

    async def test_a_server_is_waited_for_on_an_event_loop(self, estimator: ServerThread) -> None:
        async with AsyncEstimatorClient(estimator.target) as client:
            await client.wait_until_ready(60)

    def test_this_process_is_ready(self) -> None:
        with EstimatorClient() as client:
            client.wait_until_ready(60)

    def test_nobody_is_never_ready(self) -> None:
        with EstimatorClient(NOBODY_LISTENS) as client, pytest.raises(DeadlineExceededError) as caught:
            client.wait_until_ready(0.3)
        assert caught.value.reason == "NOT_READY"
        assert NOBODY_LISTENS in str(caught.value)

    async def test_nobody_is_never_ready_on_an_event_loop(self) -> None:
        async with AsyncEstimatorClient(NOBODY_LISTENS) as client:
            with pytest.raises(DeadlineExceededError):
                await client.wait_until_ready(0.3)

    def test_another_service_at_the_address_is_not_it(self, estimator: ServerThread) -> None:
        with IngestClient(estimator.target) as client, pytest.raises(DeadlineExceededError):
            client.wait_until_ready(0.3)

    def test_a_server_without_health_says_so(self) -> None:
        with scripted() as (target, _), EstimatorClient(target) as client, pytest.raises(UnimplementedError):
            client.wait_until_ready(60)


class TestClosing:
    @pytest.mark.parametrize("target", ["local:", NOBODY_LISTENS])
    def test_a_closed_client_says_so(self, target: str) -> None:
        client = EstimatorClient(target)
        client.close()
        client.close()
        for use in (
            lambda: client.get_model("m"),
            lambda: list(client.list_models()),
            lambda: client.wait_until_ready(1),
        ):
            with pytest.raises(FailedPreconditionError) as caught:
                use()
            assert caught.value.reason == "CLIENT_CLOSED"

    @pytest.mark.parametrize("target", ["local:", NOBODY_LISTENS])
    async def test_a_closed_asyncio_client_says_so(self, target: str) -> None:
        client = AsyncIngestClient(target)
        await client.close()
        await client.close()
        with pytest.raises(FailedPreconditionError):
            await client.get_run("r")
        with pytest.raises(FailedPreconditionError):
            client.writer("r", "w", [SeriesDescriptor(metric="m", node="n")])

    def test_a_given_channel_is_used_and_stays_open(self, estimator: ServerThread) -> None:
        with grpc.insecure_channel(estimator.target) as channel:
            with EstimatorClient(channel=channel) as client:
                assert client.get_model("glm-5.3").model_id == "glm-5.3"
            with EstimatorClient(channel=channel) as client:
                assert client.get_model("glm-5.2").model_id == "glm-5.2"

    async def test_a_given_asyncio_channel_is_used_and_stays_open(self, estimator: ServerThread) -> None:
        async with grpc.aio.insecure_channel(estimator.target) as channel:
            for model in ("glm-5.3", "glm-5.2"):
                async with AsyncEstimatorClient(channel=channel) as client:
                    assert (await client.get_model(model)).model_id == model

    def test_a_given_channel_cannot_carry_a_blocking_sample_writer(self, estimator: ServerThread) -> None:
        with (
            grpc.insecure_channel(estimator.target) as channel,
            IngestClient(channel=channel) as client,
            pytest.raises(FailedPreconditionError) as caught,
        ):
            client.writer("r", "w", [SeriesDescriptor(metric="m", node="n")])
        assert caught.value.reason == "CHANNEL_GIVEN"
