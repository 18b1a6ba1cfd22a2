"""Every way to cut one instance of a model over the same nodes: the question and its answer."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.calibration import CollectiveTable
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.fabric import LINK, OPTIONAL_LINK, OPTIONAL_TABLE, OverFabric
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.memory import MemoryNeed
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, instance, whole
from linkbound.domain.workload import LARGEST_DRAFT_TOKEN_COUNT

DEFAULT_OUTPUT_TOKENS = 128
"""What a request generates unless the question says so; the reasons of a choice say where it would be another one."""
LARGEST_OUTPUT_TOKENS = 10**6


@frozen(kw_only=True)
class LayoutComparisonRequest(Checked, OverFabric):
    """How should one instance of a model be cut over all nodes of `workload`?

    Its requests are in flight together, and each generates `output_tokens` behind its prompt.
    """

    workload: ClusterWorkload = field(metadata=instance(ClusterWorkload))
    link: Link = field(metadata=LINK)
    inner_link: Link | None = field(default=None, metadata=OPTIONAL_LINK)
    calibration: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    collective_table: CollectiveTable | None = field(default=None, metadata=OPTIONAL_TABLE)
    draft_token_count: int = field(default=0, metadata=whole(0, LARGEST_DRAFT_TOKEN_COUNT))
    output_tokens: int = field(default=DEFAULT_OUTPUT_TOKENS, metadata=whole(1, LARGEST_OUTPUT_TOKENS))

    def cross_violations(self) -> Iterable[Violation]:
        """Several ranks in a node need a link between them; one calibration at most."""
        yield from self.fabric_violations(self.workload.ranks_per_node)


@frozen(kw_only=True)
class LayoutEstimate:
    """One layout: bytes of the busiest rank, times of all prompts, of one alone, and of decode passes; what it needs.

    Where several ranks share the link of a node, `sent_bytes_per_rank` are those of the busiest node over it. Figures
    are given where it is not feasible too: they show the direction. `feasible` None: it can be cut so, and what it
    needs of the memory is not known; `reasons` say why it is not, or not known to be.
    """

    layout: ParallelLayout
    sent_bytes_per_rank: int
    inner_sent_bytes_per_rank: int
    network_seconds: Estimate
    single_network_seconds: Estimate
    pass_seconds: Estimate
    single_pass_seconds: Estimate
    bubble_fraction: float
    passes_in_flight: int
    memory: MemoryNeed | None = None
    feasible: bool | None
    reasons: tuple[str, ...] = ()


@frozen(kw_only=True)
class LayoutChoice:
    """One of the layouts, by its index, and why; `undecided_indices` may be ahead of it, as far as figures tell."""

    index: int
    reasons: tuple[str, ...] = ()
    undecided_indices: tuple[int, ...] = ()


@frozen(kw_only=True)
class LayoutComparison:
    """The layouts, feasible ones first, and the choices among these."""

    layouts: tuple[LayoutEstimate, ...]
    single_stream: LayoutChoice | None = None
    batched: LayoutChoice | None = None
    assumptions: tuple[str, ...] = ()
    estimator_version: str
