"""`linkbound health`: whether services serve."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import click

from linkbound.cli.connect import any_server, estimator_client, ingest_client
from linkbound.cli.failures import Failure, exit_code_of, naming
from linkbound.cli.options import json_option
from linkbound.cli.output import print_json, print_text
from linkbound.cli.params import SECONDS
from linkbound.client.options import resolve_timeout_seconds
from linkbound.domain.errors import Error, InvalidArgumentError

LOCAL = "local:"


class Readiness(Protocol):
    """What can be asked whether it takes calls."""

    def wait_until_ready(self, timeout_seconds: float, /) -> None:
        """Return once it does."""


_ENVIRONMENT = {"estimator": "LINKBOUND_ESTIMATOR", "ingest": "LINKBOUND_INGEST"}
_SERVERS: Mapping[str, Callable[[str], AbstractContextManager[Readiness]]] = {
    "server": any_server,
    "estimator": estimator_client,
    "ingest": ingest_client,
}


@click.command()
@click.option(
    "--target",
    metavar="HOST:PORT",
    help="A server; default: those that LINKBOUND_ESTIMATOR and LINKBOUND_INGEST name.",
)
@click.option("--timeout", type=SECONDS, default="3s", show_default=True, help="How long to wait for an answer.")
@json_option
@naming({"target": "--target", "timeout_seconds": "--timeout"})
def health(*, target: str | None, timeout: float, as_json: bool) -> None:
    """Exits with 0 if everything asked serves, with 3 if not."""
    targets = _targets() if target is None or target == LOCAL else {"server": target}
    for name, address in targets.items():
        # What runs in this process has nobody to ask, and asking would create a database.
        if address != LOCAL:
            _ask(name, address, timeout)
    if as_json:
        print_json({"services": [{"service": n, "target": t, "serving": True} for n, t in targets.items()]})
    else:
        print_text("\n".join(_line(name, address) for name, address in targets.items()))


def _line(name: str, target: str) -> str:
    return f"{name}: in this process" if target == LOCAL else f"{name} at {target}: serving"


def _targets() -> dict[str, str]:
    return {service: os.environ.get(name) or LOCAL for service, name in _ENVIRONMENT.items()}


def _ask(name: str, target: str, timeout_seconds: float) -> None:
    # Checks the number; a backend takes it as it is.
    resolve_timeout_seconds(timeout_seconds, default_seconds=None)
    try:
        with _SERVERS[name](target) as server:
            server.wait_until_ready(timeout_seconds)
    except InvalidArgumentError:
        raise
    except Error as error:
        raise Failure(f"{name} does not serve: {error.message}", exit_code_of(error)) from error
