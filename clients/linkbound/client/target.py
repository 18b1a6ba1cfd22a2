"""Where a service is: at an address, or in this process."""

from __future__ import annotations

import re
from enum import Enum

from attrs import frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import shown

LOCAL = "local:"
_UNIX = "unix:"
_DNS = "dns:///"
_ADDRESS_LISTS = ("ipv4", "ipv6")
_LARGEST_PORT = 65_535
_HOST_AND_PORT = re.compile(
    r"(?P<host>[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.%A-Za-z_]+\]):(?P<port>[0-9]{1,5})",
    re.ASCII,
)


class TargetKind(Enum):
    """How a service is reached."""

    LOCAL = "local"
    REMOTE = "remote"


@frozen
class Target:
    """A service: in this process, or at an address that gRPC understands."""

    kind: TargetKind
    address: str


GIVEN_CHANNEL = Target(TargetKind.REMOTE, "the given channel")
"""Where a service is that is reached through a channel that was given; how errors name it."""


def parse_target(text: str) -> Target:
    """The target that `text` names: `local:`, `host:port`, `[::1]:port`, `dns:///host:port` or `unix:/path`.

    `ipv4:10.0.0.1:50051,10.0.0.2:50051` (and `ipv6:`) lists the addresses of one service, which is what a host with
    several addresses stands for: calls go to each of them in turn. Raises InvalidArgumentError on `target` for anything
    else.
    """
    if isinstance(text, str):
        if text == LOCAL:
            return Target(TargetKind.LOCAL, LOCAL)
        if text.startswith(_UNIX) and text.isprintable() and text.removeprefix(_UNIX).strip("/"):
            return Target(TargetKind.REMOTE, text)
        if _is_host_and_port(text.removeprefix(_DNS)) or _is_address_list(text):
            return Target(TargetKind.REMOTE, text)
    raise InvalidArgumentError(
        [
            Violation(
                "target",
                f"{shown(text)} is not host:port with a port from 1 to 65535, ipv4:address:port,address:port,"
                " unix:/path or local:",
            )
        ]
    )


def _is_host_and_port(text: str) -> bool:
    match = _HOST_AND_PORT.fullmatch(text)
    return match is not None and 1 <= int(match["port"]) <= _LARGEST_PORT


def _is_address_list(text: str) -> bool:
    scheme, _, addresses = text.partition(":")
    return scheme in _ADDRESS_LISTS and all(_is_address_and_port(address, scheme) for address in addresses.split(","))


def _is_address_and_port(text: str, scheme: str) -> bool:
    # Few targets are lists; the others need not load it.
    import ipaddress

    kind = ipaddress.IPv4Address if scheme == "ipv4" else ipaddress.IPv6Address
    try:
        kind(text.rpartition(":")[0].strip("[]"))
    except ValueError:
        return False
    return _is_host_and_port(text)
