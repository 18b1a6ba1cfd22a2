"""Options that several commands share. Each decorator hands its options to the command as one value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click
from attrs import evolve, frozen

from linkbound.cli.params import LINK, RATE, TRANSPORT, TRANSPORTS, WHOLE
from linkbound.domain.link import ROCE_MTUS_BYTES, Link, LinkTransport

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTION_OF_FIELD = {
    "line_rate_bits_per_second": "link",
    "roce_mtu_bytes": "roce-mtu",
    "ethernet_mtu_bytes": "ethernet-mtu",
    "pcie_function_count": "pcie-functions",
    "measured_bits_per_second": "measured",
    "transport": "transport",
}


def link_fields(field: str, prefix: str = "") -> dict[str, str]:
    """Where the parts of the link in `field` come from on the command line; `prefix` is `to-` for `--to-link`."""
    return {f"{field}.{part}": f"--{prefix}{option}" for part, option in _OPTION_OF_FIELD.items()}


PROMPT_FIELDS = {
    "model": "--model",
    "workload.model": "--model",
    "workload.prompt_tokens": "--prompt-tokens",
    "workload.request_count": "--requests",
}
"""Where the fields of prompts for a model come from on the command line."""

LINK_FIELDS = {**link_fields("link"), **link_fields("to_link", "to-")}
"""Where the fields of links come from on the command line."""

_REFINEMENTS = {
    "roce-mtu": (WHOLE, f"path MTU of RoCE or InfiniBand in bytes, one of {', '.join(map(str, ROCE_MTUS_BYTES))}"),
    "ethernet-mtu": (WHOLE, "Ethernet MTU of TCP sockets in bytes, 1500 or 9000; implies --transport tcp"),
    "transport": (TRANSPORT, f"how bytes travel, one of {', '.join(TRANSPORTS)}"),
    "pcie-functions": (WHOLE, "PCIe functions in use, each a Gen5 x4 path; they only cap the rate"),
    "measured": (RATE, "a measured payload rate, not above the line rate or PCIe; it always wins, and may stand alone"),
}

# Told by hand: click would not take a measured rate that stands alone in place of a link.
_REQUIRED = "  [required]"
_REQUIRED_UNLESS_RATES = "  [required without --link-rates]"

LINK_HELP = (
    "Link of every rank, one direction: 200g is 200e9 bit/s, 22.14GB/s is 22.14e9 bytes/s, or a name that"
    " `linkbound links` lists."
)


@frozen
class Links:
    """The link of every rank, and the one to change to."""

    link: Link
    to_link: Link | None


@frozen
class Reply:
    """Who answers (a target, or this process over a data folder), and whether the answer is printed as JSON."""

    target: str
    as_json: bool
    data: str | None = None


def links_option(
    *, to_link_required: bool = False, link_of: Callable[[Any], Link | None] | None = None
) -> Callable[[Command], Command]:
    """`--link` and `--to-link` with what refines them, as `links: Links`.

    `link_of` makes a link of the value of `--link-rates` and of `--to-link-rates`, which the command has beside them,
    where a link is not given.
    """

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def wrapper(**values: Any) -> object:
            link, to_link = _link(values, ""), _link(values, "to_")
            if link_of is not None:
                link, to_link = link or link_of(values["link_rates"]), to_link or link_of(values["to_link_rates"])
            if link is None:
                beside = "" if link_of is None else ", and so is --link-rates"
                raise click.UsageError(f"--link: is missing{beside}")
            if to_link is None and to_link_required:
                raise click.UsageError("--to-link: is missing")
            return function(links=Links(link, to_link), **values)

        decorated: Any = wrapper
        for prefix, of in (("to-", "--to-link"), ("", "--link")):
            for name, (kind, text) in reversed(_REFINEMENTS.items()):
                decorated = click.option(f"--{prefix}{name}", type=kind, help=f"{of}: {text}.")(decorated)
        to_link_help = f"A link to change to.{_REQUIRED if to_link_required else ''}"
        decorated = click.option("--to-link", type=LINK, help=to_link_help)(decorated)
        required = _REQUIRED if link_of is None else _REQUIRED_UNLESS_RATES
        decorated = click.option("--link", type=LINK, help=f"{LINK_HELP}{required}")(decorated)
        return cast(Command, decorated)

    return decorate


def link_option(prefix: str = "", *, description: str, required: bool = False) -> Callable[[Command], Command]:
    """`--link`, or `--reference-link` for the prefix `reference-`, with what refines it, as `link: Link | None`."""
    underscored = prefix.replace("-", "_")

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def wrapper(**values: Any) -> object:
            link = _link(values, underscored)
            if link is None and required:
                raise click.UsageError(f"--{prefix}link: is missing")
            return function(**{f"{underscored}link": link}, **values)

        decorated: Any = wrapper
        for name, (kind, text) in reversed(_REFINEMENTS.items()):
            decorated = click.option(f"--{prefix}{name}", type=kind, help=f"--{prefix}link: {text}.")(decorated)
        said = f"{description}{_REQUIRED if required else ''}"
        decorated = click.option(f"--{prefix}link", type=LINK, help=said)(decorated)
        return cast(Command, decorated)

    return decorate


def reply_option(service: str) -> Callable[[Command], Command]:
    """`--target`, else LINKBOUND_ESTIMATOR or LINKBOUND_INGEST, `--data` and `--json`, as `reply: Reply`."""

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def wrapper(*, target: str, as_json: bool, data: str | None, **values: Any) -> object:
            return function(reply=Reply(target, as_json, data), **values)

        decorated: Any = data_option(json_option(wrapper))
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


data_option = click.option(
    "--data",
    type=click.Path(file_okay=False),
    envvar="LINKBOUND_DATA",
    show_envvar=True,
    metavar="DIR",
    help="Folder of the database and the catalogue for local:; default: the user's data folder.",
)


def _link(values: dict[str, Any], prefix: str) -> Link | None:
    """Takes one link's options out of `values`."""
    link: Link | None = values.pop(f"{prefix}link")
    given = {
        field: values.pop(f"{prefix}{option.replace('-', '_')}")
        for field, option in _OPTION_OF_FIELD.items()
        if option != "link"
    }
    refined = {field: value for field, value in given.items() if value is not None}
    if link is None and given["measured_bits_per_second"] is None:
        dashed = prefix.replace("_", "-")
        for field in refined:
            raise click.UsageError(f"--{dashed}{_OPTION_OF_FIELD[field]}: needs --{dashed}link or --{dashed}measured")
        return None
    if given["ethernet_mtu_bytes"] is not None:
        refined.setdefault("transport", LinkTransport.TCP)
    return evolve(_as_transport(link or Link(), refined.get("transport")), **refined)


def _as_transport(link: Link, transport: LinkTransport | None) -> Link:
    """A named link that travels otherwise keeps its line rate; its measured rate and its MTU were of the other way."""
    alike = transport is None or transport is link.transport
    if alike or {transport, link.transport} <= {LinkTransport.UNSPECIFIED, LinkTransport.ROCE}:
        return link
    return Link(line_rate_bits_per_second=link.line_rate_bits_per_second, pcie_function_count=link.pcie_function_count)
