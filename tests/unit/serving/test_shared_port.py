"""Who may have a port: one server, with as many processes as it likes."""

from __future__ import annotations

import errno
import socket
from contextlib import ExitStack

import pytest

from linkbound.domain.errors import UnavailableError
from serving import shared_port
from serving.settings import ServerSettings
from serving.shared_port import check_port, reserved_port

LOOPBACK = "127.0.0.1"
BOTH_LOOPBACKS = [(socket.AF_INET6, "::1"), (socket.AF_INET, LOOPBACK)]


def settings_of(port: int, host: str = LOOPBACK) -> ServerSettings:
    return ServerSettings(host=host, port=port)


def worker_socket(port: int) -> socket.socket:
    """A socket with the options that gRPC sets where a port is shared."""
    created = socket.socket()
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        created.setsockopt(socket.SOL_SOCKET, option, 1)
    created.bind((LOOPBACK, port))
    created.listen()
    return created


def test_workers_listen_on_a_port_that_is_reserved_and_get_the_connections() -> None:
    with reserved_port(settings_of(0)) as port:
        for _ in range(2):
            with worker_socket(port) as worker, socket.create_connection((LOOPBACK, port)):
                worker.accept()[0].close()


def test_a_reserved_port_is_refused_to_another_server_before_anybody_listens() -> None:
    with reserved_port(settings_of(0)) as port:
        with pytest.raises(UnavailableError) as caught, reserved_port(settings_of(port)):
            pass
        assert caught.value.reason == "CANNOT_LISTEN"
        with pytest.raises(OSError, match="in use"):
            check_port(settings_of(port))
    check_port(settings_of(port))


def test_a_port_is_reserved_although_connections_of_an_earlier_server_are_closing() -> None:
    with socket.create_server((LOOPBACK, 0)) as earlier:
        port = earlier.getsockname()[1]
        with socket.create_connection((LOOPBACK, port)):
            # Who closes first keeps the port for a while: TIME_WAIT.
            earlier.accept()[0].close()
    check_port(settings_of(port))
    with reserved_port(settings_of(port)) as reserved, worker_socket(port):
        assert reserved == port


def test_a_free_port_is_free_at_every_address_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: set[int] = set()

    class Socket(socket.socket):
        """The first two ports that are free for IPv6 are taken for IPv4."""

        def bind(self, address: object) -> None:
            assert isinstance(address, tuple)
            if self.family == socket.AF_INET and (len(taken) < 2 or address[1] in taken):
                taken.add(address[1])
                raise OSError(errno.EADDRINUSE, "Address already in use")
            super().bind(address)

    monkeypatch.setattr(shared_port, "_addresses", lambda _host: BOTH_LOOPBACKS)
    monkeypatch.setattr(socket, "socket", Socket)
    with reserved_port(settings_of(0)) as port:
        assert port not in taken
    assert len(taken) == 2


def test_a_given_port_is_not_exchanged_for_another() -> None:
    with ExitStack() as stack:
        port = stack.enter_context(socket.create_server((LOOPBACK, 0))).getsockname()[1]
        with pytest.raises(UnavailableError, match=f"127.0.0.1:{port}: Address already in use"):
            stack.enter_context(reserved_port(settings_of(port)))
