"""What became of the damaged log of a store."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class LogRecovery:
    """The first `kept_size_bytes` of a log of `log_size_bytes` are in the store at `path` now.

    `set_aside_path` is a copy of the whole log as it was; empty where nothing of it was damaged.
    """

    path: str
    log_size_bytes: int
    kept_size_bytes: int
    set_aside_path: str = ""
