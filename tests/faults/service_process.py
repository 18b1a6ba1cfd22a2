"""The ingest service as a process that can be killed, and that comes back on the same port over the same store."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.integration.command_line import LIMIT_SECONDS, environment

STORE_FILE_NAME = "linkbound.duckdb"


class ServiceProcess:
    """One service over the store in `directory`; what it logs goes to `service.log` there."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.port = free_port()
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None

    @property
    def target(self) -> str:
        """Where it serves."""
        return f"127.0.0.1:{self.port}"

    @property
    def store(self) -> Path:
        """Its database; to be looked into while it does not run."""
        return self.directory / STORE_FILE_NAME

    @property
    def log(self) -> Path:
        """What was committed and is not checkpointed."""
        return self.store.with_name(f"{STORE_FILE_NAME}.wal")

    @property
    def pid(self) -> int:
        """Its process while it runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Return once it serves."""
        command = ["-m", "linkbound.cli.main", "serve", "--only", "ingest", "--ingest-port", str(self.port)]
        with (self.directory / "service.log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, *command, "--data", str(self.directory)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(self._settings),
                start_new_session=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("ingest serving on"), (self.directory / "service.log").read_text()[-2000:]

    def kill(self) -> None:
        """End it at once, as a loss of the process does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        assert self._end(signal.SIGTERM) == 0

    def close(self) -> None:
        """Leave nothing running, whatever happened."""
        if self._process is not None:
            self.kill()

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        assert process is not None
        process.send_signal(number)
        try:
            process.communicate(timeout=LIMIT_SECONDS)
        finally:
            process.kill()
        return process.returncode


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port
