"""What each algorithm sends over which link, and in how many steps, with several ranks in a node."""

from __future__ import annotations

from attrs import frozen

from estimator_service.core.collectives import ring_step_count, sent_bytes
from estimator_service.core.elementwise import ceil_quotient
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind

TREE_PAYLOADS = 2
"""Payloads that an inner rank of two binary trees sends: in one it sends half of the payload to its parent and half to
each of two children, in the other, a leaf, half to its parent. Two ranks send one each; the library counts two."""


@frozen(kw_only=True)
class Group:
    """Ranks in whole nodes. A node is one rank or more, and has one link to the other nodes."""

    rank_count: int
    ranks_per_node: int = 1

    @property
    def node_count(self) -> int:
        """Nodes of the group."""
        return ceil_quotient(self.rank_count, self.ranks_per_node)

    @property
    def depth(self) -> int:
        """Levels of a binary tree over the nodes: ceil(log2 n)."""
        return (self.node_count - 1).bit_length()


@frozen(kw_only=True)
class SentBytes:
    """Bytes one node's link to the others carries in one direction, and one rank's link within the node."""

    outer: float
    inner: float


@frozen(kw_only=True)
class Steps:
    """Sequential steps between nodes and within them."""

    outer: int
    inner: int


def algorithm_sent_bytes(
    algorithm: CollectiveAlgorithm, kind: CollectiveKind, group: Group, message_bytes: float
) -> SentBytes:
    """Payload bytes of one collective on each kind of link; of trees the mean over the ranks.

    A ring passes each node once, so its link carries what each rank sends: S = r (N - 1) P / N. Two binary trees over
    the n nodes, chains over the R ranks of a node: 2 (n - 1) P / n and 2 (R - 1) P / R on average. One-shot: every rank
    sends its message, P of an all-reduce or send and P / N of the others, to each other one
    (`docs/formulas.md`, Collective algorithms).
    """
    if algorithm is CollectiveAlgorithm.DOUBLE_BINARY_TREE:
        return SentBytes(
            outer=sent_bytes(CollectiveKind.ALL_REDUCE, group.node_count, message_bytes),
            inner=sent_bytes(CollectiveKind.ALL_REDUCE, group.ranks_per_node, message_bytes),
        )
    if algorithm is CollectiveAlgorithm.ONE_SHOT and kind is not CollectiveKind.SEND_RECEIVE:
        message = message_bytes if kind is CollectiveKind.ALL_REDUCE else message_bytes / group.rank_count
        others = group.rank_count - group.ranks_per_node
        return SentBytes(outer=group.ranks_per_node * others * message, inner=(group.ranks_per_node - 1) * message)
    around = sent_bytes(kind, group.rank_count, message_bytes)
    return SentBytes(outer=around if group.node_count > 1 else 0.0, inner=around if group.ranks_per_node > 1 else 0.0)


def busiest_sent_bytes(
    algorithm: CollectiveAlgorithm, kind: CollectiveKind, group: Group, message_bytes: float
) -> SentBytes:
    """The same on the busiest link: of two binary trees 2 P (`docs/formulas.md`, Collective algorithms)."""
    if algorithm is not CollectiveAlgorithm.DOUBLE_BINARY_TREE:
        return algorithm_sent_bytes(algorithm, kind, group, message_bytes)
    busiest = TREE_PAYLOADS * message_bytes
    return SentBytes(outer=busiest if group.node_count > 1 else 0.0, inner=busiest if group.ranks_per_node > 1 else 0.0)


def algorithm_steps(algorithm: CollectiveAlgorithm, kind: CollectiveKind, group: Group) -> Steps:
    """Steps that follow one another (`docs/formulas.md`, Collective algorithms).

    A ring: r (N - 1), r (n - 1) of them between n nodes. Trees: 2 ceil(log2 n) between nodes, 2 (R - 1) along the R
    ranks of a node. One-shot: 1.
    """
    match algorithm:
        case CollectiveAlgorithm.DOUBLE_BINARY_TREE:
            return Steps(outer=2 * group.depth, inner=2 * (group.ranks_per_node - 1))
        case CollectiveAlgorithm.ONE_SHOT:
            return Steps(outer=1, inner=0) if group.node_count > 1 else Steps(outer=0, inner=1)
    steps = ring_step_count(kind, group.rank_count)
    outer = ring_step_count(kind, group.node_count)
    return Steps(outer=outer, inner=steps - outer)
