"""TLS: which clients are answered, and files that cannot be read."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import grpc
import pytest

from linkbound.domain.errors import InvalidArgumentError, UnavailableError
from serving.settings import ServerSettings
from tests.integration.probes import error_of, models_of
from tests.integration.servers import estimator_server


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
