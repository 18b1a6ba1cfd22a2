"""How a writer keeps what it is given, and how long it waits."""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen

from linkbound.client.options import Timeout, resolve_timeout_seconds
from linkbound.client.spool.options import Spool
from linkbound.domain.names import RUN_ID, WRITER_ID
from linkbound.domain.rules import Checked, finite, instance, optional

DEFAULT_TIMEOUT_SECONDS = 60.0
"""How long the service may be away; agents start before servers do."""

DEFAULT_LINGER_SECONDS = 0.1
"""How long samples wait for others: batches of a tenth of a second cost the store little."""


def _as_spool(spool: object) -> object:
    return Spool(spool) if isinstance(spool, str | Path) else spool


@frozen(kw_only=True)
class WriterOptions(Checked):
    """Where batches are kept, None for memory, and how long samples wait for others to share a batch with.

    `timeout_seconds` is how long the service may be away, None for ever. Raises InvalidArgumentError on construction.
    """

    spool: Spool | None = field(converter=_as_spool, metadata=optional(instance(Spool)))
    linger_seconds: float = field(metadata=finite(0, 3600))
    timeout_seconds: float | None


@frozen(kw_only=True)
class WriterIdentity(Checked):
    """Who writes. Raises InvalidArgumentError on construction."""

    run: str = field(metadata=RUN_ID)
    writer_id: str = field(metadata=WRITER_ID)


def writer_options(spool: Spool | Path | str | None, linger_seconds: float, timeout_seconds: Timeout) -> WriterOptions:
    """The options of a writer as its caller gave them. Raises InvalidArgumentError."""
    return WriterOptions(
        spool=spool,
        linger_seconds=linger_seconds,
        timeout_seconds=resolve_timeout_seconds(timeout_seconds, default_seconds=DEFAULT_TIMEOUT_SECONDS),
    )
