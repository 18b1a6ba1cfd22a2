"""How one instance of a model is cut over ranks, and how ranks sit in nodes."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.choice import Choice
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.errors import Violation
from linkbound.domain.link import Link
from linkbound.domain.rules import CrossChecked, member, whole

LARGEST_PARALLEL_SIZE = 4096
LARGEST_RANKS_PER_NODE = 64
LARGEST_INSTANCE_RANK_COUNT = 65_536

PARALLEL_SIZE = whole(1, LARGEST_PARALLEL_SIZE)
RANKS_PER_NODE = whole(1, LARGEST_RANKS_PER_NODE)


class ExpertParallelism(Choice):
    """How routed experts are spread. UNSPECIFIED: every rank of a tensor-parallel group slices every expert."""

    UNSPECIFIED = "EXPERT_PARALLELISM_UNSPECIFIED"
    ALL_REDUCE = "EXPERT_PARALLELISM_ALL_REDUCE"
    ALL_GATHER = "EXPERT_PARALLELISM_ALL_GATHER"
    ALL_TO_ALL = "EXPERT_PARALLELISM_ALL_TO_ALL"
    UNKNOWN = "EXPERT_PARALLELISM_UNKNOWN"


LARGEST_RANK_LINK_COUNT = 4096

EXPERT_PARALLELISM = member(ExpertParallelism, ExpertParallelism.UNKNOWN)


class RankGroup(Choice):
    """The ranks that take part in a collective."""

    UNSPECIFIED = "RANK_GROUP_UNSPECIFIED"
    TENSOR = "RANK_GROUP_TENSOR"
    PIPELINE = "RANK_GROUP_PIPELINE"
    EXPERT = "RANK_GROUP_EXPERT"
    UNKNOWN = "RANK_GROUP_UNKNOWN"


# The hash is kept: what depends on a model and a layout alone is computed once for both.
@frozen(kw_only=True, cache_hash=True)
class ParallelLayout(CrossChecked):
    """TP x PP x DP ranks of one instance. Ranks are numbered tensor-parallel first, so a node fills with TP ranks."""

    tensor_parallel_size: int = field(metadata=PARALLEL_SIZE)
    pipeline_parallel_size: int = field(default=1, metadata=PARALLEL_SIZE)
    data_parallel_size: int = field(default=1, metadata=PARALLEL_SIZE)
    expert_parallelism: ExpertParallelism = field(default=ExpertParallelism.UNSPECIFIED, metadata=EXPERT_PARALLELISM)
    sequence_parallel: bool = False
    ranks_per_node: int = field(default=1, metadata=RANKS_PER_NODE)

    @property
    def rank_count(self) -> int:
        """Ranks of one instance."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size

    @property
    def node_count(self) -> int:
        """Nodes of one instance."""
        return -(-self.rank_count // self.ranks_per_node)

    def cross_violations(self) -> Iterable[Violation]:
        """Hold the ranks within bounds, and whole nodes filled."""
        if self.rank_count > LARGEST_INSTANCE_RANK_COUNT:
            yield Violation(
                "tensor_parallel_size", f"{self.rank_count} ranks in all are above {LARGEST_INSTANCE_RANK_COUNT}"
            )
        if self.ranks_per_node > 1 and self.rank_count % self.ranks_per_node:
            yield Violation("ranks_per_node", f"{self.ranks_per_node} does not divide {self.rank_count} ranks")


def layout_name(layout: ParallelLayout) -> str:
    """A layout as people say it: `TP8`, `TP4 x PP2`, `PP8`, `DP8, experts by all-to-all`."""
    sizes = (
        ("TP", layout.tensor_parallel_size),
        ("PP", layout.pipeline_parallel_size),
        ("DP", layout.data_parallel_size),
    )
    parts = " x ".join(f"{letters}{size}" for letters, size in sizes if size > 1) or "TP1"
    if layout.expert_parallelism in {ExpertParallelism.UNSPECIFIED, ExpertParallelism.UNKNOWN}:
        return parts
    return f"{parts}, experts by {layout.expert_parallelism.name.lower().replace('_', '-')}"


@frozen(kw_only=True)
class CollectiveTraffic:
    """What one kind of collective adds to a workload in the busiest stage.

    `sent_bytes_per_rank` go over the link between nodes, which the ranks of a node share; `inner_sent_bytes_per_rank`
    over one rank's link within a node.
    """

    kind: CollectiveKind
    rank_group: RankGroup
    count_per_pass: int
    sent_bytes_per_rank: int
    inner_sent_bytes_per_rank: int
    reason: str


def rank_link_violations(layout: ParallelLayout, link_count: int) -> Iterable[Violation]:
    """Links of single nodes are no more than the nodes of the instance."""
    if link_count > layout.node_count:
        nodes = "1 node" if layout.node_count == 1 else f"{layout.node_count} nodes"
        yield Violation(
            "rank_links", f"{link_count} links are more than the instance has nodes: {nodes}, one link each"
        )


def inner_link_violations(ranks_per_node: int, inner_link: Link | None) -> Iterable[Violation]:
    """Several ranks in a node need a link between them."""
    if ranks_per_node > 1 and inner_link is None:
        yield Violation("inner_link", f"is missing, with {ranks_per_node} ranks per node")
