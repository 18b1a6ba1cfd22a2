"""What is around the calls: tokens, TLS, health, reflection, starting and stopping."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from structlog.testing import capture_logs

from estimator_service.server import serve as serve_estimator
from estimator_service.service import default_estimator
from ingest_service.server import serve as serve_ingest
from ingest_service.service import Ingest
from ingest_service.settings import StoreSettings
from ingest_service.transport.store_threads import READ_THREAD_COUNT
from linkbound.client.remote.errors import error_of_call
from linkbound.domain.errors import (
    CancelledError,
    Error,
    InvalidArgumentError,
    NotFoundError,
    Resource,
    UnauthenticatedError,
    UnavailableError,
)
from linkbound.estimator.v1.catalog_service_pb2 import ListModelsRequest
from linkbound.estimator.v1.catalog_service_pb2_grpc import CatalogServiceStub
from linkbound.ingest.v1.run_service_pb2 import ListRunsRequest, SealRunRequest
from linkbound.ingest.v1.run_service_pb2_grpc import RunServiceStub
from serving.builder import ServiceBinding, build_server
from serving.lifecycle import run_together, run_until_signalled
from serving.settings import ServerSettings
from tests.integration.servers import PATIENCE_SECONDS, estimator_server, ingest_server, running, service_server

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
ESTIMATOR_SERVICES = ["", "linkbound.estimator.v1.EstimatorService", "linkbound.estimator.v1.CatalogService"]
INGEST_SERVICES = [
    "",
    "linkbound.ingest.v1.RunService",
    "linkbound.ingest.v1.IngestService",
    "linkbound.ingest.v1.QueryService",
]


async def models_of(channel: grpc.aio.Channel, **call_arguments: Any) -> int:
    stub: Any = CatalogServiceStub(channel)
    return len((await stub.ListModels(ListModelsRequest(), **call_arguments)).models)


async def health_of(channel: grpc.aio.Channel, service: str) -> int:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    status: int = (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status
    return status


async def error_of(call: Any) -> Error:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return error_of_call(caught.value, "the server")


# ---------------------------------------------------------------- tokens


@pytest.fixture
def token_settings(tmp_path: Path) -> ServerSettings:
    token_file = tmp_path / "tokens"
    token_file.write_text("# accepted\nfirst-token\n\nsecond-token\n", encoding="utf-8")
    return ServerSettings(token_file=token_file, reflection=True)


@pytest.mark.parametrize("authorization", ["Bearer first-token", "Bearer second-token", "bearer first-token"])
async def test_a_call_with_a_token_is_answered(token_settings: ServerSettings, authorization: str) -> None:
    async with estimator_server(token_settings) as server, server.channel() as channel:
        assert await models_of(channel, metadata=[("authorization", authorization)]) > 0


@pytest.mark.parametrize(
    "authorization",
    [None, "", "first-token", "Basic first-token", "Bearer ", "Bearer first-token2", "Bearer # accepted"],
)
async def test_a_call_without_one_is_not(token_settings: ServerSettings, authorization: str | None) -> None:
    metadata = [] if authorization is None else [("authorization", authorization)]
    messages = set()
    async with estimator_server(token_settings) as server, server.channel() as channel:
        error = await error_of(models_of(channel, metadata=metadata))
        messages.add(error.message)
    assert isinstance(error, UnauthenticatedError)
    # The same whatever was wrong.
    assert messages == {"a valid token is required: authorization: Bearer <token>"}


async def test_health_needs_no_token_and_reflection_does(token_settings: ServerSettings) -> None:
    async with estimator_server(token_settings) as server, server.channel() as channel:
        assert await health_of(channel, "") == SERVING
        error = await error_of(refused_reflection(channel))
    assert isinstance(error, UnauthenticatedError)


async def test_a_token_is_never_logged(token_settings: ServerSettings) -> None:
    with capture_logs() as logs:
        async with estimator_server(token_settings) as server, server.channel() as channel:
            await models_of(channel, metadata=[("authorization", "Bearer first-token")])
            await error_of(models_of(channel, metadata=[("authorization", "Bearer wrong-token")]))
    assert [line["code"] for line in logs if line["event"] == "rpc_finished"] == ["OK", "UNAUTHENTICATED"]
    assert "-token" not in str([{k: v for k, v in line.items() if k != "rpc"} for line in logs])


@pytest.mark.parametrize(("content", "problem"), [(None, "cannot be read"), ("# none\n\n", "holds no token")])
async def test_a_token_file_that_is_none(tmp_path: Path, content: str | None, problem: str) -> None:
    token_file = tmp_path / "tokens"
    if content is not None:
        token_file.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidArgumentError) as caught:
        async with estimator_server(ServerSettings(token_file=token_file)):
            pytest.fail("it started")
    (violation,) = caught.value.field_violations
    assert violation.field == "token_file"
    assert problem in violation.description


# ---------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of its own for localhost, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed: no certificate to test with")
    folder = tmp_path_factory.mktemp("tls")
    certificate_file, key_file = folder / "certificate.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-out", str(certificate_file), "-keyout", str(key_file)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate_file, key_file


async def test_with_tls_a_client_that_trusts_the_certificate_is_answered(certificate: tuple[Path, Path]) -> None:
    certificate_file, key_file = certificate
    settings = ServerSettings(tls_certificate_file=certificate_file, tls_key_file=key_file)
    async with estimator_server(settings) as server:
        credentials = grpc.ssl_channel_credentials(certificate_file.read_bytes())
        async with grpc.aio.secure_channel(f"localhost:{server.port}", credentials) as channel:
            assert await models_of(channel) > 0
        async with server.channel() as plaintext:
            assert isinstance(await error_of(models_of(plaintext)), UnavailableError)


async def test_with_a_client_ca_a_client_without_a_certificate_is_not_answered(
    certificate: tuple[Path, Path],
) -> None:
    certificate_file, key_file = certificate
    settings = ServerSettings(
        tls_certificate_file=certificate_file, tls_key_file=key_file, tls_client_ca_file=certificate_file
    )
    trusted = certificate_file.read_bytes()
    async with estimator_server(settings) as server:
        target = f"localhost:{server.port}"
        async with grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(trusted)) as channel:
            assert isinstance(await error_of(models_of(channel)), UnavailableError)
        own = grpc.ssl_channel_credentials(trusted, key_file.read_bytes(), trusted)
        async with grpc.aio.secure_channel(target, own) as channel:
            assert await models_of(channel) > 0


async def test_a_certificate_that_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    with pytest.raises(InvalidArgumentError) as caught:
        async with estimator_server(ServerSettings(tls_certificate_file=missing, tls_key_file=missing)):
            pytest.fail("it started")
    assert [violation.field for violation in caught.value.field_violations] == ["tls_key_file"]


# ---------------------------------------------------------------- health


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


# ---------------------------------------------------------------- reflection


def reflection_stub(channel: Any) -> Any:
    # Its stubs know the blocking channel only.
    return reflection_pb2_grpc.ServerReflectionStub(channel)


async def refused_reflection(channel: grpc.aio.Channel) -> None:
    # Nothing is written: a write that meets the end of the call would hide its status.
    await reflection_stub(channel).ServerReflectionInfo().read()


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


# ---------------------------------------------------------------- starting and stopping


async def test_a_port_belongs_to_one_server() -> None:
    async with estimator_server() as first:
        with pytest.raises(UnavailableError) as caught:
            async with estimator_server(ServerSettings(port=first.port)):
                pytest.fail("it started")
    assert caught.value.reason == "CANNOT_LISTEN"


async def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    # 192.0.2.0/24 is set aside for documentation.
    with pytest.raises(UnavailableError) as caught:
        async with estimator_server(ServerSettings(host="192.0.2.1", allow_plaintext=True)):
            pytest.fail("it started")
    assert caught.value.reason == "CANNOT_LISTEN"
    assert caught.value.metadata == {"address": "192.0.2.1:0"}


async def test_a_running_call_may_finish_within_the_grace() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def wait(_request: bytes, _context: Any) -> bytes:
        entered.set()
        await leave.wait()
        return b"done"

    def register(server: grpc.aio.Server) -> None:
        methods: dict[str, Any] = {"Wait": grpc.unary_unary_rpc_method_handler(wait)}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Waiting", methods)])

    settings = ServerSettings(grace_seconds=600.0)
    async with (
        service_server(ServiceBinding("test.Waiting", register), settings=settings) as server,
        server.channel() as channel,
    ):
        method: Any = channel.unary_unary("/test.Waiting/Wait")
        call = method(b"")
        await entered.wait()
        server.stop.set()
        leave.set()
        assert await call == b"done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signals_stop_the_server(number: signal.Signals) -> None:
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def server(stop: asyncio.Event) -> None:
        await serve_estimator(ServerSettings(), default_estimator(), on_started=started.set_result, stop=stop)

    task = asyncio.ensure_future(run_until_signalled(server))
    await started
    os.kill(os.getpid(), number)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await task


WAITING_FOR_EVER = """
import asyncio, sys
from serving.lifecycle import run_until_signalled

async def stuck(stop):
    print("started", flush=True)
    await stop.wait()
    print("stopping", flush=True)
    await asyncio.Event().wait()

asyncio.run(run_until_signalled(stuck))
"""


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_process_at_once(first: signal.Signals, second: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", WAITING_FOR_EVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "started\n"
            process.send_signal(first)
            assert process.stdout.readline() == "stopping\n"
            process.send_signal(second)
            assert process.wait(PATIENCE_SECONDS) == -second
        finally:
            process.kill()


async def test_handlers_of_signals_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]

    async def server(stop: asyncio.Event) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()

    await run_until_signalled(server)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


async def test_if_one_of_two_servers_fails_the_other_stops_and_the_error_is_raised(tmp_path: Path) -> None:
    stopped = asyncio.Event()

    async def good(stop: asyncio.Event) -> None:
        await stop.wait()
        stopped.set()

    async def bad(_stop: asyncio.Event) -> None:
        raise UnavailableError("no port", reason="CANNOT_LISTEN")

    with pytest.raises(UnavailableError):
        await run_together(asyncio.Event(), good, bad)
    assert stopped.is_set()


@pytest.mark.storage
async def test_a_store_that_breaks_ends_the_service(tmp_path: Path) -> None:
    with Ingest.open(StoreSettings(path=tmp_path / "linkbound.duckdb")) as ingest:
        with pytest.raises(UnavailableError) as caught:
            await serve_until_it_breaks(ingest)
        assert caught.value.reason == "STORE_BROKEN"


async def serve_until_it_breaks(ingest: Ingest) -> None:
    serve = partial(serve_ingest, ServerSettings(), ingest)
    async with (
        running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server,
        server.channel() as channel,
    ):
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest(service="linkbound.ingest.v1.IngestService"))
        assert (await watch.read()).status == SERVING
        # A closed store stores no more than a broken one does.
        ingest.close()
        runs: Any = RunServiceStub(channel)
        assert isinstance(await error_of(runs.ListRuns(ListRunsRequest())), UnavailableError)
        assert (await watch.read()).status == NOT_SERVING
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.wait({server.task})


class StuckStore:
    """A store whose reads take until the test ends them."""

    healthy = True

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()

    def list_runs(self, _request: Any) -> Any:
        self.entered.set()
        assert self.leave.wait(PATIENCE_SECONDS)
        raise NotFoundError.of(Resource("run", "r"))


async def test_the_service_ends_after_the_last_call_left_the_store() -> None:
    store: Any = StuckStore()
    serve = partial(serve_ingest, ServerSettings(grace_seconds=0.0), store)
    async with (
        running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server,
        server.channel() as channel,
    ):
        runs: Any = RunServiceStub(channel)
        call = asyncio.ensure_future(error_of(runs.ListRuns(ListRunsRequest())))
        assert await asyncio.to_thread(store.entered.wait, PATIENCE_SECONDS)
        server.stop.set()
        # Without grace the caller is sent away, while the thread is still in the store.
        assert isinstance(await call, UnavailableError | CancelledError)
        assert not server.task.done()
        store.leave.set()


class UnknownCondition:
    """A store that cannot say whether it still stores."""

    def __init__(self) -> None:
        self.asked = False

    @property
    def healthy(self) -> bool:
        if self.asked:
            raise RuntimeError("no answer")
        self.asked = True
        return True


async def test_a_store_that_cannot_be_asked_ends_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest_service.server.HEALTH_INTERVAL_SECONDS", 0.01)
    store: Any = UnknownCondition()
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(RuntimeError, match="no answer"):
            await serve_ingest(ServerSettings(), store, on_started=started.set_result, stop=asyncio.Event())


class SlowReads:
    """A store whose reads take until the test ends them, while changes are made at once."""

    healthy = True

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.leave = threading.Event()

    def list_runs(self, _request: Any) -> Any:
        self.entered.release()
        assert self.leave.wait(PATIENCE_SECONDS)
        raise NotFoundError.of(Resource("run", "r"))

    def seal_run(self, _request: Any) -> Any:
        raise NotFoundError.of(Resource("run", "sealed"))


async def test_slow_reads_do_not_keep_changes_waiting() -> None:
    store: Any = SlowReads()
    serve = partial(serve_ingest, ServerSettings(), store)
    async with (
        running(lambda on_started, stop: serve(on_started=on_started, stop=stop)) as server,
        server.channel() as channel,
    ):
        runs: Any = RunServiceStub(channel)
        reads = [
            asyncio.ensure_future(error_of(runs.ListRuns(ListRunsRequest()))) for _ in range(2 * READ_THREAD_COUNT)
        ]
        try:
            for _ in range(READ_THREAD_COUNT):
                assert await asyncio.to_thread(store.entered.acquire, timeout=PATIENCE_SECONDS)
            # Every thread for reads is taken, and as many reads wait for one.
            error = await error_of(runs.SealRun(SealRunRequest(run="sealed"), timeout=PATIENCE_SECONDS))
            assert isinstance(error, NotFoundError)
        finally:
            store.leave.set()
        await asyncio.gather(*reads)
