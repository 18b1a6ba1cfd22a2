"""How to run a model on the nodes at hand, one large instance or several smaller ones: the question and its answer."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.calibration import CollectiveTable
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.fabric import LINK, OPTIONAL_LINK, OPTIONAL_TABLE, OverFabric
from linkbound.domain.layout import LARGEST_PARALLEL_SIZE, ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.memory import MemoryNeed
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, instance, optional, whole
from linkbound.domain.workload import POSITIVE_SECONDS


@frozen(kw_only=True)
class LayoutRecommendationRequest(Checked, OverFabric):
    """How many instances of which size should run on the nodes of `workload`, and what does each lose over `link`?

    Losses are counted against `reference_link`, over which `baseline_ttft_seconds` of one prompt was measured with
    `baseline_tensor_parallel_size` ranks on nodes of the same kind; without it they are times.
    """

    workload: ClusterWorkload = field(metadata=instance(ClusterWorkload))
    link: Link = field(metadata=LINK)
    inner_link: Link | None = field(default=None, metadata=OPTIONAL_LINK)
    calibration: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    collective_table: CollectiveTable | None = field(default=None, metadata=OPTIONAL_TABLE)
    reference_link: Link = field(metadata=LINK)
    baseline_tensor_parallel_size: int = field(default=0, metadata=whole(0, LARGEST_PARALLEL_SIZE))
    baseline_ttft_seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))

    def cross_violations(self) -> Iterable[Violation]:
        """A link within nodes of several ranks, one calibration at most, a baseline with its size."""
        yield from self.fabric_violations(self.workload.ranks_per_node)
        if self.baseline_ttft_seconds is not None and not self.baseline_tensor_parallel_size:
            yield Violation("baseline_tensor_parallel_size", "is missing beside a baseline")
        if self.baseline_ttft_seconds is None and self.baseline_tensor_parallel_size:
            yield Violation("baseline_ttft_seconds", "is missing beside its tensor-parallel size")


@frozen(kw_only=True)
class LayoutOption:
    """`instance_count` instances of one layout: bytes and times of one prompt, and the loss over the slower link.

    `idle_node_count` nodes are left over. `last_ttft_seconds` is the time until every instance has prefilled its share
    of all prompts. `feasible` None: it can be cut so, and what it needs of the memory is not known; `reasons` say why
    it is not, or not known to be.
    """

    instance_count: int
    idle_node_count: int = 0
    layout: ParallelLayout
    sent_bytes_per_rank: int
    extra_ttft_seconds: Estimate
    extra_ttft_fraction: Estimate | None = None
    ttft_seconds: Estimate | None = None
    last_ttft_seconds: Estimate | None = None
    memory: MemoryNeed | None = None
    feasible: bool | None
    reasons: tuple[str, ...] = ()


@frozen(kw_only=True)
class LayoutRecommendation:
    """The options, best first, and why the first one is."""

    options: tuple[LayoutOption, ...]
    reasons: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    estimator_version: str
