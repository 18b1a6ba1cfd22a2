"""TLS of a server, from PEM files."""

from __future__ import annotations

from pathlib import Path

import grpc

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import shown
from serving.settings import ServerSettings


def server_credentials(settings: ServerSettings) -> grpc.ServerCredentials | None:
    """Credentials from the files of `settings`; None where it names none.

    Raises InvalidArgumentError on the field of a file that cannot be read.
    """
    if settings.tls_certificate_file is None or settings.tls_key_file is None:
        return None
    key = _read("tls_key_file", settings.tls_key_file)
    certificate = _read("tls_certificate_file", settings.tls_certificate_file)
    client_ca = (
        _read("tls_client_ca_file", settings.tls_client_ca_file) if settings.tls_client_ca_file is not None else None
    )
    return grpc.ssl_server_credentials(
        [(key, certificate)], root_certificates=client_ca, require_client_auth=client_ca is not None
    )


def _read(field: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        description = f"{shown(str(path))} cannot be read: {error.strerror}"
        raise InvalidArgumentError([Violation(field, description)]) from error
