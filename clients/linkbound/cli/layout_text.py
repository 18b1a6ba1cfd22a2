"""Layouts as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linkbound.cli import text
from linkbound.cli.table import Column, right, table
from linkbound.domain.layout import CollectiveTraffic, ParallelLayout, layout_name
from linkbound.domain.link import ResolvedLink


def sender(layout: ParallelLayout) -> str:
    """Whose bytes go over the link between nodes: `one rank`, or `one node`, whose ranks share the link."""
    return "one rank" if layout.ranks_per_node == 1 else "one node"


def sender_of_any(layouts: Iterable[ParallelLayout]) -> str:
    """The same of several layouts on the same nodes."""
    return next((sender(layout) for layout in layouts if layout.ranks_per_node > 1), "one rank")


def details(layout: ParallelLayout, inner_link: ResolvedLink | None) -> list[tuple[str, str]]:
    """What a table says of a layout that is more than one tensor-parallel group of single ranks."""
    rows = []
    if layout.rank_count != layout.tensor_parallel_size or layout.sequence_parallel:
        rows.append(("layout", layout_name(layout) + (", sequence parallel" if layout.sequence_parallel else "")))
    if inner_link is not None:
        rows.append(("link within a node", text.rate_note(inner_link)))
    return rows


def traffic_table(layout: ParallelLayout, traffic: Sequence[CollectiveTraffic]) -> str:
    """The collectives of the busiest stage; nothing where only one kind of group sends."""
    if len({row.rank_group for row in traffic}) < 2 and not any(row.inner_sent_bytes_per_rank for row in traffic):
        return ""
    columns = [
        Column("collective"),
        right("a pass"),
        right(f"sent, {sender(layout)}"),
        right("sent within a node, one rank"),
        Column("why"),
    ]
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
