"""The two services as child processes: started on free ports, stopped cleanly, never left behind."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from attrs import define, field

from linkbound.domain.errors import InternalError

START_LIMIT_SECONDS = 30.0
STOP_LIMIT_SECONDS = 20.0
LOG_LINES_SHOWN = 5

_SERVING = re.compile(r"(?P<service>\w+) serving on (?P<address>\S+)")
_OWN_SETTINGS_PREFIX = "LINKBOUND_"


class Service(Enum):
    """A service of the pair."""

    ESTIMATOR = "estimator"
    INGEST = "ingest"


@define
class Server:
    """One running service. Its log goes to a file, which is quoted where the service fails."""

    service: Service
    process: subprocess.Popen[str]
    log_path: Path
    address: str = ""

    def check(self) -> None:
        """Raises InternalError if the service has ended."""
        exit_code = self.process.poll()
        if exit_code is not None:
            raise self._ended(exit_code)

    def wait_until_serving(self, limit_seconds: float = START_LIMIT_SECONDS) -> None:
        """Reads the address that the service prints once it serves. Raises InternalError if it does not."""
        if not _readable(_stdout(self.process), limit_seconds):
            raise self._failed(f"did not serve within {limit_seconds:g} s")
        line = _stdout(self.process).readline().strip()
        match = _SERVING.fullmatch(line)
        if match is not None:
            self.address = match["address"]
        elif line:
            raise self._failed(f"printed {line!a} instead of its address")
        else:
            raise self._ended(self.process.wait(STOP_LIMIT_SECONDS))

    def stop(self) -> None:
        """Ends the service and waits until its work is stored. Raises InternalError if it does not end cleanly."""
        self.process.terminate()
        try:
            exit_code = self.process.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failed(f"did not stop within {STOP_LIMIT_SECONDS:g} s") from None
        self._close_pipes()
        if exit_code != 0:
            raise self._ended(exit_code)

    def kill(self) -> None:
        """Ends the service at once, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def _ended(self, exit_code: int) -> InternalError:
        how = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
        return self._failed(f"ended with {how}")

    def _failed(self, what: str) -> InternalError:
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        log = "".join(f"\n  {line}" for line in lines)
        return InternalError(f"the {self.service.value} service {what}{log and f'; its last lines:{log}'}")


@define
class Servers:
    """Starts the pair, each in a process of its own, and ends both whatever happens."""

    directory: Path
    running: list[Server] = field(factory=list)

    def __enter__(self) -> Self:
        """Starts both; they start side by side."""
        try:
            for service in Service:
                self.running.append(_start(service, self.directory))
            for server in self.running:
                server.wait_until_serving()
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()

    def address(self, service: Service) -> str:
        """Where `service` listens."""
        return next(server.address for server in self.running if server.service is service)

    def check(self) -> None:
        """Raises InternalError if a service has ended."""
        for server in self.running:
            server.check()

    def stop(self) -> None:
        """Ends both cleanly; the ingest service closes its database. Raises InternalError if one does not."""
        while self.running:
            self.running.pop().stop()

    def _kill(self) -> None:
        while self.running:
            self.running.pop().kill()


def _start(service: Service, directory: Path) -> Server:
    log_path = directory / f"{service.value}.log"
    arguments = ["serve", "--only", service.value, "--host", "127.0.0.1", f"--{service.value}-port", "0"]
    arguments += ["--data", str(directory), "--until-stdin-closes"]
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            # -P: a module in the current folder must not stand in for one of ours.
            [sys.executable, "-P", "-m", "linkbound.cli.main", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(),
            text=True,
            # An interrupt from the terminal reaches the demo alone, which then ends its servers in order.
            start_new_session=True,
        )
    return Server(service=service, process=process, log_path=log_path)


def _environment() -> dict[str, str]:
    """The environment without settings of other servers: the demo's pair needs none."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OWN_SETTINGS_PREFIX)}


def _stdout(process: subprocess.Popen[str]) -> IO[str]:
    if process.stdout is None:
        raise InternalError("the server was started without a pipe")
    return process.stdout


def _readable(pipe: IO[str], limit_seconds: float) -> bool:
    """Whether `pipe` has something to read, or ends, within `limit_seconds`."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(limit_seconds))
