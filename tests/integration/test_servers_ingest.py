"""The ingest service's server as any client sees it: runs, appends, comparisons."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import grpc
import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from ingest_service.transport.query_servicer import QueryServicer
from ingest_service.transport.store_threads import StoreThreads
from linkbound.client.remote.errors import error_of_call
from linkbound.convert import ingest_service, query_service, run_service
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import (
    AbortedError,
    AlreadyExistsError,
    DeadlineExceededError,
    Error,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    UnavailableError,
)
from linkbound.domain.estimate import Basis, Estimate
from linkbound.domain.metric import Metric, Spread
from linkbound.domain.prediction import PredictedValue, Prediction
from linkbound.domain.records import (
    AppendRequest,
    CollectiveResult,
    Event,
    LinkTest,
    MetricAggregate,
    Record,
    RequestRecord,
    TrainingStep,
)
from linkbound.domain.run import CreateRunRequest, RunRequest, RunRowCounts, RunState, SealRunRequest, Setting
from linkbound.ingest.v1.ingest_service_pb2 import AppendRequestRecordsRequest
from linkbound.ingest.v1.ingest_service_pb2_grpc import IngestServiceStub
from linkbound.ingest.v1.query_service_pb2 import CompareRunRequest, ListRequestRecordsRequest
from linkbound.ingest.v1.query_service_pb2_grpc import QueryServiceStub, add_QueryServiceServicer_to_server
from linkbound.ingest.v1.run_service_pb2 import (
    CreateRunRequest as CreateRunMessage,
)
from linkbound.ingest.v1.run_service_pb2 import (
    DeleteRunRequest,
    GetRunRequest,
    ListRunsRequest,
)
from linkbound.ingest.v1.run_service_pb2 import (
    SealRunRequest as SealRunMessage,
)
from linkbound.ingest.v1.run_service_pb2_grpc import RunServiceStub
from serving.builder import ServiceBinding
from serving.settings import ServerSettings
from tests.integration.servers import Running, ingest_server, service_server
from tests.new_store import laid

if TYPE_CHECKING:
    # These exist for type checkers only.
    from linkbound.ingest.v1.ingest_service_pb2_grpc import IngestServiceAsyncStub
    from linkbound.ingest.v1.query_service_pb2_grpc import QueryServiceAsyncStub
    from linkbound.ingest.v1.run_service_pb2_grpc import RunServiceAsyncStub

pytestmark = pytest.mark.storage

PREDICTION = Prediction(
    estimator_version="0.1.0",
    values=(
        PredictedValue(
            metric=Metric.TTFT_SECONDS,
            subject="P1",
            estimate=Estimate(lower=2.0, upper=3.0, lower_basis=Basis.FORMULA, upper_basis=Basis.FORMULA),
        ),
    ),
)
RUN = CreateRunRequest(
    run_id="study",
    display_name="Study – Größe",
    source="a study",
    settings=(Setting(key="engine", value="vllm"), Setting(key="link", value="200g")),
    prediction=PREDICTION,
)
RECORD = RequestRecord(
    subject="P1", round_index=0, request_index=0, prompt_tokens=8192, output_tokens=4, send_ns=5, ttft_ns=2_500_000_000
)
OF_EACH_KIND: dict[str, Record] = {
    "AppendRequestRecords": RECORD,
    "AppendMetricAggregates": MetricAggregate(metric=Metric.TTFT_SECONDS, subject="P2", value=Spread(mean=2.5)),
    "AppendCollectiveResults": CollectiveResult(
        subject="nccl", kind=CollectiveKind.ALL_REDUCE, rank_count=2, bus_bandwidth_bytes_per_second=2e10
    ),
    "AppendTrainingSteps": TrainingStep(subject="lora", node_count=2, step_seconds=3.0),
    "AppendLinkTests": LinkTest(subject="spark1 to spark2", tool="ib_write_bw", bits_per_second=1.1e11),
    "AppendEvents": Event(kind="clock_anchor", node="spark1", time_ns=1, time_unix_ns=2),
}


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with ingest_server(tmp_path) as running_server:
        yield running_server


@pytest_asyncio.fixture
async def channel(server: Running) -> AsyncIterator[grpc.aio.Channel]:
    async with server.channel() as opened:
        yield opened


@pytest.fixture
def runs(channel: grpc.aio.Channel) -> RunServiceAsyncStub:
    return RunServiceStub(channel)


@pytest.fixture
def ingest(channel: grpc.aio.Channel) -> IngestServiceAsyncStub:
    return IngestServiceStub(channel)


@pytest.fixture
def queries(channel: grpc.aio.Channel) -> QueryServiceAsyncStub:
    return QueryServiceStub(channel)


async def error_of(call: Any) -> Error:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return error_of_call(caught.value, "the server")


def append_message(number: int = 1, record: Record = RECORD, **changes: Any) -> Any:
    request = AppendRequest(run="study", writer_id="bench", sequence_number=number, records=(record,))
    return ingest_service.append_request_to_proto(attrs.evolve(request, **changes))


async def create(runs: RunServiceAsyncStub) -> None:
    await runs.CreateRun(run_service.create_run_request_to_proto(RUN))


async def test_a_run_from_its_creation_to_its_end(runs: RunServiceAsyncStub, ingest: IngestServiceAsyncStub) -> None:
    created = run_service.create_run_response_from_proto(
        await runs.CreateRun(run_service.create_run_request_to_proto(RUN))
    )
    assert (created.run_id, created.display_name, created.settings) == (RUN.run_id, RUN.display_name, RUN.settings)
    assert created.state is RunState.OPEN
    assert created.prediction is not None
    assert created.prediction.store_time is not None
    assert created.prediction.values == PREDICTION.values

    await ingest.AppendRequestRecords(append_message())
    details = run_service.run_details_from_proto(await runs.GetRun(GetRunRequest(run="runs/study")))
    assert details.run == created
    assert details.row_counts == RunRowCounts(request_record_count=1)

    page = run_service.list_runs_response_from_proto(await runs.ListRuns(ListRunsRequest()))
    assert [run.run_id for run in page.entries] == ["study"]
    assert page.entries[0].prediction is None

    sealed = run_service.seal_run_response_from_proto(
        await runs.SealRun(run_service.seal_run_request_to_proto(SealRunRequest(run="study", expected_row_count=1)))
    )
    assert sealed.state is RunState.SEALED
    assert sealed.seal_time is not None

    counts = run_service.delete_run_response_from_proto(await runs.DeleteRun(DeleteRunRequest(run="study")))
    assert counts == RunRowCounts(request_record_count=1)
    error = await error_of(runs.GetRun(GetRunRequest(run="study")))
    assert isinstance(error, NotFoundError)
    assert error.reason == "RUN_NOT_FOUND"


async def test_creating_a_run_again(runs: RunServiceAsyncStub) -> None:
    message = run_service.create_run_request_to_proto(RUN)
    assert await runs.CreateRun(message) == await runs.CreateRun(message)
    message.display_name = "another"
    error = await error_of(runs.CreateRun(message))
    assert isinstance(error, AlreadyExistsError)
    assert (error.reason, error.resource.type, error.resource.name) == ("RUN_EXISTS", "run", "study")


@pytest.mark.parametrize("method", OF_EACH_KIND)
async def test_records_of_each_kind_are_stored_once(
    runs: RunServiceAsyncStub, ingest: IngestServiceAsyncStub, method: str
) -> None:
    await create(runs)
    append = getattr(ingest, method)
    message = append_message(record=OF_EACH_KIND[method])
    assert (await append(message)).committed_sequence_number == 1
    assert (await append(message)).committed_sequence_number == 1
    details = run_service.run_details_from_proto(await runs.GetRun(GetRunRequest(run="study")))
    assert details.row_counts.total_row_count == 1


async def test_what_is_measured_stands_beside_what_was_predicted(
    runs: RunServiceAsyncStub, ingest: IngestServiceAsyncStub, queries: QueryServiceAsyncStub
) -> None:
    await create(runs)
    await ingest.AppendRequestRecords(append_message())
    answer = await queries.CompareRun(query_service.compare_run_request_to_proto(RunRequest(run="study")))
    comparison = query_service.run_comparison_from_proto(answer)
    assert comparison.run_id == "study"
    row = next(row for row in comparison.rows if row.metric is Metric.TTFT_SECONDS)
    assert (row.subject, row.measured, row.inside_interval) == ("P1", 2.5, True)


async def test_a_number_too_far_ahead_says_which_is_expected(
    runs: RunServiceAsyncStub, ingest: IngestServiceAsyncStub
) -> None:
    await create(runs)
    error = await error_of(ingest.AppendRequestRecords(append_message(3)))
    assert isinstance(error, OutOfRangeError)
    assert error.reason == "SEQUENCE_GAP"
    assert error.metadata["expectedSequenceNumber"] == "1"


async def test_a_number_with_other_content_is_a_conflict(
    runs: RunServiceAsyncStub, ingest: IngestServiceAsyncStub
) -> None:
    await create(runs)
    await ingest.AppendRequestRecords(append_message())
    other = append_message(record=attrs.evolve(RECORD, output_tokens=5))
    error = await error_of(ingest.AppendRequestRecords(other))
    assert isinstance(error, AbortedError)
    assert error.reason == "WRITER_CONFLICT"


async def test_a_sealed_run_takes_nothing(runs: RunServiceAsyncStub, ingest: IngestServiceAsyncStub) -> None:
    await create(runs)
    error = await error_of(runs.SealRun(SealRunMessage(run="study", expected_row_count=7)))
    assert isinstance(error, FailedPreconditionError)
    assert error.reason == "ROW_COUNT_MISMATCH"
    await runs.SealRun(SealRunMessage(run="study"))
    error = await error_of(ingest.AppendRequestRecords(append_message()))
    assert isinstance(error, FailedPreconditionError)
    assert error.reason == "RUN_SEALED"


async def test_an_append_to_a_run_that_does_not_exist(ingest: IngestServiceAsyncStub) -> None:
    error = await error_of(ingest.AppendRequestRecords(append_message()))
    assert isinstance(error, NotFoundError)
    assert error.resource.name == "study"


@pytest.mark.parametrize(
    ("stub", "method", "message", "paths"),
    [
        (RunServiceStub, "CreateRun", CreateRunMessage(), ["run_id"]),
        (
            RunServiceStub,
            "CreateRun",
            CreateRunMessage(run_id="Ü", display_name="x" * 257, settings={"": "v"}),
            ["run_id", "display_name", "settings[0].key"],
        ),
        (RunServiceStub, "GetRun", GetRunRequest(run="runs/Ü"), ["run"]),
        (RunServiceStub, "ListRuns", ListRunsRequest(page_size=-1), ["page_size"]),
        (RunServiceStub, "SealRun", SealRunMessage(expected_row_count=-1), ["run", "expected_row_count"]),
        (RunServiceStub, "DeleteRun", DeleteRunRequest(), ["run"]),
        (QueryServiceStub, "CompareRun", CompareRunRequest(run="a b"), ["run"]),
        (
            IngestServiceStub,
            "AppendRequestRecords",
            AppendRequestRecordsRequest(sequence_number=-1),
            ["run", "writer_id", "sequence_number", "records"],
        ),
        (
            IngestServiceStub,
            "AppendRequestRecords",
            AppendRequestRecordsRequest(run="r", writer_id="w", sequence_number=2**63 - 1),
            ["sequence_number", "records"],
        ),
    ],
)
async def test_every_violation_of_a_request_comes_back(
    channel: grpc.aio.Channel, stub: Any, method: str, message: Any, paths: list[str]
) -> None:
    error = await error_of(getattr(stub(channel), method)(message))
    assert isinstance(error, InvalidArgumentError)
    assert [violation.field for violation in error.field_violations] == paths


async def test_more_violations_than_a_header_holds_are_counted(ingest: IngestServiceAsyncStub) -> None:
    message = append_message()
    for index in range(5000):
        message.records.add(subject="P1", prompt_tokens=-index)
    error = await error_of(ingest.AppendRequestRecords(message))
    assert isinstance(error, InvalidArgumentError)
    omitted = int(error.metadata["omittedViolationCount"])
    assert error.field_violations[0].field == "records[1].prompt_tokens"
    assert len(error.field_violations) + omitted == 5000


async def test_the_log_line_of_an_append_counts_its_rows(
    runs: RunServiceAsyncStub, ingest: IngestServiceAsyncStub
) -> None:
    await create(runs)
    message = append_message(records=(RECORD, RECORD, RECORD))
    with capture_logs() as logs:
        await ingest.AppendRequestRecords(message)
    lines = [line for line in logs if line["event"] == "rpc_finished"]
    assert [(line["rpc"], line["rows"], line["request_bytes"]) for line in lines] == [
        ("linkbound.ingest.v1.IngestService/AppendRequestRecords", 3, message.ByteSize())
    ]


async def test_a_second_server_on_the_same_port_does_not_start(tmp_path: Path, server: Running) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(UnavailableError) as caught:
        async with ingest_server(other, ServerSettings(port=server.port)):
            pytest.fail("two servers listen on one port")
    assert caught.value.reason == "CANNOT_LISTEN"
    assert str(server.port) in caught.value.message


async def test_a_query_ends_at_its_limit(tmp_path: Path) -> None:
    with Ingest.open(StoreSettings(path=laid(tmp_path / "linkbound.duckdb"))) as ingest:
        threads = StoreThreads()
        # The limit is over before the thread that asks the store can answer.
        servicer = QueryServicer(ingest, threads, limit_seconds=0.0)
        binding = ServiceBinding(
            "linkbound.ingest.v1.QueryService", partial(add_QueryServiceServicer_to_server, servicer)
        )
        async with service_server(binding) as server, server.channel() as channel:
            queries: QueryServiceAsyncStub = QueryServiceStub(channel)
            errors = [
                await error_of(queries.CompareRun(CompareRunRequest(run="study"))),
                await error_of(queries.ListRequestRecords(ListRequestRecordsRequest(run="study"))),
            ]
        await threads.close()
    assert [type(error) for error in errors] == [DeadlineExceededError] * 2
    assert [error.metadata["run"] for error in errors] == ["study"] * 2
    assert errors[1].message == "the list of the records of run study took longer than 0 s"


class LateContext:
    """A call whose deadline has just passed."""

    def time_remaining(self) -> float:
        return 0.0


async def test_a_query_whose_time_is_over_does_not_get_more_of_it(tmp_path: Path) -> None:
    with Ingest.open(StoreSettings(path=laid(tmp_path / "linkbound.duckdb"))) as ingest:
        threads, context = StoreThreads(), LateContext()
        servicer: Any = QueryServicer(ingest, threads)
        with pytest.raises(DeadlineExceededError) as caught:
            await servicer.CompareRun(CompareRunRequest(run="study"), context)
        await threads.close()
    assert caught.value.metadata["limitSeconds"] == "0"
