"""Which remote calls are tried again, and how long an answer is waited for."""

from __future__ import annotations

import threading
from datetime import timedelta

import grpc
import pytest

from linkbound import (
    UNSET,
    AsyncEstimatorClient,
    AsyncIngestClient,
    DeadlineExceededError,
    Error,
    EstimatorClient,
    IngestClient,
    Timeout,
    TrainingStep,
    UnavailableError,
)
from tests.congruence.scripted import NOBODY_LISTENS, scripted

STEPS = [TrainingStep(subject="s", node_count=1, step_seconds=1.0)]
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


class TestRetries:
    def test_a_read_is_tried_again_until_it_is_answered(self) -> None:
        with scripted(UNAVAILABLE, UNAVAILABLE) as (target, script), EstimatorClient(target) as client:
            assert client.get_model("m").model_id == "m"
        assert script.calls == ["GetModel"] * 3

    async def test_the_asyncio_client_tries_again_too(self) -> None:
        with scripted(UNAVAILABLE, UNAVAILABLE) as (target, script):
            async with AsyncEstimatorClient(target) as client:
                assert (await client.get_model("m")).model_id == "m"
        assert script.calls == ["GetModel"] * 3

    def test_an_append_is_tried_again_under_its_number(self) -> None:
        with scripted(UNAVAILABLE, UNAVAILABLE) as (target, script), IngestClient(target) as client:
            stored = client.append("r", writer_id="w", sequence_number=7, records=STEPS)
        assert stored.committed_sequence_number == 7
        assert len(script.calls) == 3

    def test_a_creation_is_tried_again(self) -> None:
        with scripted(UNAVAILABLE, UNAVAILABLE) as (target, script), IngestClient(target) as client:
            client.create_run("r")
        assert script.calls == ["CreateRun"] * 3

    def test_it_stops_after_five_attempts(self) -> None:
        with (
            scripted(*[UNAVAILABLE] * 9) as (target, script),
            EstimatorClient(target) as client,
            pytest.raises(UnavailableError) as caught,
        ):
            client.get_model("m")
        assert len(script.calls) == 5
        assert target in str(caught.value)

    def test_a_deletion_is_not_tried_again(self) -> None:
        with (
            scripted(UNAVAILABLE) as (target, script),
            IngestClient(target) as client,
            pytest.raises(UnavailableError),
        ):
            client.delete_run("r")
        assert script.calls == ["DeleteRun"]

    @pytest.mark.parametrize(
        "code",
        [
            grpc.StatusCode.INTERNAL,
            grpc.StatusCode.UNKNOWN,
            grpc.StatusCode.DEADLINE_EXCEEDED,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            grpc.StatusCode.ABORTED,
        ],
    )
    def test_nothing_else_is_tried_again(self, code: grpc.StatusCode) -> None:
        with (
            scripted(code) as (target, script),
            EstimatorClient(target) as client,
            pytest.raises(Error) as caught,
        ):
            client.get_model("m")
        assert script.calls == ["GetModel"]
        assert caught.value.code == code.name


class TestDeadlines:
    @pytest.mark.parametrize(("of_client", "of_call"), [(0.2, UNSET), (UNSET, 0.2), (300, timedelta(seconds=0.2))])
    def test_a_late_answer_is_not_waited_for(self, of_client: Timeout, of_call: Timeout) -> None:
        with (
            scripted(None) as (target, _),
            EstimatorClient(target, timeout_seconds=of_client) as client,
            pytest.raises(DeadlineExceededError) as caught,
        ):
            client.get_model("m", timeout_seconds=of_call)
        assert target in str(caught.value)

    async def test_a_late_answer_is_not_waited_for_on_an_event_loop(self) -> None:
        with scripted(None) as (target, _):
            async with AsyncEstimatorClient(target) as client:
                with pytest.raises(DeadlineExceededError):
                    await client.get_model("m", timeout_seconds=0.2)

    def test_for_ever_is_longer_than_the_default(self) -> None:
        with scripted(None) as (target, script), EstimatorClient(target) as client:
            threading.Timer(0.2, script.released.set).start()
            assert client.get_model("m", timeout_seconds=None).model_id == "m"

    def test_a_wrong_address_fails_without_waiting_for_the_deadline(self) -> None:
        with (
            EstimatorClient(NOBODY_LISTENS, timeout_seconds=300) as client,
            pytest.raises(UnavailableError, match=NOBODY_LISTENS) as caught,
        ):
            client.get_model("m")
        assert isinstance(caught.value.__cause__, grpc.RpcError)

    async def test_a_wrong_address_fails_on_an_event_loop(self) -> None:
        async with AsyncIngestClient(NOBODY_LISTENS, timeout_seconds=300) as client:
            with pytest.raises(UnavailableError, match=NOBODY_LISTENS):
                await client.get_run("r")
