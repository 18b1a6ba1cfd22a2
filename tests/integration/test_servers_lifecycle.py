"""Starting and stopping: ports, grace, signals."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest

from estimator_service.server import serve as serve_estimator
from estimator_service.service import default_estimator
from linkbound.domain.errors import UnavailableError
from serving.builder import ServiceBinding
from serving.lifecycle import run_together, run_until_signalled
from serving.settings import ServerSettings
from tests.integration.servers import PATIENCE_SECONDS, estimator_server, service_server


async def test_a_port_belongs_to_one_server() -> None:
    async with estimator_server() as first:
        with pytest.raises(UnavailableError) as caught:
            async with estimator_server(ServerSettings(port=first.port)):
                pytest.fail("it started")
    assert caught.value.reason == "CANNOT_LISTEN"


async def test_an_address_of_another_machine_cannot_be_listened_on() -> None:
    # 192.0.2.0/24 is set aside for documentation.
    with pytest.raises(UnavailableError) as caught:
        async with estimator_server(ServerSettings(host="192.0.2.1", allow_plaintext=True)):
            pytest.fail("it started")
    assert caught.value.reason == "CANNOT_LISTEN"
    assert caught.value.metadata == {"address": "192.0.2.1:0"}


async def test_a_running_call_may_finish_within_the_grace() -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def wait(_request: bytes, _context: Any) -> bytes:
        entered.set()
        await leave.wait()
        return b"done"

    def register(server: grpc.aio.Server) -> None:
        methods: dict[str, Any] = {"Wait": grpc.unary_unary_rpc_method_handler(wait)}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Waiting", methods)])

    settings = ServerSettings(grace_seconds=600.0)
    async with (
        service_server(ServiceBinding("test.Waiting", register), settings=settings) as server,
        server.channel() as channel,
    ):
        method: Any = channel.unary_unary("/test.Waiting/Wait")
        call = method(b"")
        await entered.wait()
        server.stop.set()
        leave.set()
        assert await call == b"done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signals_stop_the_server(number: signal.Signals) -> None:
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def server(stop: asyncio.Event) -> None:
        await serve_estimator(ServerSettings(), default_estimator(), on_started=started.set_result, stop=stop)

    task = asyncio.ensure_future(run_until_signalled(server))
    await started
    os.kill(os.getpid(), number)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await task


WAITING_FOR_EVER = """
import asyncio, sys
from serving.lifecycle import run_until_signalled

async def stuck(stop):
    print("started", flush=True)
    await stop.wait()
    print("stopping", flush=True)
    await asyncio.Event().wait()

asyncio.run(run_until_signalled(stuck))
"""


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_process_at_once(first: signal.Signals, second: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", WAITING_FOR_EVER], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "started\n"
            process.send_signal(first)
            assert process.stdout.readline() == "stopping\n"
            process.send_signal(second)
            assert process.wait(PATIENCE_SECONDS) == -second
        finally:
            process.kill()


async def test_handlers_of_signals_are_put_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]

    async def server(stop: asyncio.Event) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await stop.wait()

    await run_until_signalled(server)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


async def test_if_one_of_two_servers_fails_the_other_stops_and_the_error_is_raised(tmp_path: Path) -> None:
    stopped = asyncio.Event()

    async def good(stop: asyncio.Event) -> None:
        await stop.wait()
        stopped.set()

    async def bad(_stop: asyncio.Event) -> None:
        raise UnavailableError("no port", reason="CANNOT_LISTEN")

    with pytest.raises(UnavailableError):
        await run_together(asyncio.Event(), good, bad)
    assert stopped.is_set()
