"""One port for several processes of a server: who may listen on it, and that nobody else does (`SO_REUSEPORT`)."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from linkbound.domain.errors import UnavailableError
from serving.settings import ServerSettings

FREE_PORT_ATTEMPT_COUNT = 16
"""Free ports that are tried: one that is free at the first address of a host may be taken at the second."""


@contextmanager
def reserved_port(settings: ServerSettings) -> Iterator[int]:
    """The port of `settings`, or a free one for 0, which stays this process's and that of whom it lets share it.

    It is bound and not listened on, so no connection comes here, and it is not lost while a worker is replaced. Raises
    UnavailableError (CANNOT_LISTEN) where another server listens there or has reserved the port, even one that shares
    its port itself.
    """
    with ExitStack() as sockets:
        try:
            port = _hold(settings, sockets)
        except OSError as error:
            raise UnavailableError(
                f"cannot listen on {settings.address}: {error.strerror or error}",
                reason="CANNOT_LISTEN",
                metadata={"address": settings.address},
            ) from error
        yield port


def check_port(settings: ServerSettings) -> None:
    """Raises OSError where no server could listen on the port of `settings`; it is free again at once."""
    for family, address in _addresses(settings.host):
        with _socket(family) as probe:
            probe.bind((address, settings.port))


def _hold(settings: ServerSettings, sockets: ExitStack) -> int:
    """Holds the port of `settings` with `sockets`, or a free one, at every address of the host."""
    attempts_left = 1 if settings.port else FREE_PORT_ATTEMPT_COUNT
    while True:
        attempts_left -= 1
        with ExitStack() as held:
            try:
                port = settings.port
                for family, address in _addresses(settings.host):
                    port = _hold_at(family, address, port, held)
            except OSError as error:
                if error.errno == errno.EADDRINUSE and attempts_left:
                    continue
                raise
            sockets.push(held.pop_all())
            return port


def _hold_at(family: socket.AddressFamily, address: str, port: int, held: ExitStack) -> int:
    with _socket(family) as probe:
        probe.bind((address, port))
        port = int(probe.getsockname()[1])
        holder = held.enter_context(_socket(family))
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((address, port))
    # Or another server could bind the port too as long as nobody listens on it: until the first worker serves.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return port


def _addresses(host: str) -> Iterator[tuple[socket.AddressFamily, str]]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    yield from dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found)


def _socket(family: socket.AddressFamily) -> socket.socket:
    created = socket.socket(family, socket.SOCK_STREAM)
    # As gRPC does: connections of an earlier server that are still closing are no obstacle.
    created.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return created
