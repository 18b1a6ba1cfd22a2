"""Where the ranks of a group sit, and which of their bytes leave the node."""

from __future__ import annotations

from attrs import frozen

from estimator_service.core.collectives import sent_bytes
from estimator_service.core.elementwise import ceil_quotient, smaller
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.layout import ParallelLayout


@frozen(kw_only=True)
class Placement:
    """A group of ranks: how many, and how many of them the fullest node holds."""

    rank_count: int
    ranks_in_node: int

    @property
    def spans_nodes(self) -> bool:
        """Whether the group has ranks in several nodes."""
        return self.rank_count > self.ranks_in_node


@frozen(kw_only=True)
class SplitBytes:
    """Bytes over the link between nodes, which the ranks of a node share, and over one rank's link within the node."""

    outer_bytes: float
    inner_bytes: float


def tensor_group(layout: ParallelLayout) -> Placement:
    """The ranks of a tensor-parallel group: N, min(N, K) of them in a node of K (`docs/formulas.md`, Layouts)."""
    size = layout.tensor_parallel_size
    return Placement(rank_count=size, ranks_in_node=smaller(size, layout.ranks_per_node))


def expert_group(layout: ParallelLayout) -> Placement:
    """The ranks of one stage that share a set of experts: N D of them (`docs/formulas.md`, Layouts).

    A node holds K of them, or every group of this stage that it has room for where groups are smaller than a node.
    """
    size, rank_count = layout.tensor_parallel_size, layout.tensor_parallel_size * layout.data_parallel_size
    groups_in_node = ceil_quotient(_groups_per_node(layout), layout.pipeline_parallel_size)
    in_node = smaller(size, layout.ranks_per_node) * smaller(groups_in_node, layout.data_parallel_size)
    return Placement(rank_count=rank_count, ranks_in_node=in_node)


def split_bytes(kind: CollectiveKind, placement: Placement, message_bytes: float) -> SplitBytes:
    """What one collective over `placement` sends, by link (`docs/formulas.md`, Layouts).

    A ring leaves a node through one rank, so the link that m ranks share carries S once, and every other rank sends S
    within the node. Of an all-to-all, a node sends m (N - m) P / N to other nodes and each rank (m - 1) P / N within.
    """
    count, in_node = placement.rank_count, placement.ranks_in_node
    if kind is CollectiveKind.ALL_TO_ALL and in_node > 1:
        return SplitBytes(
            outer_bytes=in_node * (count - in_node) * message_bytes / count,
            inner_bytes=(in_node - 1) * message_bytes / count,
        )
    sent = sent_bytes(kind, count, message_bytes)
    return SplitBytes(
        outer_bytes=sent if placement.spans_nodes else 0.0,
        inner_bytes=sent if in_node > 1 else 0.0,
    )


def boundary_bytes(layout: ParallelLayout, stage_index: int, message_bytes: float) -> SplitBytes:
    """What the ranks of a stage send to the next one, P each, by link (`docs/formulas.md`, Layouts).

    Where groups fill nodes, each rank of a node sends P to another node. Where a node holds several groups, its last
    one sends to another node and the others stay within.
    """
    in_node = _groups_per_node(layout)
    groups = (
        index * layout.pipeline_parallel_size + stage_index + 1
        for index in range(smaller(layout.data_parallel_size, in_node))
    )
    leaves = [group % in_node == 0 for group in groups]
    senders = smaller(layout.tensor_parallel_size, layout.ranks_per_node)
    return SplitBytes(
        outer_bytes=senders * message_bytes if any(leaves) else 0.0,
        inner_bytes=0.0 if all(leaves) else message_bytes,
    )


def _groups_per_node(layout: ParallelLayout) -> int:
    """Tensor-parallel groups that a node holds whole; 1 where a group fills a node or more."""
    return layout.ranks_per_node // smaller(layout.tensor_parallel_size, layout.ranks_per_node)
