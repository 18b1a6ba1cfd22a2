"""`linkbound serve`: the pair, or one of them, as gRPC servers in this process."""

from __future__ import annotations

import asyncio
import functools
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import evolve, field, frozen

from linkbound.cli.failures import USAGE, Failure, naming
from linkbound.cli.options import data_option, json_option
from linkbound.cli.output import print_json, print_text
from linkbound.cli.params import WHOLE

if TYPE_CHECKING:
    from serving.settings import ServerSettings

ServerLoop = Callable[[asyncio.Event], Awaitable[None]]
"""Serves until the event is set."""

HOST_VARIABLE = "LINKBOUND_SERVER_HOST"
ESTIMATOR_PORT_VARIABLE = "LINKBOUND_ESTIMATOR_PORT"
INGEST_PORT_VARIABLE = "LINKBOUND_INGEST_PORT"

_OPTIONS = {
    HOST_VARIABLE: "--host",
    ESTIMATOR_PORT_VARIABLE: "--estimator-port",
    INGEST_PORT_VARIABLE: "--ingest-port",
}
SERVICES_EXTRA = {
    "duckdb": "the ingest service",
    "grpc_reflection": "a server",
    "numpy": "a sweep",
    "pyarrow": "the ingest service",
}
"""Packages that only the `services` extra brings, and what needs them."""

LARGEST_PROCESS_COUNT = 256

_READ_SIZE_BYTES = 4096


class Part(Enum):
    """A service of the pair."""

    ESTIMATOR = "estimator"
    INGEST = "ingest"


class Announcements:
    """Says on stdout where each part serves; scripts get one JSON object once all do."""

    def __init__(self, part_count: int, *, as_json: bool) -> None:
        self._part_count = part_count
        self._as_json = as_json
        self._targets: list[tuple[Part, str]] = []

    def of(self, part: Part, settings: ServerSettings) -> Callable[[int], None]:
        """What `part` calls with its port."""
        host = f"[{settings.host}]" if ":" in settings.host else settings.host

        def announce(port: int) -> None:
            self._targets.append((part, f"{host}:{port}"))
            if not self._as_json:
                print_text(f"{part.value} serving on {host}:{port}")
            elif len(self._targets) == self._part_count:
                print_json({"services": [{"service": p.value, "target": target} for p, target in self._targets]})

        return announce


@frozen
class Processes:
    """How many processes of the estimator there are, and whether this one shares its port with others."""

    count: int
    share_port: bool


@frozen
class _Plan:
    """What to serve: parts, their settings from the environment and the options, and the data folder."""

    parts: tuple[Part, ...]
    environment: Mapping[str, str] = field(repr=False)
    data: str | None
    announcements: Announcements
    processes: Processes

    def server(self, part: Part, resources: ExitStack) -> tuple[ServerSettings, ServerLoop]:
        """One server and its settings; what it opens is closed with `resources`."""
        if part is Part.INGEST:
            return self._ingest(resources)
        return self._estimator() if self.processes.count == 1 else self._estimators(resources)

    def _estimator(self) -> tuple[ServerSettings, ServerLoop]:
        from estimator_service.server import serve as serve_estimator
        from estimator_service.service import default_estimator
        from estimator_service.settings import catalog_directory_from_environment, server_settings_from_environment
        from linkbound.client.local.blocking import CATALOG_DIRECTORY_NAME, default_data_directory

        def find_catalog_directory() -> Path:
            folder = default_data_directory() if self.data is None else Path(self.data)
            return catalog_directory_from_environment(self.environment, folder / CATALOG_DIRECTORY_NAME)

        settings = evolve(server_settings_from_environment(self.environment), share_port=self.processes.share_port)
        estimator, announce = default_estimator(find_catalog_directory), self.announcements.of(Part.ESTIMATOR, settings)

        async def run(stop: asyncio.Event) -> None:
            await serve_estimator(settings, estimator, on_started=announce, stop=stop)

        return settings, run

    def _estimators(self, resources: ExitStack) -> tuple[ServerSettings, ServerLoop]:
        """Several processes of the estimator on one port, each started from scratch: gRPC cannot be forked."""
        from estimator_service.settings import server_settings_from_environment
        from serving.shared_port import reserved_port
        from serving.supervisor import WorkerPool, supervise

        settings = server_settings_from_environment(self.environment)
        port = resources.enter_context(reserved_port(settings))
        announce = self.announcements.of(Part.ESTIMATOR, settings)
        pool = WorkerPool(
            command=_worker_command(port, self.data),
            environment=self.environment,
            process_count=self.processes.count,
            grace_seconds=settings.grace_seconds,
        )

        async def run(stop: asyncio.Event) -> None:
            await supervise(pool, stop=stop, on_serving=lambda: announce(port))

        return settings, run

    def _ingest(self, resources: ExitStack) -> tuple[ServerSettings, ServerLoop]:
        from ingest_service.server import serve as serve_ingest
        from ingest_service.service import Ingest
        from ingest_service.settings import settings_from_environment
        from linkbound.client.local.blocking import STORE_FILE_NAME, default_data_directory

        directory = default_data_directory() if self.data is None else Path(self.data)
        settings = settings_from_environment(self.environment, directory / STORE_FILE_NAME)
        announce = self.announcements.of(Part.INGEST, settings.server)
        ingest = resources.enter_context(Ingest.open(settings.store))

        async def run(stop: asyncio.Event) -> None:
            await serve_ingest(
                settings.server,
                ingest,
                on_started=announce,
                stop=stop,
                admission=settings.admission,
                reading=settings.reading,
            )

        return settings.server, run


def _processes_option(function: Callable[..., object]) -> Callable[..., object]:
    """`--processes`, and the flag that each of several is started with, as `processes: Processes`."""

    @functools.wraps(function)
    def wrapper(*, processes: int, share_port: bool, **values: object) -> object:
        return function(processes=Processes(processes, share_port), **values)

    with_flag = click.option("--share-port", is_flag=True, hidden=True)(wrapper)
    return click.option(
        "--processes",
        type=WHOLE,
        default=1,
        show_default=True,
        metavar="N",
        help="Processes of the estimator, which share its port; ingest is always one.",
    )(with_flag)


class ServeCommand(click.Command):
    """The command, with the environment variables in its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the variables with their defaults, as the servers themselves declare them."""
        del ctx
        from estimator_service.settings import describe_catalog_settings as describe_catalog
        from estimator_service.settings import describe_server_settings as describe_estimator
        from ingest_service.settings import describe_server_settings as describe_ingest
        from ingest_service.settings import describe_store_settings as describe_store

        texts = (describe_estimator(), describe_catalog(), describe_ingest(), describe_store())
        lines = dict.fromkeys(line for text in texts for line in text.splitlines())
        with formatter.section("Environment"):
            formatter.write_dl([(name, text) for name, _, text in (line.partition(": ") for line in lines)])


@click.command(cls=ServeCommand)
@data_option
@click.option("--only", type=click.Choice([part.value for part in Part]), help="One service instead of both.")
@click.option("--host", help="Address to listen on; default 127.0.0.1.")
@click.option("--estimator-port", metavar="PORT", help="Port of the estimator, 0 for any free one; default 50051.")
@click.option("--ingest-port", metavar="PORT", help="Port of the ingest service, 0 for any free one; default 50052.")
@_processes_option
@click.option("--until-stdin-closes", is_flag=True, help="Stop when standard input ends: with the parent process.")
@json_option
@naming(_OPTIONS)
def serve(
    *,
    data: str | None,
    only: str | None,
    host: str | None,
    estimator_port: str | None,
    ingest_port: str | None,
    processes: Processes,
    until_stdin_closes: bool,
    as_json: bool,
) -> None:
    """Runs the estimator and the ingest service until SIGTERM or SIGINT.

    Prints one line per service once it serves; the log goes to stderr. Options win over the environment.
    """
    _check_installation()
    if until_stdin_closes:
        _check_stdin()
    given = {HOST_VARIABLE: host, ESTIMATOR_PORT_VARIABLE: estimator_port, INGEST_PORT_VARIABLE: ingest_port}
    environment = {**os.environ, **{name: value for name, value in given.items() if value is not None}}
    parts = tuple(Part) if only is None else (Part(only),)
    _check_process_count(parts, processes.count)
    announcements = Announcements(len(parts), as_json=as_json)
    plan = _Plan(parts, environment, data, announcements, processes)
    _run(plan, until_stdin_closes=until_stdin_closes)


def _run(plan: _Plan, *, until_stdin_closes: bool) -> None:
    from serving.lifecycle import run_until_signalled
    from serving.logging import configure_logging

    with ExitStack() as resources:
        servers: list[ServerLoop] = []
        for part in plan.parts:
            settings, run = plan.server(part, resources)
            configure_logging(settings.log_format, settings.log_level)
            servers.append(run)
        if until_stdin_closes:
            servers.append(_until_stdin_closes)
        asyncio.run(run_until_signalled(*servers))


async def _until_stdin_closes(stop: asyncio.Event) -> None:
    """Returns when standard input ends, or when `stop` is set."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()

    def read() -> None:
        if not os.read(descriptor, _READ_SIZE_BYTES):
            stop.set()

    loop.add_reader(descriptor, read)
    try:
        await stop.wait()
    finally:
        loop.remove_reader(descriptor)


def _check_stdin() -> None:
    """Raises Failure for a standard input that cannot end: it is looked at before anything is opened."""
    if sys.stdin is None:
        raise Failure("--until-stdin-closes: standard input is closed; it takes a pipe", USAGE)
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty()):
        raise Failure("--until-stdin-closes: standard input is a file that never ends; it takes a pipe", USAGE)


def _worker_command(port: int, data: str | None) -> list[str]:
    """One process of the estimator; its host and everything else stand in the environment."""
    # -P: a module in the current folder must not stand in for one of ours.
    start = [sys.executable, "-P", "-m", "linkbound.cli.main", "serve", "--only", Part.ESTIMATOR.value]
    shared = ["--estimator-port", str(port), "--share-port", "--until-stdin-closes"]
    return [*start, *shared, *(() if data is None else ("--data", data))]


def _check_process_count(parts: Sequence[Part], count: int) -> None:
    if not 1 <= count <= LARGEST_PROCESS_COUNT:
        raise Failure(f"--processes: {count} is not a whole number from 1 to {LARGEST_PROCESS_COUNT}", USAGE)
    if count > 1 and Part.ESTIMATOR not in parts:
        raise Failure("--processes: the ingest service is one process; it owns its store", USAGE)


def _check_installation() -> None:
    missing = [f"{package} ({what})" for package, what in SERVICES_EXTRA.items() if find_spec(package) is None]
    if missing:
        raise Failure(f"serving needs {', '.join(missing)}: pip install 'linkbound[services]'", USAGE)
