"""Agents as processes that can be killed; each start is a new generation with the same spool and writer id."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.agent import Progress, read_progress
from tests.faults.truth import Told
from tests.integration.command_line import LIMIT_SECONDS, POLL_SECONDS, environment

ROOT = Path(__file__).parents[2]
DELIVERY_LIMIT_SECONDS = 300.0
"""An agent that ends delivers all that it kept through the faults."""


class AgentProcess:
    """One agent, `writer_id` of `run`, with its files in `directory`."""

    def __init__(self, directory: Path, target: str, run: str, writer_id: str) -> None:
        self.writer_id = writer_id
        self._directory = directory
        self._arguments = [target, run, writer_id, str(directory / "spool")]
        self._process: subprocess.Popen[bytes] | None = None
        self.spooled_counts: list[int] = []
        """What each generation that ended told to be in the spool."""
        self._acknowledged_count = 0

    @property
    def progress(self) -> Progress:
        """What the generation that runs told last."""
        return read_progress(self._progress_path)

    @property
    def acknowledged_count(self) -> int:
        """Samples that it ever knew to be stored."""
        return max(self._acknowledged_count, self.progress.acknowledged_count)

    @property
    def log_text(self) -> str:
        """What it logged, all generations together."""
        return self._log_path.read_text() if self._log_path.exists() else ""

    @property
    def told(self) -> Told:
        """What it told of itself, once it ended."""
        return Told(spooled_counts=self.spooled_counts, acknowledged_count=self.acknowledged_count)

    def start(self) -> None:
        """Start the next generation."""
        generation = len(self.spooled_counts)
        command = [sys.executable, "-m", "tests.faults.agent", *self._arguments]
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(self._progress_path), str(generation)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stderr=log,
                env=environment(),
                start_new_session=True,
            )

    def kill(self) -> None:
        """End it at once."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Let it deliver everything and end, once it has begun: before, the signal is nobody's."""
        self.wait_for(spooled_count=1)
        exit_code = self._end(signal.SIGTERM)
        assert exit_code == 0, self._log_path.read_text()[-2000:]

    def close(self) -> None:
        """Leave nothing running, whatever happened."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wait_for(self, spooled_count: int = 0, committed_number: int = 0) -> None:
        """Return once the agent told so much of what this generation did."""
        give_up = time.monotonic() + LIMIT_SECONDS
        while True:
            progress = self.progress
            if progress.spooled_count >= spooled_count and progress.committed_number >= committed_number:
                return
            assert self._process is not None
            assert self._process.poll() is None, self._log_path.read_text()[-2000:]
            if time.monotonic() > give_up:
                self._process.send_signal(signal.SIGUSR1)
                time.sleep(1)
                raise AssertionError(f"{progress}, {self._log_path.read_text()[-4000:]}")
            time.sleep(POLL_SECONDS)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        assert process is not None
        process.send_signal(number)
        try:
            process.wait(DELIVERY_LIMIT_SECONDS)
        finally:
            process.kill()
        self._acknowledged_count = self.acknowledged_count
        self.spooled_counts.append(self.progress.spooled_count)
        return process.returncode

    @property
    def _progress_path(self) -> Path:
        return self._directory / f"progress-{self.writer_id}-{len(self.spooled_counts)}"

    @property
    def _log_path(self) -> Path:
        return self._directory / f"agent-{self.writer_id}.log"
