"""What the configured logging writes of a fault: where it happened, and nothing that the caller must keep secret."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
import structlog

from serving.logging import configure_logging
from serving.settings import LogFormat, LogLevel
from tests.integration.servers import service_server
from tests.integration.test_servers_errors import raising

TOKEN = "a-token-of-the-caller"


@pytest.fixture
def process_logging() -> Iterator[None]:
    """The logging of the test process, as it was before."""
    root = logging.getLogger()
    handlers, level, configuration = root.handlers[:], root.level, structlog.get_config()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**configuration)


async def log_of_a_fault(log_format: LogFormat, capsys: pytest.CaptureFixture[str]) -> str:
    configure_logging(log_format, LogLevel.INFO)
    async with service_server(raising(RuntimeError("a fault"))) as server, server.channel() as channel:
        call: Any = channel.unary_unary("/test.Raising/Unary")
        with pytest.raises(grpc.aio.AioRpcError):
            await call(b"", metadata=[("authorization", f"Bearer {TOKEN}")])
    return capsys.readouterr().err


@pytest.mark.parametrize("log_format", [LogFormat.JSON, LogFormat.CONSOLE])
async def test_a_fault_is_logged_with_its_traceback_and_without_the_token(
    process_logging: None, capsys: pytest.CaptureFixture[str], log_format: LogFormat
) -> None:
    text = await log_of_a_fault(log_format, capsys)
    assert "rpc_failed" in text
    assert "RuntimeError" in text
    assert "a fault" in text
    assert "interceptors.py" in text
    assert TOKEN not in text


async def test_the_traceback_is_part_of_one_json_line(
    process_logging: None, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in (await log_of_a_fault(LogFormat.JSON, capsys)).splitlines()]
    (failed,) = [line for line in lines if line["event"] == "rpc_failed"]
    (exception,) = failed["exception"]
    assert (exception["exc_type"], exception["exc_value"]) == ("RuntimeError", "a fault")
    assert all("locals" not in frame for frame in exception["frames"])


def test_a_library_that_logs_a_fault_shows_no_local_variables(
    process_logging: None, capsys: pytest.CaptureFixture[str]
) -> None:
    for log_format in (LogFormat.JSON, LogFormat.CONSOLE):
        configure_logging(log_format, LogLevel.INFO)
        fail_with(TOKEN)
        text = capsys.readouterr().err
        assert "ZeroDivisionError" in text
        assert TOKEN not in text


def fail_with(token: str) -> None:
    try:
        _ = len(token) / 0
    except ZeroDivisionError:
        logging.getLogger("a.library").exception("it failed")
