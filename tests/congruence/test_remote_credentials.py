"""Tokens and TLS, as a client gives them. Against real servers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from linkbound import (
    AsyncEstimatorClient,
    AsyncIngestClient,
    EstimatorClient,
    InvalidArgumentError,
    TlsFiles,
    UnauthenticatedError,
    UnavailableError,
)
from serving.settings import ServerSettings
from tests.congruence.scripted import NOBODY_LISTENS
from tests.congruence.servers import ServerThread, estimator_server, running

TLS = Path(__file__).parent / "tls"
CERTIFICATE, KEY = TLS / "certificate.pem", TLS / "key.pem"
TOKEN = "a-token-of-the-tests"


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
