"""SQL over gRPC: who may ask, how many at once, and what becomes of queries whose callers are slow or gone."""

import asyncio
import resource
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from ingest_service.settings import AdmissionSettings, ReadingSettings
from linkbound import AsyncIngestClient
from linkbound.domain.errors import (
    DeadlineExceededError,
    Error,
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
)
from linkbound.ingest.v1 import query_service_pb2, query_service_pb2_grpc
from serving.settings import ServerSettings
from tests.integration.servers import PATIENCE_SECONDS, Running, ingest_server

pytestmark = pytest.mark.storage

ENDLESS = "SELECT count(*) FROM range(10000000000000)"
LONG = "SELECT range AS i, 'some text that makes a row wider' AS t FROM range(100000000)"
LARGEST_ROW_LIMIT = 10**9


async def refused(client: AsyncIngestClient, sql: str, **limits: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is what the tests look at
        await (await client.query_sql(sql, **limits)).read_all()
    return caught.value


async def is_answered(client: AsyncIngestClient) -> bool:
    reader = await client.query_sql("SELECT 1 AS one")
    table = await reader.read_all()
    return bool(table.to_pylist() == [{"one": 1}])


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with ingest_server(tmp_path, admission=AdmissionSettings(max_sql_queries=2)) as server:
        yield server


async def test_the_messages_are_schema_rows_and_summary(server: Running) -> None:
    async with server.channel() as channel:
        stub = query_service_pb2_grpc.QueryServiceStub(channel)
        request = query_service_pb2.QuerySqlRequest(sql="SELECT range AS i FROM range(500000)", row_limit=400_000)
        messages = [message async for message in stub.QuerySql(request)]
    kinds = [message.WhichOneof("message") for message in messages]
    assert kinds[0] == "arrow_schema"
    assert set(kinds[1:-1]) == {"arrow_record_batch"}
    assert messages[-1].summary == query_service_pb2.QuerySqlSummary(row_count=400_000, truncated=True)
    # Below what a client takes that asks for nothing special.
    assert max(message.ByteSize() for message in messages) < 4 * 2**20


async def test_what_is_wrong_with_a_query_is_told(server: Running) -> None:
    async with AsyncIngestClient(server.target) as client:
        for sql, reason in (
            ("SELECT * FROM read_text('/etc/passwd')", "SQL_NOT_READ_ONLY"),
            ("COMMIT; SELECT 1", "SQL_NOT_READ_ONLY"),
            ("SELECT no_such_column", "SQL_ERROR"),
            ("", "SQL_ERROR"),
        ):
            error = await refused(client, sql)
            assert isinstance(error, InvalidArgumentError)
            assert error.reason == reason
            assert [violation.field for violation in error.field_violations] == ["sql"]
        assert await is_answered(client)


@pytest.mark.parametrize("raw", [b"\x0a\x02\xc3\x28", b"\x0a\xff"])
async def test_bytes_that_are_no_text_are_no_query(server: Running, raw: bytes) -> None:
    async with server.channel() as channel:
        call = channel.unary_stream(
            "/linkbound.ingest.v1.QueryService/QuerySql", request_serializer=bytes, response_deserializer=bytes
        )(raw)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_no_more_queries_run_than_may(server: Running) -> None:
    async with AsyncIngestClient(server.target) as client:
        readers = [await client.query_sql(LONG, row_limit=LARGEST_ROW_LIMIT) for _ in range(2)]
        error = await refused(client, "SELECT 1")
        assert isinstance(error, ResourceExhaustedError)
        assert error.reason == "TOO_MANY_QUERIES"
        assert error.retry_delay_seconds is not None
        await readers[0].close()
        await until_answered(client)
        await readers[1].close()


async def until_answered(client: AsyncIngestClient) -> None:
    """A query that its caller left ends within moments."""
    while True:
        try:
            assert await is_answered(client)
        except ResourceExhaustedError:
            await asyncio.sleep(0.01)
        else:
            return


async def test_a_query_ends_at_the_deadline_of_its_caller(server: Running) -> None:
    async with AsyncIngestClient(server.target) as client:
        assert isinstance(await refused(client, ENDLESS, timeout_seconds=0.5), DeadlineExceededError)
        await until_answered(client)


async def test_a_query_ends_with_its_caller(server: Running) -> None:
    async with AsyncIngestClient(server.target) as client:
        for _ in range(5):
            asking = asyncio.ensure_future(client.query_sql(ENDLESS))
            await asyncio.sleep(0.05)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await until_answered(client)


async def test_a_query_ends_at_the_limit_of_the_service(tmp_path: Path) -> None:
    async with (
        ingest_server(tmp_path, reading=ReadingSettings(sql_time_limit_seconds=0.3)) as server,
        AsyncIngestClient(server.target) as client,
    ):
        error = await refused(client, ENDLESS)
        assert isinstance(error, DeadlineExceededError)
        assert error.metadata == {"limitSeconds": "0.3"}
        assert await is_answered(client)


async def test_a_query_that_hears_no_interrupt_is_answered_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Planning takes the square of the number of columns, which doubles with each step. Such a query is refused by now.
    monkeypatch.setattr("ingest_service.core.sql_text.LARGEST_EXPANSION", float("inf"))
    steps = "".join(f", c{step} AS (FROM c{step - 1} AS a, c{step - 1} AS b)" for step in range(1, 17))
    deaf = f"WITH c0 AS (SELECT 1 AS x){steps} SELECT count(*) FROM c16"
    admission = AdmissionSettings(max_sql_queries=1)
    reading = ReadingSettings(sql_time_limit_seconds=0.2)
    async with (
        ingest_server(tmp_path, admission=admission, reading=reading) as server,
        AsyncIngestClient(server.target) as client,
    ):
        assert isinstance(await refused(client, deaf), DeadlineExceededError)
        await client.create_run("r1")
        await until_answered(client)


async def test_a_slow_reader_takes_no_memory(server: Running) -> None:
    async with AsyncIngestClient(server.target) as client:
        reader = await client.query_sql(LONG, row_limit=LARGEST_ROW_LIMIT)
        await anext(reader)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await asyncio.sleep(1.0)
        assert await is_answered(client)
        # Of 4 GB a few messages are under way.
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 256 * 1024
        await reader.close()


async def test_a_caller_who_reads_nothing_keeps_a_place_for_the_limit_and_no_longer(tmp_path: Path) -> None:
    admission = AdmissionSettings(max_sql_queries=1)
    reading = ReadingSettings(sql_time_limit_seconds=0.3, snapshot_interval_seconds=0.0)
    async with (
        ingest_server(tmp_path, admission=admission, reading=reading) as server,
        AsyncIngestClient(server.target) as client,
        server.channel() as channel,
    ):
        await client.create_run("r1")
        stub: Any = query_service_pb2_grpc.QueryServiceStub(channel)
        call = stub.QuerySql(query_service_pb2.QuerySqlRequest(sql=LONG, row_limit=LARGEST_ROW_LIMIT))
        assert (await call.read()).WhichOneof("message") == "arrow_schema"
        assert isinstance(await refused(client, "SELECT 1"), ResourceExhaustedError)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await until_answered(client)
        call.cancel()


async def test_queries_end_when_the_service_stops(tmp_path: Path) -> None:
    async with ingest_server(tmp_path, ServerSettings(grace_seconds=0.2)) as server:
        client = AsyncIngestClient(server.target)
        asking = asyncio.ensure_future(refused(client, ENDLESS))
        await asyncio.sleep(0.3)
    assert isinstance(await asking, Error)
    await client.close()


async def test_sql_can_be_switched_off(tmp_path: Path) -> None:
    async with (
        ingest_server(tmp_path, reading=ReadingSettings(is_sql_on=False)) as server,
        AsyncIngestClient(server.target) as client,
    ):
        error = await refused(client, "SELECT 1")
        assert isinstance(error, PermissionDeniedError)
        assert error.reason == "SQL_OFF"
        await client.create_run("r1")


def token_file(path: Path, tokens: Sequence[str]) -> Path:
    path.write_text("\n".join(tokens), encoding="utf-8")
    return path


async def test_sql_has_a_permission_of_its_own(tmp_path: Path) -> None:
    accepted = token_file(tmp_path / "tokens", ["agent", "analyst"])
    analysts = token_file(tmp_path / "analysts", ["analyst", "gone"])
    async with ingest_server(
        tmp_path, ServerSettings(token_file=accepted), reading=ReadingSettings(sql_token_file=analysts)
    ) as server:
        async with AsyncIngestClient(server.target, token="analyst") as analyst:
            assert await is_answered(analyst)
        async with AsyncIngestClient(server.target, token="agent") as agent:
            await agent.create_run("r1")
            assert isinstance(await refused(agent, "SELECT 1"), PermissionDeniedError)
        async with AsyncIngestClient(server.target, token="gone") as gone:
            assert isinstance(await refused(gone, "SELECT 1"), UnauthenticatedError)


async def test_sql_may_be_what_alone_needs_a_token(tmp_path: Path) -> None:
    analysts = token_file(tmp_path / "analysts", ["analyst"])
    async with ingest_server(tmp_path, reading=ReadingSettings(sql_token_file=analysts)) as server:
        async with AsyncIngestClient(server.target) as anybody:
            await anybody.create_run("r1")
            assert isinstance(await refused(anybody, "SELECT 1"), UnauthenticatedError)
        async with AsyncIngestClient(server.target, token="analyst") as analyst:
            assert await is_answered(analyst)


async def test_a_token_file_that_cannot_be_read_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        async with ingest_server(tmp_path, reading=ReadingSettings(sql_token_file=tmp_path / "none")):
            pass


async def test_without_pyarrow_a_query_says_what_to_install(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    async with AsyncIngestClient(server.target) as client:
        error = await refused(client, "SELECT 1")
    assert isinstance(error, FailedPreconditionError)
    assert error.reason == "PYARROW_MISSING"
    assert "linkbound[services]" in error.message
