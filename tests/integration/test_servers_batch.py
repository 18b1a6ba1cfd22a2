"""A batch as any client may send it: every question by itself, as if it had been the only one."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from structlog.testing import capture_logs

from estimator_service.catalog.directory import SHIPPED_DIRECTORY, Catalog
from estimator_service.server import serve as serve_estimator
from estimator_service.service import Estimator
from estimator_service.transport.batch import TURN_SECONDS
from linkbound.client.remote.errors import error_of_call, error_of_status
from linkbound.domain.errors import InternalError, InvalidArgumentError
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.estimator.v1.estimator_service_pb2 import (
    BatchAnswer,
    BatchEstimateRequest,
    BatchQuestion,
    EstimateCollectiveRequest,
    EstimatePrefillRequest,
    EstimateTrainingStepRequest,
)
from linkbound.estimator.v1.estimator_service_pb2_grpc import EstimatorServiceStub
from linkbound.estimator.v1.workload_pb2 import PrefillWorkload
from linkbound.types.v1.collective_pb2 import COLLECTIVE_KIND_ALL_REDUCE
from linkbound.types.v1.link_pb2 import Link
from serving.settings import ServerSettings
from tests.integration.servers import estimator_server, running

LINK = Link(line_rate_bits_per_second=200 * 10**9)


def prefill(model: str = "glm-5.3", **fields: Any) -> EstimatePrefillRequest:
    workload = PrefillWorkload(**{"model": model, "tensor_parallel_size": 8, "prompt_tokens": 8192, **fields})
    return EstimatePrefillRequest(workload=workload, link=LINK)


COLLECTIVE = EstimateCollectiveRequest(kind=COLLECTIVE_KIND_ALL_REDUCE, rank_count=4, link=LINK)
SINGLES: list[tuple[str, str, Message]] = [
    ("prefill", "EstimatePrefill", prefill()),
    ("prefill", "EstimatePrefill", prefill(tensor_parallel_size=-1, prompt_tokens=0)),
    ("collective", "EstimateCollective", COLLECTIVE),
    ("prefill", "EstimatePrefill", prefill("glm-5.4")),
    ("prefill", "EstimatePrefill", prefill("\x00")),
    ("training_step", "EstimateTrainingStep", EstimateTrainingStepRequest()),
    ("prefill", "EstimatePrefill", prefill(tensor_parallel_size=7)),
    ("prefill", "EstimatePrefill", prefill("x" * 5000)),
]
"""Questions with the method that answers each alone."""


def batch_of(*contents: tuple[str, Message]) -> BatchEstimateRequest:
    questions = []
    for name, content in contents:
        arm: dict[str, Any] = {name: content}
        questions.append(BatchQuestion(**arm))
    return BatchEstimateRequest(questions=questions)


async def alone(channel: grpc.aio.Channel, name: str, method: str, question: Message) -> BatchAnswer:
    """What the question is answered by itself."""
    stub: Any = EstimatorServiceStub(channel)
    arm: dict[str, Any]
    try:
        arm = {name: await getattr(stub, method)(question)}
    except grpc.aio.AioRpcError as failure:
        call: Any = failure
        status = rpc_status.from_call(call)
        assert isinstance(status, Status)
        arm = {"error": status}
    return BatchAnswer(**arm)


async def test_each_question_is_answered_as_it_is_alone() -> None:
    async with estimator_server() as server, server.channel() as channel:
        stub: Any = EstimatorServiceStub(channel)
        with capture_logs() as lines:
            answer = await stub.BatchEstimate(batch_of(*((name, content) for name, _, content in SINGLES)))
        assert list(answer.answers) == [await alone(channel, *single) for single in SINGLES]
    assert [one.WhichOneof("answer") for one in answer.answers].count("error") == 6
    (line,) = [line for line in lines if line["event"] == "rpc_finished"]
    assert (line["code"], line["rows"]) == ("OK", len(SINGLES))


async def test_a_question_of_no_kind_is_refused_by_itself() -> None:
    request = BatchEstimateRequest(questions=[BatchQuestion(), BatchQuestion(prefill=prefill())])
    async with estimator_server() as server, server.channel() as channel:
        stub: Any = EstimatorServiceStub(channel)
        answer = await stub.BatchEstimate(request)
    error = error_of_status(answer.answers[0].error)
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == ["question"]
    assert answer.answers[1].HasField("prefill")


@pytest.mark.parametrize("question_count", [0, 1001])
async def test_a_batch_has_1_to_1000_questions(question_count: int) -> None:
    async with estimator_server() as server, server.channel() as channel:
        stub: Any = EstimatorServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.BatchEstimate(batch_of(*[("prefill", prefill())] * question_count))
    error = error_of_call(caught.value, "the server")
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == ["questions"]


class Slow(Estimator):
    """Takes longer for each question than a batch may keep others waiting, and notes in which turn of the loop."""

    def __init__(self) -> None:
        super().__init__(Catalog(SHIPPED_DIRECTORY))
        self.turn = 0
        self.turns_of_questions: list[int] = []

    def estimate_prefill(self, request: PrefillRequest) -> PrefillEstimate:
        self.turns_of_questions.append(self.turn)
        time.sleep(TURN_SECONDS)
        return super().estimate_prefill(request)

    async def count_turns(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.turn += 1


async def test_others_have_their_turn_between_questions_that_take_long() -> None:
    estimator = Slow()
    async with (
        running(
            lambda on_started, stop: serve_estimator(ServerSettings(), estimator, on_started=on_started, stop=stop)
        ) as server,
        server.channel() as channel,
    ):
        stub: Any = EstimatorServiceStub(channel)
        counting = asyncio.ensure_future(estimator.count_turns())
        await stub.BatchEstimate(batch_of(*[("prefill", prefill())] * 20))
        counting.cancel()
    assert len(set(estimator.turns_of_questions)) == len(estimator.turns_of_questions) == 20


class Faulty(Estimator):
    """Has a fault that shows for one model."""

    def estimate_prefill(self, request: PrefillRequest) -> PrefillEstimate:
        if request.workload.model == "glm-5":
            raise ZeroDivisionError("a secret of the code")
        return super().estimate_prefill(request)


async def test_a_fault_is_one_question_s_and_goes_to_the_log() -> None:
    estimator = Faulty(Catalog(SHIPPED_DIRECTORY))
    async with (
        running(
            lambda on_started, stop: serve_estimator(ServerSettings(), estimator, on_started=on_started, stop=stop)
        ) as server,
        server.channel() as channel,
    ):
        stub: Any = EstimatorServiceStub(channel)
        with capture_logs() as lines:
            answer = await stub.BatchEstimate(
                batch_of(("prefill", prefill()), ("prefill", prefill("glm-5")), ("collective", COLLECTIVE))
            )
    assert [one.WhichOneof("answer") for one in answer.answers] == ["prefill", "error", "collective"]
    error = error_of_status(answer.answers[1].error)
    assert isinstance(error, InternalError)
    assert "secret" not in str(answer)
    (fault,) = [line for line in lines if line["event"] == "rpc_failed"]
    (finished,) = [line for line in lines if line["event"] == "rpc_finished"]
    assert isinstance(fault["exc_info"], ZeroDivisionError)
    assert finished["request_id"] == error.metadata["requestId"]
