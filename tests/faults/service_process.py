"""The ingest service as a process that can be killed, and that comes back on the same port over the same store."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from tests.faults.figures import peak_rss_bytes
from tests.integration.command_line import LIMIT_SECONDS, environment

STORE_FILE_NAME = "linkbound.duckdb"
LOG_FILE_NAME = "service.log"


@frozen(kw_only=True)
class Refusal:
    """How a service ended that did not come to serve."""

    exit_code: int
    message: str


class ServiceProcess:
    """One service over the store in `data`, or in `directory`; what it logs goes to `service.log` there."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None, data: Path | None = None) -> None:
        self.directory = directory
        self._data = data or directory
        self.port = free_port()
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None
        self._peak_rss_bytes = 0

    @property
    def target(self) -> str:
        """Where it serves."""
        return f"127.0.0.1:{self.port}"

    @property
    def store(self) -> Path:
        """Its database; to be looked into while it does not run."""
        return self._data / STORE_FILE_NAME

    @property
    def log(self) -> Path:
        """What was committed and is not checkpointed."""
        return self.store.with_name(f"{STORE_FILE_NAME}.wal")

    @property
    def pid(self) -> int:
        """Its process while it runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def peak_rss_bytes(self) -> int:
        """The most memory that it had since it was first started, over all its processes."""
        if self._process is not None and self.is_running:
            self._peak_rss_bytes = max(self._peak_rss_bytes, peak_rss_bytes(self._process.pid))
        return self._peak_rss_bytes

    def log_lines(self, event: str) -> list[dict[str, Any]]:
        """What it logged of one kind of event, over all its processes."""
        lines = (self.directory / LOG_FILE_NAME).read_text().splitlines()
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        return [entry for entry in entries if entry["event"] == event]

    def start(self) -> None:
        """Return once it serves."""
        refusal = self.try_to_start()
        assert refusal is None, refusal

    def try_to_start(self) -> Refusal | None:
        """Return once it serves, or what it said where it ended instead."""
        command = ["-m", "linkbound.cli.main", "serve", "--only", "ingest", "--ingest-port", str(self.port)]
        said = self._path_of_log.stat().st_size if self._path_of_log.exists() else 0
        with self._path_of_log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, *command, "--data", str(self._data)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(self._settings),
                start_new_session=True,
            )
        assert self._process.stdout is not None
        if self._process.stdout.readline().startswith("ingest serving on"):
            return None
        return Refusal(exit_code=self.wait(), message=self._path_of_log.read_bytes()[said:].decode())

    def wait(self) -> int:
        """Wait until it ends by itself; its exit code."""
        process, self._process = self._process, None
        assert process is not None
        try:
            process.communicate(timeout=LIMIT_SECONDS)
        finally:
            process.kill()
        return process.returncode

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

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
        self._peak_rss_bytes = self.peak_rss_bytes
        assert self._process is not None
        self._process.send_signal(number)
        return self.wait()

    @property
    def _path_of_log(self) -> Path:
        return self.directory / LOG_FILE_NAME


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port
