"""What came out of each fault, as one table at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import field, frozen

from linkbound.cli import text
from linkbound.cli.table import Column, right, table

_COLUMNS = (
    Column("fault"),
    right("times"),
    right("rows sent"),
    right("acknowledged"),
    right("stored"),
    right("lost"),
    right("twice"),
    right("recoveries"),
    right("longest"),
    right("peak RSS"),
    Column("besides"),
)


@frozen(kw_only=True)
class Rows:
    """Rows that were written, that their writers knew to be stored, that are stored, and that are not or twice."""

    sent: int
    acknowledged: int
    stored: int
    lost: int
    twice: int


@frozen(kw_only=True)
class FaultFigures:
    """What came of one kind of fault that was made `times` times.

    `recovery_seconds` are the times from the fault until everything worked again. `peak_rss_bytes` is that of the
    service. What does not apply is left out.
    """

    fault: str
    times: int
    rows: Rows | None = None
    recovery_seconds: Sequence[float] = ()
    peak_rss_bytes: int | None = None
    remarks: Sequence[str] = field(default=())


def figures_table(found: Sequence[FaultFigures]) -> str:
    """The table of all faults, one a line."""
    return table(_COLUMNS, [_cells(figures) for figures in found])


def peak_rss_bytes(pid: int) -> int:
    """The most memory that a process which runs ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def _cells(figures: FaultFigures) -> list[str]:
    rows = figures.rows
    counts = (
        ["-"] * 5
        if rows is None
        else [f"{n:,}" for n in (rows.sent, rows.acknowledged, rows.stored, rows.lost, rows.twice)]
    )
    seconds = figures.recovery_seconds
    return [
        figures.fault,
        f"{figures.times:,}",
        *counts,
        f"{len(seconds):,}" if seconds else "-",
        f"{max(seconds):.2f} s" if seconds else "-",
        "-" if figures.peak_rss_bytes is None else text.size_bytes(figures.peak_rss_bytes),
        "; ".join(figures.remarks),
    ]
