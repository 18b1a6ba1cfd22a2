"""Warnings of the clients, told on stderr in the words of the command."""

from __future__ import annotations

import warnings
from typing import TextIO

from linkbound.cli.failures import report
from linkbound.domain.sql import SnapshotWarning


def tell_of_snapshots() -> None:
    """From here on a SnapshotWarning is one line of the command; others look as they did."""
    warnings.simplefilter("always", SnapshotWarning)
    show = warnings.showwarning

    def tell(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if isinstance(message, SnapshotWarning):
            report(str(message))
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = tell
