"""The estimator's server as any client sees it: answers, bad input, and what happens around every call."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest
import pytest_asyncio
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from structlog.testing import capture_logs

from estimator_service.service import default_estimator
from linkbound.client.remote.errors import error_of_call
from linkbound.convert import (
    catalog_service,
    collective_estimate,
    decode,
    link_comparison,
    prefill,
    tp_projection,
    training,
)
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.decode import DecodeRequest
from linkbound.domain.errors import Error, InvalidArgumentError, NotFoundError, UnimplementedError
from linkbound.domain.link import Link
from linkbound.domain.link_comparison import LinkComparisonRequest
from linkbound.domain.paging import PageRequest
from linkbound.domain.prefill import PrefillRequest
from linkbound.domain.tp_projection import TpProjectionRequest
from linkbound.domain.training import TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload
from linkbound.estimator.v1.catalog_service_pb2 import GetHardwareRequest, GetModelRequest, ListModelsRequest
from linkbound.estimator.v1.catalog_service_pb2_grpc import CatalogServiceStub
from linkbound.estimator.v1.estimator_service_pb2 import (
    CompareLinksRequest,
    EstimateCollectiveRequest,
    EstimateDecodeRequest,
    EstimatePrefillRequest,
    EstimateTrainingStepRequest,
    ProjectTpSizesRequest,
)
from linkbound.estimator.v1.estimator_service_pb2_grpc import EstimatorServiceStub
from tests.integration.servers import Running, estimator_server

if TYPE_CHECKING:
    # These exist for type checkers only.
    from linkbound.estimator.v1.catalog_service_pb2_grpc import CatalogServiceAsyncStub
    from linkbound.estimator.v1.estimator_service_pb2_grpc import EstimatorServiceAsyncStub

ESTIMATOR = default_estimator()
PREFILL = PrefillWorkload(model="glm-5.3", tensor_parallel_size=16, prompt_tokens=8192, request_count=2)
FAST = Link(line_rate_bits_per_second=200_000_000_000)
SLOW = Link(line_rate_bits_per_second=100_000_000_000, roce_mtu_bytes=4096)
PREFILL_REQUEST = PrefillRequest(workload=PREFILL, link=FAST, to_link=SLOW)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Running]:
    async with estimator_server() as running:
        yield running


@pytest_asyncio.fixture
async def channel(server: Running) -> AsyncIterator[grpc.aio.Channel]:
    async with server.channel() as channel:
        yield channel


@pytest.fixture
def estimator(channel: grpc.aio.Channel) -> EstimatorServiceAsyncStub:
    return EstimatorServiceStub(channel)


@pytest.fixture
def catalog(channel: grpc.aio.Channel) -> CatalogServiceAsyncStub:
    return CatalogServiceStub(channel)


async def error_of(call: Any) -> Error:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return error_of_call(caught.value, "the server")


async def test_every_question_is_answered_as_in_process(estimator: EstimatorServiceAsyncStub) -> None:
    prefill_answer = await estimator.EstimatePrefill(prefill.prefill_request_to_proto(PREFILL_REQUEST))
    assert prefill.prefill_estimate_from_proto(prefill_answer) == ESTIMATOR.estimate_prefill(PREFILL_REQUEST)

    decode_request = DecodeRequest(workload=DecodeWorkload(model="glm-5.3", tensor_parallel_size=8), link=FAST)
    decode_answer = await estimator.EstimateDecode(decode.decode_request_to_proto(decode_request))
    assert decode.decode_estimate_from_proto(decode_answer) == ESTIMATOR.estimate_decode(decode_request)

    collective_request = CollectiveRequest(kind=CollectiveKind.ALL_REDUCE, rank_count=2, message_bytes=1, link=FAST)
    collective_answer = await estimator.EstimateCollective(
        collective_estimate.collective_request_to_proto(collective_request)
    )
    assert collective_estimate.collective_estimate_from_proto(collective_answer) == ESTIMATOR.estimate_collective(
        collective_request
    )

    step_request = TrainingStepRequest(gradient_bytes=10**9, rank_count=4, link=FAST, compute_step_seconds=1.0)
    step_answer = await estimator.EstimateTrainingStep(training.training_step_request_to_proto(step_request))
    assert training.training_step_estimate_from_proto(step_answer) == ESTIMATOR.estimate_training_step(step_request)

    comparison_request = LinkComparisonRequest(prefill=PREFILL, old_link=FAST, new_link=SLOW, baseline_seconds=20.0)
    comparison_answer = await estimator.CompareLinks(
        link_comparison.link_comparison_request_to_proto(comparison_request)
    )
    assert link_comparison.link_comparison_from_proto(comparison_answer) == ESTIMATOR.compare_links(comparison_request)

    sizes_request = TpProjectionRequest(
        workload=PREFILL, baseline_ttft_seconds=20.0, link=FAST, to_link=SLOW, tensor_parallel_sizes=(2, 4, 3)
    )
    sizes_answer = await estimator.ProjectTpSizes(tp_projection.tp_projection_request_to_proto(sizes_request))
    assert tp_projection.tp_projection_from_proto(sizes_answer) == ESTIMATOR.project_tp_sizes(sizes_request)


async def test_the_catalogue_is_answered_as_in_process(catalog: CatalogServiceAsyncStub) -> None:
    convert = catalog_service
    models = await catalog.ListModels(ListModelsRequest(page_size=2))
    assert convert.list_models_response_from_proto(models) == ESTIMATOR.list_models(PageRequest(page_size=2))
    assert models.next_page_token

    model = await catalog.GetModel(GetModelRequest(model="models/glm-5.3"))
    assert convert.get_model_response_from_proto(model) == ESTIMATOR.get_model("glm-5.3")

    hardware = await catalog.ListHardware(convert.list_hardware_request_to_proto(PageRequest()))
    page = convert.list_hardware_response_from_proto(hardware)
    assert page == ESTIMATOR.list_hardware(PageRequest())

    first = page.entries[0]
    one = await catalog.GetHardware(GetHardwareRequest(hardware=f"hardware/{first.hardware_id}"))
    assert convert.get_hardware_response_from_proto(one) == first


def prefill_message(**numbers: int) -> EstimatePrefillRequest:
    message = prefill.prefill_request_to_proto(PREFILL_REQUEST)
    for name, number in numbers.items():
        setattr(message.workload, name, number)
    return message


@pytest.mark.parametrize(
    ("numbers", "paths"),
    [
        ({"prompt_tokens": 0}, ["workload.prompt_tokens"]),
        ({"prompt_tokens": -1}, ["workload.prompt_tokens"]),
        ({"prompt_tokens": 10**18}, ["workload.prompt_tokens"]),
        ({"tensor_parallel_size": 0}, ["workload.tensor_parallel_size"]),
        ({"tensor_parallel_size": -(2**31)}, ["workload.tensor_parallel_size"]),
        ({"tensor_parallel_size": 2**31 - 1}, ["workload.tensor_parallel_size"]),
        ({"request_count": 0}, ["workload.request_count"]),
        ({"max_num_batched_tokens": 0}, ["workload.max_num_batched_tokens"]),
        (
            {"tensor_parallel_size": 0, "prompt_tokens": -5, "request_count": 10**6},
            ["workload.tensor_parallel_size", "workload.prompt_tokens", "workload.request_count"],
        ),
    ],
)
async def test_numbers_out_of_range(
    estimator: EstimatorServiceAsyncStub, numbers: dict[str, int], paths: list[str]
) -> None:
    error = await error_of(estimator.EstimatePrefill(prefill_message(**numbers)))
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == paths
    for violation, number in zip(error.field_violations, numbers.values(), strict=True):
        assert str(number) in violation.description


@pytest.mark.parametrize("number", [0.0, -1.0, math.nan, math.inf, -math.inf, 1e18])
async def test_seconds_that_are_none(estimator: EstimatorServiceAsyncStub, number: float) -> None:
    message = prefill.prefill_request_to_proto(PREFILL_REQUEST)
    message.baseline_ttft_seconds = number
    error = await error_of(estimator.EstimatePrefill(message))
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == ["baseline_ttft_seconds"]


@pytest.mark.parametrize("name", ["", "Ünïcode-模型", "models/", "x" * 10_000, "glm\n5.3"])
async def test_names_that_are_none(estimator: EstimatorServiceAsyncStub, name: str) -> None:
    message = prefill.prefill_request_to_proto(PREFILL_REQUEST)
    message.workload.model = name
    error = await error_of(estimator.EstimatePrefill(message))
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == ["workload.model"]
    assert error.message.isascii()


@pytest.mark.parametrize(
    ("method", "request_message", "paths"),
    [
        (
            "EstimateDecode",
            EstimateDecodeRequest(),
            ["workload.model", "workload.tensor_parallel_size", "link.line_rate_bits_per_second"],
        ),
        (
            "EstimateCollective",
            EstimateCollectiveRequest(),
            ["kind", "rank_count", "link.line_rate_bits_per_second"],
        ),
        (
            "EstimateTrainingStep",
            EstimateTrainingStepRequest(),
            ["gradient_bytes", "rank_count", "link.line_rate_bits_per_second", "compute_step_seconds"],
        ),
        (
            "CompareLinks",
            CompareLinksRequest(),
            ["old_link.line_rate_bits_per_second", "new_link.line_rate_bits_per_second"],
        ),
        (
            "ProjectTpSizes",
            ProjectTpSizesRequest(),
            [
                "workload.model",
                "workload.tensor_parallel_size",
                "workload.prompt_tokens",
                "baseline_ttft_seconds",
                "link.line_rate_bits_per_second",
                "to_link.line_rate_bits_per_second",
                "tensor_parallel_sizes",
            ],
        ),
    ],
)
async def test_an_empty_request_is_answered_with_everything_it_lacks(
    estimator: EstimatorServiceAsyncStub, method: str, request_message: Message, paths: list[str]
) -> None:
    error = await error_of(getattr(estimator, method)(request_message))
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == paths


async def test_an_unknown_model_has_near_names(estimator: EstimatorServiceAsyncStub) -> None:
    message = prefill_message()
    message.workload.model = "models/glm-5.4"
    error = await error_of(estimator.EstimatePrefill(message))
    assert isinstance(error, NotFoundError)
    assert error.reason == "MODEL_NOT_FOUND"
    assert error.resource.name == "glm-5.4"
    assert "glm-5.3" in error.near_names


async def test_a_size_that_does_not_divide_the_heads_says_which(estimator: EstimatorServiceAsyncStub) -> None:
    error = await error_of(estimator.EstimatePrefill(prefill_message(tensor_parallel_size=7)))
    assert isinstance(error, InvalidArgumentError)
    (violation,) = error.field_violations
    assert violation.field == "workload.tensor_parallel_size"
    heads = ESTIMATOR.get_model("glm-5.3").attention_head_count
    assert "7" in violation.description
    assert str(heads) in violation.description


@pytest.mark.parametrize("request_message", [ListModelsRequest(page_size=-1), ListModelsRequest(page_token="nonsense")])
async def test_pages_that_are_none(catalog: CatalogServiceAsyncStub, request_message: ListModelsRequest) -> None:
    error = await error_of(catalog.ListModels(request_message))
    assert isinstance(error, InvalidArgumentError)
    assert len(error.field_violations) == 1


async def test_every_error_has_error_info_with_the_domain(estimator: EstimatorServiceAsyncStub) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await estimator.EstimatePrefill(EstimatePrefillRequest())
    status = rpc_status.from_call(cast("grpc.Call", caught.value))
    assert status is not None
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain) == ("INVALID_FIELD", "estimator.linkbound")
    assert len({detail.type_url for detail in status.details}) == len(status.details)


async def test_the_request_id_of_the_caller_comes_back(estimator: EstimatorServiceAsyncStub) -> None:
    call = estimator.EstimatePrefill(prefill_message(), metadata=[("x-request-id", "mine-1")])
    await call
    assert dict(await call.initial_metadata())["x-request-id"] == "mine-1"


@pytest.mark.parametrize("given", [None, "", "no spaces allowed", "x" * 129])
async def test_without_a_usable_request_id_there_is_a_new_one(
    estimator: EstimatorServiceAsyncStub, given: str | None
) -> None:
    metadata = [] if given is None else [("x-request-id", given)]
    call = estimator.EstimatePrefill(prefill_message(), metadata=metadata)
    await call
    request_id = dict(await call.initial_metadata())["x-request-id"]
    assert isinstance(request_id, str)
    assert len(request_id) == 32
    assert request_id != given


async def test_an_error_carries_the_request_id(estimator: EstimatorServiceAsyncStub) -> None:
    error = await error_of(estimator.EstimatePrefill(EstimatePrefillRequest(), metadata=[("x-request-id", "mine-2")]))
    assert error.request_id == "mine-2"


async def test_one_log_line_for_each_call(estimator: EstimatorServiceAsyncStub) -> None:
    message = prefill_message()
    with capture_logs() as logs:
        await estimator.EstimatePrefill(message, metadata=[("x-request-id", "good")])
        await error_of(estimator.EstimatePrefill(EstimatePrefillRequest(), metadata=[("x-request-id", "bad")]))
    good, bad = logs
    assert good.pop("duration_ns") > 0
    assert good == {
        "event": "rpc_finished",
        "log_level": "info",
        "rpc": "linkbound.estimator.v1.EstimatorService/EstimatePrefill",
        "code": "OK",
        "reason": "",
        "request_id": "good",
        "request_bytes": message.ByteSize(),
    }
    assert (bad["event"], bad["code"], bad["reason"]) == ("rpc_finished", "INVALID_ARGUMENT", "INVALID_FIELD")
    assert (bad["request_id"], bad["request_bytes"]) == ("bad", 0)


async def test_a_method_that_does_not_exist(channel: grpc.aio.Channel) -> None:
    call: Any = channel.unary_unary("/linkbound.estimator.v1.EstimatorService/Guess")
    with capture_logs() as logs:
        error = await error_of(call(b""))
    assert isinstance(error, UnimplementedError)
    assert [(line["event"], line["code"]) for line in logs] == [("rpc_finished", "UNIMPLEMENTED")]


async def test_bytes_that_are_no_message(channel: grpc.aio.Channel) -> None:
    call: Any = channel.unary_unary("/linkbound.estimator.v1.EstimatorService/EstimatePrefill")
    with capture_logs() as logs:
        error = await error_of(call(b"\xff\xff\xff"))
    assert isinstance(error, InvalidArgumentError)
    assert error.reason == "MALFORMED_MESSAGE"
    assert [(line["event"], line["code"], line["request_bytes"]) for line in logs] == [
        ("rpc_finished", "INVALID_ARGUMENT", 3)
    ]


async def test_a_message_that_is_too_large_is_refused_and_the_next_one_answered(
    channel: grpc.aio.Channel, estimator: EstimatorServiceAsyncStub
) -> None:
    call: Any = channel.unary_unary("/linkbound.estimator.v1.EstimatorService/EstimatePrefill")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(bytes(16 * 2**20 + 1))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (await estimator.EstimatePrefill(prefill_message())).sent_bytes_per_rank > 0
