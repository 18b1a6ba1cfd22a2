"""How a channel is set up: retries, keepalive, limits, TLS and the token."""

from __future__ import annotations

import re
from pathlib import Path

import grpc

from linkbound import __version__
from linkbound.client.backend import Connection
from linkbound.client.options import TlsFiles
from linkbound.domain.errors import FailedPreconditionError, InvalidArgumentError, Violation
from linkbound.domain.rules import shown

LARGEST_MESSAGE_BYTES = 16 * 2**20
"""What the servers accept as well."""

_OWN_ADDRESS = r"(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]):\d+"
_LOOPBACK = re.compile(rf"unix:.*|(?:dns:///|ipv[46]:)?{_OWN_ADDRESS}(?:,{_OWN_ADDRESS})*", re.IGNORECASE)

Metadata = tuple[tuple[str, str], ...]


def channel_options(connection: Connection) -> tuple[tuple[str, str | int], ...]:
    """Channel arguments of a client; those of the connection replace ours of the same name."""
    options: dict[str, str | int] = {
        "grpc.service_config": Path(__file__).with_name("service_config.json").read_text(encoding="utf-8"),
        "grpc.keepalive_time_ms": 30_000,
        "grpc.keepalive_timeout_ms": 10_000,
        "grpc.max_send_message_length": LARGEST_MESSAGE_BYTES,
        "grpc.max_receive_message_length": LARGEST_MESSAGE_BYTES,
        # A service that comes back is found within seconds; gRPC itself would wait up to two minutes.
        "grpc.initial_reconnect_backoff_ms": 100,
        "grpc.max_reconnect_backoff_ms": 2_000,
        # One client's broken connection is not another's.
        "grpc.use_local_subchannel_pool": 1,
        "grpc.primary_user_agent": f"linkbound/{__version__}",
    }
    if _LOOPBACK.fullmatch(connection.target.address):
        # A proxy of the environment has no way to this machine's own addresses.
        options["grpc.enable_http_proxy"] = 0
    if connection.tls is not None and connection.tls.server_name:
        options["grpc.ssl_target_name_override"] = connection.tls.server_name
    options.update(connection.channel_options)
    return tuple(options.items())


def credentials(connection: Connection) -> grpc.ChannelCredentials | None:
    """Credentials of a connection with TLS, None for one without. Raises InvalidArgumentError on unreadable files."""
    if connection.tls is None:
        return None
    return grpc.ssl_channel_credentials(
        root_certificates=_read(connection.tls, "ca_file"),
        private_key=_read(connection.tls, "private_key_file"),
        certificate_chain=_read(connection.tls, "certificate_file"),
    )


def call_metadata(connection: Connection) -> Metadata:
    """What is sent with every call."""
    return () if connection.token is None else (("authorization", f"Bearer {connection.token}"),)


def given_channel_error() -> FailedPreconditionError:
    """The error of a sample writer on a blocking channel that was given: it streams over one of its own."""
    return FailedPreconditionError(
        "a sample writer opens its own connection and needs a target instead of a given channel",
        reason="CHANNEL_GIVEN",
    )


def _read(tls: TlsFiles, field: str) -> bytes | None:
    path: Path | None = getattr(tls, field)
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        problem = f"{shown(str(path))} cannot be read: {error.strerror}"
        raise InvalidArgumentError([Violation(f"tls.{field}", problem)]) from error
