"""What only a connection brings: retries, deadlines, tokens, TLS, closing. Against real servers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from attrs import field, frozen

from linkbound import (
    UNSET,
    AsyncEstimatorClient,
    AsyncIngestClient,
    DeadlineExceededError,
    Error,
    EstimatorClient,
    FailedPreconditionError,
    IngestClient,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    SeriesDescriptor,
    Timeout,
    TlsFiles,
    TrainingStep,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)
from linkbound.estimator.v1 import catalog_service_pb2
from linkbound.ingest.v1 import ingest_service_pb2, run_pb2, run_service_pb2
from serving.settings import ServerSettings
from tests.congruence.servers import ServerThread, estimator_server, running

TLS = Path(__file__).parent / "tls"
CERTIFICATE, KEY = TLS / "certificate.pem", TLS / "key.pem"
TOKEN = "a-token-of-the-tests"
STEPS = [TrainingStep(subject="s", node_count=1, step_seconds=1.0)]
NOBODY_LISTENS = "127.0.0.1:1"


@frozen
class Script:
    """Ends the first calls of every method with these codes, then answers; `None` in place of a code: never answers."""

    codes: list[grpc.StatusCode | None]
    calls: list[str] = field(factory=list)
    called: threading.Event = field(factory=threading.Event)
    released: threading.Event = field(factory=threading.Event)

    def play(self, method: str, context: grpc.ServicerContext) -> None:
        """Note the call and end it as the script says."""
        self.calls.append(method)
        self.called.set()
        if len(self.calls) > len(self.codes):
            return
        code = self.codes[len(self.calls) - 1]
        if code is None:
            self.released.wait()
        else:
            context.abort(code, "as the script says")


def scripted_methods(script: Script) -> dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]]:
    """The methods that follow the script, by service."""

    def handler(method: str, request_type: Any, answer: Callable[[Any], Any]) -> grpc.RpcMethodHandler[Any, Any]:
        def behave(request: Any, context: grpc.ServicerContext) -> Any:
            script.play(method, context)
            return answer(request)

        return grpc.unary_unary_rpc_method_handler(
            behave, request_type.FromString, lambda message: message.SerializeToString()
        )

    def model(request: catalog_service_pb2.GetModelRequest) -> catalog_service_pb2.GetModelResponse:
        return catalog_service_pb2.GetModelResponse(model=catalog_service_pb2.Model(name=request.model))

    def committed(
        request: ingest_service_pb2.AppendTrainingStepsRequest,
    ) -> ingest_service_pb2.AppendTrainingStepsResponse:
        return ingest_service_pb2.AppendTrainingStepsResponse(committed_sequence_number=request.sequence_number)

    def created(request: run_service_pb2.CreateRunRequest) -> run_service_pb2.CreateRunResponse:
        return run_service_pb2.CreateRunResponse(run=run_pb2.Run(name=f"runs/{request.run_id}"))

    def deleted(_request: run_service_pb2.DeleteRunRequest) -> run_service_pb2.DeleteRunResponse:
        return run_service_pb2.DeleteRunResponse()

    return {
        "linkbound.estimator.v1.CatalogService": {
            "GetModel": handler("GetModel", catalog_service_pb2.GetModelRequest, model)
        },
        "linkbound.ingest.v1.IngestService": {
            "AppendTrainingSteps": handler(
                "AppendTrainingSteps", ingest_service_pb2.AppendTrainingStepsRequest, committed
            )
        },
        "linkbound.ingest.v1.RunService": {
            "CreateRun": handler("CreateRun", run_service_pb2.CreateRunRequest, created),
            "DeleteRun": handler("DeleteRun", run_service_pb2.DeleteRunRequest, deleted),
        },
    }


@contextmanager
def scripted(*codes: grpc.StatusCode | None, address: str = "127.0.0.1:0") -> Iterator[tuple[str, Script]]:
    """A server that follows a script, and where it is."""
    script = Script(list(codes))
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(*entry) for entry in scripted_methods(script).items()]
    )
    port = server.add_insecure_port(address)
    server.start()
    try:
        yield address.replace(":0", f":{port}"), script
    finally:
        script.released.set()
        server.stop(None).wait()


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
            assert client.append("r", writer_id="w", sequence_number=7, records=STEPS) == 7
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
            client.sample_writer("r", writer_id="w", series=[SeriesDescriptor(metric="m", node="n")])

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
            client.sample_writer("r", writer_id="w", series=[SeriesDescriptor(metric="m", node="n")])
        assert caught.value.reason == "CHANNEL_GIVEN"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerThread]:
    token_file = tmp_path_factory.mktemp("tokens") / "tokens"
    token_file.write_text(f"{TOKEN}\n")
    with running(estimator_server(ServerSettings(token_file=token_file))) as server:
        yield server


class TestTokens:
    def test_the_right_token_opens(self, guarded: ServerThread) -> None:
        with EstimatorClient(guarded.target, token=TOKEN) as client:
            client.wait_until_ready(60)
            assert client.get_model("glm-5.3").model_id == "glm-5.3"

    async def test_the_right_token_opens_on_an_event_loop(self, guarded: ServerThread) -> None:
        async with AsyncEstimatorClient(guarded.target, token=TOKEN) as client:
            assert (await client.get_model("glm-5.3")).model_id == "glm-5.3"

    @pytest.mark.parametrize("token", [None, "another"])
    def test_any_other_does_not(self, guarded: ServerThread, token: str | None) -> None:
        with EstimatorClient(guarded.target, token=token) as client, pytest.raises(UnauthenticatedError) as caught:
            client.get_model("glm-5.3")
        assert caught.value.request_id

    @pytest.mark.parametrize("token", ["", " ", "tok\u00e9n", "to\nken"])
    def test_a_token_that_no_header_can_carry_is_refused_and_not_repeated(self, token: str) -> None:
        with pytest.raises(InvalidArgumentError) as caught:
            EstimatorClient(NOBODY_LISTENS, token=token)
        assert [violation.field for violation in caught.value.field_violations] == ["token"]
        assert len(token.strip()) < 2 or token not in str(caught.value)

    def test_the_token_is_neither_shown_nor_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG), EstimatorClient(NOBODY_LISTENS, token=TOKEN) as client:
            with pytest.raises(UnavailableError) as caught:
                client.get_model("m", timeout_seconds=30)
            shown = repr(client) + repr(vars(client)) + repr(caught.value) + caplog.text
        assert TOKEN not in shown


@pytest.fixture(scope="module")
def encrypted() -> Iterator[ServerThread]:
    settings = ServerSettings(tls_certificate_file=CERTIFICATE, tls_key_file=KEY)
    with running(estimator_server(settings)) as server:
        yield server


class TestTls:
    def test_a_trusted_certificate_connects(self, encrypted: ServerThread) -> None:
        with EstimatorClient(encrypted.target, tls=TlsFiles(ca_file=CERTIFICATE)) as client:
            client.wait_until_ready(60)
            assert client.get_model("glm-5.3").model_id == "glm-5.3"

    def test_the_name_in_the_certificate_can_be_given(self, encrypted: ServerThread) -> None:
        tls = TlsFiles(ca_file=CERTIFICATE, server_name="linkbound.test")
        with EstimatorClient(encrypted.target, tls=tls) as client:
            assert client.get_model("glm-5.3").model_id == "glm-5.3"

    async def test_a_trusted_certificate_connects_on_an_event_loop(self, encrypted: ServerThread) -> None:
        async with AsyncEstimatorClient(encrypted.target, tls=TlsFiles(ca_file=CERTIFICATE)) as client:
            assert (await client.get_model("glm-5.3")).model_id == "glm-5.3"

    @pytest.mark.parametrize("tls", [None, TlsFiles(), TlsFiles(ca_file=CERTIFICATE, server_name="other.test")])
    def test_no_trust_no_connection(self, encrypted: ServerThread, tls: TlsFiles | None) -> None:
        with EstimatorClient(encrypted.target, tls=tls) as client, pytest.raises(UnavailableError):
            client.get_model("glm-5.3", timeout_seconds=30)

    def test_an_unreadable_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError) as caught:
            EstimatorClient(NOBODY_LISTENS, tls=TlsFiles(ca_file=tmp_path / "missing.pem"))
        assert [violation.field for violation in caught.value.field_violations] == ["tls.ca_file"]

    async def test_an_unreadable_file_is_named_at_construction_on_an_event_loop_too(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidArgumentError):
            AsyncIngestClient(NOBODY_LISTENS, tls=TlsFiles(private_key_file=tmp_path))


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
