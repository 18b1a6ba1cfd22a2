"""Clients for commands. This is where the command reads the environment: token and TLS files are never arguments."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from linkbound.cli.failures import USAGE, Failure

if TYPE_CHECKING:
    from linkbound.client.backend import Backend
    from linkbound.client.estimator import EstimatorClient
    from linkbound.client.ingest import IngestClient
    from linkbound.client.options import TlsFiles

TOKEN = "LINKBOUND_TOKEN"
TOKEN_FILE = "LINKBOUND_TOKEN_FILE"
TLS_CA_FILE = "LINKBOUND_TLS_CA_FILE"
TLS_CLIENT_CERTIFICATE_FILE = "LINKBOUND_TLS_CLIENT_CERTIFICATE_FILE"
TLS_CLIENT_KEY_FILE = "LINKBOUND_TLS_CLIENT_KEY_FILE"
TLS_SERVER_NAME = "LINKBOUND_TLS_SERVER_NAME"


def estimator_client(target: str, data: str | None = None) -> EstimatorClient:
    """The estimator at `target`; `data` is the folder of the catalogue for `local:`."""
    from linkbound.client.estimator import EstimatorClient

    return EstimatorClient(target, data_directory=None if data is None else Path(data), token=_token(), tls=_tls())


def ingest_client(target: str, data: str | None = None) -> IngestClient:
    """The ingest service at `target`; `data` is the folder of the database for `local:`."""
    from linkbound.cli.notices import tell_of_snapshots
    from linkbound.client.ingest import IngestClient

    tell_of_snapshots()
    return IngestClient(target, data_directory=None if data is None else Path(data), token=_token(), tls=_tls())


@contextmanager
def any_server(target: str) -> Iterator[Backend]:
    """The server at `target`, whichever services it runs; good for asking whether it takes calls."""
    from linkbound.client.backend import Connection
    from linkbound.client.remote.blocking import RemoteBackend
    from linkbound.client.target import parse_target

    connection = Connection(target=parse_target(target), token=_token(), tls=_tls())
    # The empty name is the server as a whole (grpc.health.v1).
    backend = RemoteBackend(connection, None, [""])
    try:
        yield backend
    finally:
        backend.close()


def _token() -> str | None:
    path = os.environ.get(TOKEN_FILE)
    if not path:
        return os.environ.get(TOKEN) or None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{TOKEN_FILE}: cannot read {path!a}: {error}", USAGE) from error


def _tls() -> TlsFiles | None:
    ca_file, certificate_file = os.environ.get(TLS_CA_FILE), os.environ.get(TLS_CLIENT_CERTIFICATE_FILE)
    private_key_file, server_name = os.environ.get(TLS_CLIENT_KEY_FILE), os.environ.get(TLS_SERVER_NAME)
    if not any((ca_file, certificate_file, private_key_file, server_name)):
        return None
    from linkbound.client.options import TlsFiles

    return TlsFiles(
        ca_file=Path(ca_file) if ca_file else None,
        certificate_file=Path(certificate_file) if certificate_file else None,
        private_key_file=Path(private_key_file) if private_key_file else None,
        server_name=server_name or "",
    )
