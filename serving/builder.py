"""Builds a gRPC server: options, interceptor, health, reflection, TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import grpc
from attrs import field, frozen

from linkbound.domain.errors import UnavailableError
from serving.admission import CallLimit
from serving.auth import read_token_check
from serving.health import HealthReporter
from serving.interceptors import PermissionCheck, RpcInterceptor
from serving.settings import ServerSettings
from serving.shared_port import check_port
from serving.tls import server_credentials

_MS_PER_SECOND = 1000
_MIN_CLIENT_PING_INTERVAL_MS = 20_000
"""Clients ping every 30 s; a server that allows less ends their connections."""

_UNREAD_BYTES = 128 * 1024
"""What gRPC takes in of a call before it is read: 10 MB/s of one call over 10 ms, and little of a thousand calls."""

_UNHEARD_CALLS = 4096
"""Calls that wait to be looked at: a second of the fastest."""


@frozen
class ServiceBinding:
    """One service of a server: its full name and what registers its servicer.

    By the names of methods, `limits` says how many of their calls run at once, and `permissions` who may make them
    among the callers that are accepted: a function of the authorization that raises where the caller may not.
    """

    name: str
    register: Callable[[grpc.aio.Server], None]
    limits: Mapping[str, CallLimit] = field(factory=dict)
    permissions: Mapping[str, PermissionCheck] = field(factory=dict)


@frozen(kw_only=True)
class BuiltServer:
    """A server that listens but does not answer yet. `draining` tells its streams to end."""

    server: grpc.aio.Server
    health: HealthReporter
    draining: asyncio.Event
    port: int


def server_options(settings: ServerSettings) -> list[tuple[str, int]]:
    """Channel arguments of the server."""
    age_seconds = settings.connection_age_seconds
    return [
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        ("grpc.keepalive_time_ms", round(settings.keepalive_seconds * _MS_PER_SECOND)),
        ("grpc.keepalive_timeout_ms", round(settings.keepalive_timeout_seconds * _MS_PER_SECOND)),
        # A caller whose machine has gone leaves its connection behind, also where no call runs.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _MIN_CLIENT_PING_INTERVAL_MS),
        # A port belongs to one process, unless it is told otherwise: two that shared one would each get a part of the
        # calls.
        ("grpc.so_reuseport", int(settings.share_port)),
        ("grpc.enable_channelz", 0),
        # Without these, gRPC takes in megabytes of every call, read or not, as fast as the network brings them.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", _UNREAD_BYTES),
        # Calls beyond these it cancels without a word, before we can say why and when to come again.
        ("grpc.server.max_pending_requests", _UNHEARD_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", _UNHEARD_CALLS),
        *(() if age_seconds is None else (("grpc.max_connection_age_ms", round(age_seconds * _MS_PER_SECOND)),)),
    ]


async def build_server(
    settings: ServerSettings,
    services: Callable[[asyncio.Event], Sequence[ServiceBinding]],
    *,
    error_domain: str,
) -> BuiltServer:
    """A server with `services`, which are given the event that tells their streams to end. Needs a running loop.

    Raises InvalidArgumentError for a file of `settings` that cannot be used, and UnavailableError (CANNOT_LISTEN)
    where the address is taken or is not one of this machine.
    """
    draining = asyncio.Event()
    bindings = services(draining)
    server = grpc.aio.server(
        interceptors=[
            RpcInterceptor(
                error_domain=error_domain,
                token_check=read_token_check(settings.token_file),
                draining=draining,
                limits={f"{b.name}/{method}": limit for b in bindings for method, limit in b.limits.items()},
                permissions={f"{b.name}/{method}": check for b in bindings for method, check in b.permissions.items()},
            )
        ],
        options=server_options(settings),
    )
    for binding in bindings:
        binding.register(server)
    health = HealthReporter([binding.name for binding in bindings])
    await health.add_to(server)
    if settings.reflection:
        _add_reflection(server, [binding.name for binding in bindings])
    try:
        port = _listen(server, settings)
    except BaseException:
        # One that is left as it is would try to stop when it is collected, perhaps without an event loop.
        await server.stop(None)
        raise
    return BuiltServer(server=server, health=health, draining=draining, port=port)


def _listen(server: grpc.aio.Server, settings: ServerSettings) -> int:
    credentials = server_credentials(settings)
    try:
        if not settings.share_port:
            # gRPC would log its own lines of a port that is taken.
            check_port(settings)
        if credentials is None:
            return server.add_insecure_port(settings.address)
        return server.add_secure_port(settings.address, credentials)
    except (OSError, RuntimeError) as error:
        raise UnavailableError(
            f"cannot listen on {settings.address}: the port is taken, or the address is not one of this machine",
            reason="CANNOT_LISTEN",
            metadata={"address": settings.address},
        ) from error


def _add_reflection(server: Any, names: Sequence[str]) -> None:
    # Imported here: an installation without the `services` extra runs without it.
    from grpc_health.v1 import health
    from grpc_reflection.v1alpha import reflection

    reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
