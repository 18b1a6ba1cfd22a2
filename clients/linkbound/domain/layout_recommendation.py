"""How to run a model on the nodes at hand, one large instance or several smaller ones: the question and its answer."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.calibration import CollectiveTable, calibration_violations
from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import LARGEST_PARALLEL_SIZE, RANKS_PER_NODE, ParallelLayout
from linkbound.domain.layout_comparison import NODE_COUNT, nodes_violations
from linkbound.domain.link import Link
from linkbound.domain.memory import DEFAULT_MAX_NUM_BATCHED_TOKENS, MemoryNeed
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, instance, optional, whole
from linkbound.domain.workload import (
    INLINE_CONFIG,
    LARGEST_PROMPT_TOKENS,
    LARGEST_REQUEST_COUNT,
    POSITIVE_SECONDS,
    AsksOfModel,
    total_tokens_violations,
)


@frozen(kw_only=True)
class LayoutRecommendationRequest(Checked, AsksOfModel):
    """How many instances of which size should run on `node_count` nodes, and what does each lose over `link`?

    Losses are counted against `reference_link`, over which `baseline_ttft_seconds` of one prompt was measured with
    `baseline_tensor_parallel_size` ranks on nodes of the same kind; without it they are times. The rest is as in a
    `LayoutComparisonRequest`.
    """

    model: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    model_config_json: str = field(default="", metadata=INLINE_CONFIG)
    node_count: int = field(metadata=NODE_COUNT)
    ranks_per_node: int = field(default=1, metadata=RANKS_PER_NODE)
    link: Link = field(metadata=instance(Link))
    inner_link: Link | None = field(default=None, metadata=optional(instance(Link)))
    prompt_tokens: int = field(metadata=whole(1, LARGEST_PROMPT_TOKENS))
    request_count: int = field(default=1, metadata=whole(1, LARGEST_REQUEST_COUNT))
    max_num_batched_tokens: int = field(
        default=DEFAULT_MAX_NUM_BATCHED_TOKENS, metadata=whole(1, LARGEST_PROMPT_TOKENS)
    )
    hardware: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    calibration: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    collective_table: CollectiveTable | None = field(default=None, metadata=optional(instance(CollectiveTable)))
    reference_link: Link = field(metadata=instance(Link))
    baseline_tensor_parallel_size: int = field(default=0, metadata=whole(0, LARGEST_PARALLEL_SIZE))
    baseline_ttft_seconds: float | None = field(default=None, metadata=optional(POSITIVE_SECONDS))

    def cross_violations(self) -> Iterable[Violation]:
        """Ranks that an instance can have, and a baseline with the size that it was measured at."""
        yield from nodes_violations(self.node_count, self.ranks_per_node, self.inner_link)
        yield from total_tokens_violations(self.prompt_tokens, self.request_count)
        yield from calibration_violations(self.calibration, self.collective_table)
        if self.baseline_ttft_seconds is not None and not self.baseline_tensor_parallel_size:
            yield Violation("baseline_tensor_parallel_size", "is missing beside a baseline")
        if self.baseline_ttft_seconds is None and self.baseline_tensor_parallel_size:
            yield Violation("baseline_ttft_seconds", "is missing beside its tensor-parallel size")


@frozen(kw_only=True)
class LayoutOption:
    """`instance_count` instances of one layout: bytes and times of one prompt, and the loss over the slower link.

    `last_ttft_seconds` is the time until every instance has prefilled its share of all prompts.
    """

    instance_count: int
    layout: ParallelLayout
    sent_bytes_per_rank: int
    extra_ttft_seconds: Estimate
    extra_ttft_fraction: Estimate | None = None
    ttft_seconds: Estimate | None = None
    last_ttft_seconds: Estimate | None = None
    memory: MemoryNeed | None = None
    feasible: bool
    reasons: tuple[str, ...] = ()


@frozen(kw_only=True)
class LayoutRecommendation:
    """The options, best first, and why the first one is."""

    options: tuple[LayoutOption, ...]
    reasons: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    estimator_version: str
