"""What every client takes besides its target: timeouts and TLS files."""

from __future__ import annotations

import math
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Final

from attrs import frozen

from linkbound.domain.errors import InvalidArgumentError, Violation
from linkbound.domain.rules import shown


class Unset(Enum):
    """The type of `UNSET`, which differs from None: a timeout of None is for ever."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""Not given: the default deadline of the method holds."""

Timeout = float | timedelta | Unset | None
"""Seconds, a timedelta, None for ever, or UNSET."""


@frozen(kw_only=True)
class TlsFiles:
    """Files for a connection with TLS, in PEM.

    `ca_file` holds the certificates that the server's must descend from; None: those that gRPC ships.
    `certificate_file` and `private_key_file` identify the client where the server asks for it. `server_name` is the
    name that the server's certificate must carry where it is not the host of the target.
    """

    ca_file: Path | None = None
    certificate_file: Path | None = None
    private_key_file: Path | None = None
    server_name: str = ""


def resolve_timeout_seconds(*timeouts: Timeout, default_seconds: float | None) -> float | None:
    """The first of `timeouts` that is set, in seconds, or else `default_seconds`; None is for ever.

    Raises InvalidArgumentError on `timeout_seconds` for anything that is not a number above 0.
    """
    for timeout in timeouts:
        if timeout is UNSET:
            continue
        if timeout is None:
            return None
        seconds: object = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        if (
            isinstance(seconds, bool)
            or not isinstance(seconds, int | float)
            or not math.isfinite(seconds)
            or seconds <= 0
        ):
            raise InvalidArgumentError(
                [Violation("timeout_seconds", f"{shown(timeout)} is not a number of seconds above 0; None is for ever")]
            )
        return float(seconds)
    return default_seconds
