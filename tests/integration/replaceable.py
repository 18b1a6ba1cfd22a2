"""A server process that can be killed and replaced at its address."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.integration.command_line import LIMIT_SECONDS, start


class Replaceable:
    """`linkbound serve` with the estimator alone."""

    def __init__(self) -> None:
        self.port = "0"
        self.start()

    def start(self) -> None:
        self.process = start("serve", "--only", "estimator", "--estimator-port", self.port)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.port = line.strip().rpartition(":")[2]
        assert self.port.isdigit(), line

    def stop(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=LIMIT_SECONDS)

    @property
    def target(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def peak_memory_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024
