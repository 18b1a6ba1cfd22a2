"""One port for several processes of a server: who may listen on it, and that nobody else does (`SO_REUSEPORT`)."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from linkbound.domain.errors import UnavailableError
from serving.settings import ServerSettings


@contextmanager
def reserved_port(settings: ServerSettings) -> Iterator[int]:
    """The port of `settings`, or a free one for 0, which stays this process's and that of whom it lets share it.

    It is bound and not listened on, so no connection comes here, and it is not lost while a worker is replaced. Raises
    UnavailableError (CANNOT_LISTEN) where another server listens there, even one that shares its port itself.
    """
    with ExitStack() as sockets:
        try:
            port = settings.port
            for family, address in _addresses(settings.host):
                with _socket(family) as probe:
                    probe.bind((address, port))
                    port = int(probe.getsockname()[1])
                held = sockets.enter_context(_socket(family))
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                held.bind((address, port))
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


def _addresses(host: str) -> Iterator[tuple[socket.AddressFamily, str]]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    yield from dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found)


def _socket(family: socket.AddressFamily) -> socket.socket:
    created = socket.socket(family, socket.SOCK_STREAM)
    # As gRPC does: connections of an earlier server that are still closing are no obstacle.
    created.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return created
