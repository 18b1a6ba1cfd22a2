"""Where a service is: at an address, or in this process."""

from __future__ import annotations

import re
from enum import Enum

from attrs import frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import shown

LOCAL = "local:"
_UNIX = "unix:"
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
    """The target that `text` names: `local:`, `host:port`, `[::1]:port` or `unix:/path`.

    Raises InvalidArgumentError on `target` for anything else.
    """
    if isinstance(text, str):
        if text == LOCAL:
            return Target(TargetKind.LOCAL, LOCAL)
        if text.startswith(_UNIX) and text.isprintable() and text.removeprefix(_UNIX).strip("/"):
            return Target(TargetKind.REMOTE, text)
        match = _HOST_AND_PORT.fullmatch(text)
        if match and 1 <= int(match["port"]) <= _LARGEST_PORT:
            return Target(TargetKind.REMOTE, text)
    raise InvalidArgumentError(
        [Violation("target", f"{shown(text)} is not host:port with a port from 1 to 65535, unix:/path or local:")]
    )
