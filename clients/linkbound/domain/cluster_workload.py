"""Prompts for one model on the nodes of a cluster, before it is said how the model is cut over their ranks."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.layout import LARGEST_INSTANCE_RANK_COUNT, PARALLEL_SIZE, RANKS_PER_NODE
from linkbound.domain.memory import DEFAULT_MAX_NUM_BATCHED_TOKENS
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import whole
from linkbound.domain.workload import (
    INLINE_CONFIG,
    LARGEST_PROMPT_TOKENS,
    LARGEST_REQUEST_COUNT,
    AsksOfModel,
    total_tokens_violations,
)


@frozen(kw_only=True)
class ClusterWorkload(AsksOfModel):
    """`request_count` prompts of `prompt_tokens` each on `node_count` nodes with `ranks_per_node` ranks each.

    `hardware`, an id of the catalogue, says what a rank reads and holds; empty: neither counts. `model_config_json`,
    the contents of a Hugging Face `config.json`, may take the place of `model`.
    """

    model: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    model_config_json: str = field(default="", metadata=INLINE_CONFIG)
    node_count: int = field(metadata=PARALLEL_SIZE)
    ranks_per_node: int = field(default=1, metadata=RANKS_PER_NODE)
    hardware: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    prompt_tokens: int = field(metadata=whole(1, LARGEST_PROMPT_TOKENS))
    request_count: int = field(default=1, metadata=whole(1, LARGEST_REQUEST_COUNT))
    max_num_batched_tokens: int = field(
        default=DEFAULT_MAX_NUM_BATCHED_TOKENS, metadata=whole(1, LARGEST_PROMPT_TOKENS)
    )

    @property
    def rank_count(self) -> int:
        """Ranks of all nodes."""
        return self.node_count * self.ranks_per_node

    def cross_violations(self) -> Iterable[Violation]:
        """Ranks that one instance can have, and tokens that byte counts of 64 bits can express."""
        if self.rank_count > LARGEST_INSTANCE_RANK_COUNT:
            yield Violation(
                "node_count",
                f"{self.node_count} nodes of {self.ranks_per_node} ranks are above {LARGEST_INSTANCE_RANK_COUNT} ranks"
                " in all",
            )
        yield from total_tokens_violations(self.prompt_tokens, self.request_count)
