"""Layouts as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from linkbound.cli import text
from linkbound.cli.table import Column, right, table
from linkbound.domain.layout import CollectiveTraffic, ParallelLayout, layout_name
from linkbound.domain.link import ResolvedLink


def details(layout: ParallelLayout, inner_link: ResolvedLink | None) -> list[tuple[str, str]]:
    """What a table says of a layout that is more than one tensor-parallel group of single ranks."""
    rows = []
    if layout.rank_count != layout.tensor_parallel_size or layout.sequence_parallel:
        rows.append(("layout", layout_name(layout) + (", sequence parallel" if layout.sequence_parallel else "")))
    if inner_link is not None:
        rows.append(("link within a node", text.rate_note(inner_link)))
    return rows


def traffic_table(traffic: Sequence[CollectiveTraffic]) -> str:
    """The collectives of the busiest stage; nothing where only one kind of group sends."""
    if len({row.rank_group for row in traffic}) < 2 and not any(row.inner_sent_bytes_per_rank for row in traffic):
        return ""
    columns = [Column("collective"), right("a pass"), right("sent"), right("sent within a node"), Column("why")]
    cells = [
        [
            row.kind.name.lower().replace("_", "-"),
            f"{row.count_per_pass}",
            text.size_bytes(row.sent_bytes_per_rank),
            text.size_bytes(row.inner_sent_bytes_per_rank),
            row.reason,
        ]
        for row in traffic
    ]
    return table(columns, cells)
