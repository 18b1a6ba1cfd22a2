"""Every way to cut one instance of a model over the same nodes: the question and its answer."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.calibration import CollectiveTable, calibration_violations
from linkbound.domain.errors import Violation
from linkbound.domain.estimate import Estimate
from linkbound.domain.layout import (
    LARGEST_INSTANCE_RANK_COUNT,
    PARALLEL_SIZE,
    RANKS_PER_NODE,
    ParallelLayout,
    inner_link_violations,
)
from linkbound.domain.link import Link
from linkbound.domain.memory import DEFAULT_MAX_NUM_BATCHED_TOKENS, MemoryNeed
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, instance, optional, whole
from linkbound.domain.workload import (
    INLINE_CONFIG,
    LARGEST_DRAFT_TOKEN_COUNT,
    LARGEST_PROMPT_TOKENS,
    LARGEST_REQUEST_COUNT,
    AsksOfModel,
    total_tokens_violations,
)

DEFAULT_OUTPUT_TOKENS = 128
"""What a request generates unless the question says so; the reasons of a choice say where it would be another one."""
LARGEST_OUTPUT_TOKENS = 10**6

NODE_COUNT = PARALLEL_SIZE


def nodes_violations(node_count: int, ranks_per_node: int, inner_link: Link | None) -> Iterable[Violation]:
    """The ranks of all nodes are one instance at most, and several in a node need a link between them."""
    if node_count * ranks_per_node > LARGEST_INSTANCE_RANK_COUNT:
        yield Violation(
            "node_count",
            f"{node_count} nodes of {ranks_per_node} ranks are above {LARGEST_INSTANCE_RANK_COUNT} ranks in all",
        )
    yield from inner_link_violations(ranks_per_node, inner_link)


@frozen(kw_only=True)
class LayoutComparisonRequest(Checked, AsksOfModel):
    """How should one instance of a model be cut over `node_count` nodes with `ranks_per_node` ranks each?

    For `request_count` requests in flight, each with a prompt and `output_tokens` that it generates. `link` is that of
    every node, `inner_link` that of each rank within one. `hardware`, an id of the catalogue, says what a rank reads
    and holds; empty: neither counts. `calibration`, an id of the catalogue, or `collective_table` say what collectives
    take. `model_config_json`, the contents of a Hugging Face `config.json`, may take the place of `model`.
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
    draft_token_count: int = field(default=0, metadata=whole(0, LARGEST_DRAFT_TOKEN_COUNT))
    output_tokens: int = field(default=DEFAULT_OUTPUT_TOKENS, metadata=whole(1, LARGEST_OUTPUT_TOKENS))

    def cross_violations(self) -> Iterable[Violation]:
        """One calibration at most, ranks that an instance can have, tokens that byte counts can hold."""
        yield from nodes_violations(self.node_count, self.ranks_per_node, self.inner_link)
        yield from total_tokens_violations(self.prompt_tokens, self.request_count)
        yield from calibration_violations(self.calibration, self.collective_table)


@frozen(kw_only=True)
class LayoutEstimate:
    """One layout: bytes of the busiest rank, times of all prompts, of one alone, and of decode passes; what it needs.

    Figures are given where it is not feasible too: they show the direction.
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
    feasible: bool
    reasons: tuple[str, ...] = ()


@frozen(kw_only=True)
class LayoutChoice:
    """One of the layouts, by its index, and why."""

    index: int
    reasons: tuple[str, ...] = ()


@frozen(kw_only=True)
class LayoutComparison:
    """The layouts, feasible ones first, and the choices among these."""

    layouts: tuple[LayoutEstimate, ...]
    single_stream: LayoutChoice | None = None
    batched: LayoutChoice | None = None
    assumptions: tuple[str, ...] = ()
    estimator_version: str
