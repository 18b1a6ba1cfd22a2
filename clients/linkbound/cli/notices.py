"""Warnings of the clients, told on stderr in the words of the command."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TextIO, TypeVar

from linkbound.cli.failures import report
from linkbound.domain.sql import SnapshotWarning

WarningT = TypeVar("WarningT", bound=Warning)


def tell_of(kind: type[WarningT], tell: Callable[[WarningT], None]) -> None:
    """From here on each warning of this kind goes to `tell`; others look as they did."""
    warnings.simplefilter("always", kind)
    show = warnings.showwarning

    def show_or_tell(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if isinstance(message, kind):
            tell(message)
        else:
            show(message, category, filename, lineno, file, line)

    warnings.showwarning = show_or_tell


def tell_of_snapshots() -> None:
    """From here on a SnapshotWarning is one line of the command."""
    tell_of(SnapshotWarning, lambda warning: report(str(warning)))
