"""Options that several commands share. Each decorator hands its options to the command as one value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click
from attrs import frozen

from linkbound.cli.params import RATE, WHOLE
from linkbound.domain.link import ROCE_MTUS_BYTES, Link

Command = TypeVar("Command", bound=Callable[..., Any])

LINK_FIELDS = {
    "link.line_rate_bits_per_second": "--link",
    "link.roce_mtu_bytes": "--roce-mtu",
    "link.pcie_function_count": "--pcie-functions",
    "link.measured_bits_per_second": "--measured",
    "to_link.line_rate_bits_per_second": "--to-link",
    "to_link.roce_mtu_bytes": "--to-roce-mtu",
    "to_link.pcie_function_count": "--to-pcie-functions",
    "to_link.measured_bits_per_second": "--to-measured",
}
"""Where the fields of links come from on the command line."""

_REFINEMENTS = {
    "roce-mtu": (WHOLE, f"RoCE path MTU in bytes, one of {', '.join(map(str, ROCE_MTUS_BYTES))}"),
    "pcie-functions": (WHOLE, "PCIe functions in use, each a Gen5 x4 path"),
    "measured": (RATE, "a measured payload rate; it always wins, and may stand alone"),
}


@frozen
class Links:
    """The link of every rank, and the one to change to."""

    link: Link
    to_link: Link | None


@frozen
class Reply:
    """Who answers (a target), and whether the answer is printed as JSON."""

    target: str
    as_json: bool


def links_option(*, to_link_required: bool = False) -> Callable[[Command], Command]:
    """`--link` and `--to-link` with what refines them, as `links: Links`."""

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def wrapper(**values: Any) -> object:
            link, to_link = _link(values, ""), _link(values, "to_")
            if link is None:
                raise click.UsageError("--link: is missing")
            if to_link is None and to_link_required:
                raise click.UsageError("--to-link: is missing")
            return function(links=Links(link, to_link), **values)

        decorated: Any = wrapper
        for prefix, of in (("to-", "--to-link"), ("", "--link")):
            for name, (kind, text) in reversed(_REFINEMENTS.items()):
                decorated = click.option(f"--{prefix}{name}", type=kind, help=f"{of}: {text}.")(decorated)
        decorated = click.option("--to-link", type=RATE, help="A link to change to.")(decorated)
        decorated = click.option(
            "--link",
            type=RATE,
            help="Link of every rank, one direction: 200g is 200e9 bit/s, 22.14GB/s is 22.14e9 bytes/s.",
        )(decorated)
        return cast(Command, decorated)

    return decorate


def reply_option(service: str) -> Callable[[Command], Command]:
    """`--target`, else LINKBOUND_ESTIMATOR or LINKBOUND_INGEST, and `--json`, as `reply: Reply`."""

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def wrapper(*, target: str, as_json: bool, **values: Any) -> object:
            return function(reply=Reply(target, as_json), **values)

        decorated: Any = json_option(wrapper)
        decorated = click.option(
            "--target",
            default="local:",
            show_default=True,
            envvar=f"LINKBOUND_{service.upper()}",
            show_envvar=True,
            metavar="HOST:PORT",
            help=f"The {service} service; local: answers in this process.",
        )(decorated)
        return cast(Command, decorated)

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")

model_option = click.option("--model", required=True, metavar="MODEL", help="A model of the catalogue.")

data_option = click.option(
    "--data",
    type=click.Path(file_okay=False),
    envvar="LINKBOUND_DATA",
    show_envvar=True,
    metavar="DIR",
    help="Folder of the database for local:; default: the user's data folder.",
)


def _link(values: dict[str, Any], prefix: str) -> Link | None:
    """Takes one link's options out of `values`."""
    rate = values.pop(f"{prefix}link")
    roce_mtu, functions = values.pop(f"{prefix}roce_mtu"), values.pop(f"{prefix}pcie_functions")
    measured = values.pop(f"{prefix}measured")
    if rate is None and measured is None:
        dashed = prefix.replace("_", "-")
        for name, value in (("roce-mtu", roce_mtu), ("pcie-functions", functions)):
            if value is not None:
                raise click.UsageError(f"--{dashed}{name}: needs --{dashed}link or --{dashed}measured")
        return None
    return Link(
        line_rate_bits_per_second=rate,
        roce_mtu_bytes=roce_mtu,
        pcie_function_count=functions,
        measured_bits_per_second=measured,
    )
