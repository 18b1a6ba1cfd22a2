"""What runs on a tensor-parallel group: prompts, or generation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from attrs import field, frozen

from linkbound.domain.catalog import LARGEST_CONFIG_BYTES
from linkbound.domain.errors import Violation
from linkbound.domain.layout import EXPERT_PARALLELISM, PARALLEL_SIZE, RANKS_PER_NODE, ExpertParallelism, ParallelLayout
from linkbound.domain.names import OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import CrossChecked, document, optional, real, whole

LARGEST_REQUEST_COUNT = 100_000
LARGEST_PROMPT_TOKENS = 10**9
LARGEST_TOTAL_PROMPT_TOKENS = 10**11
"""Prompt tokens of all requests together; it keeps byte counts within 64 bits."""
LARGEST_DRAFT_TOKEN_COUNT = 64
LARGEST_SECONDS = 1e9

LARGEST_INLINE_CONFIG_BYTES = LARGEST_CONFIG_BYTES
"""Of a config beside a question: as of one that is imported. Messages of up to 16 MiB are received."""

TENSOR_PARALLEL_SIZE = PARALLEL_SIZE
INLINE_CONFIG = document(LARGEST_INLINE_CONFIG_BYTES)
POSITIVE_SECONDS = real(LARGEST_SECONDS)


class AsksOfModel(CrossChecked):
    """Something asked of a model of the catalogue, or of one whose config comes with the question."""

    __slots__ = ()

    model: str
    model_config_json: str

    def missing_violations(self) -> Iterable[Violation]:
        """A model is named or its config brought, and not both."""
        if not self.model and not self.model_config_json:
            yield Violation("model", "is missing, and so is model_config_json")
        if self.model and self.model_config_json:
            yield Violation("model_config_json", "is given beside a model")


class CutIntoRanks(AsksOfModel):
    """What one instance of a model does, which is cut over ranks."""

    __slots__ = ()

    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int
    expert_parallelism: ExpertParallelism
    sequence_parallel: bool
    ranks_per_node: int

    @property
    def layout(self) -> ParallelLayout:
        """How the instance is cut."""
        return _layout_of(
            self.tensor_parallel_size,
            self.pipeline_parallel_size,
            self.data_parallel_size,
            self.expert_parallelism,
            self.ranks_per_node,
            sequence_parallel=self.sequence_parallel,
        )


def total_tokens_violations(tokens: int, request_count: int, field_name: str = "prompt_tokens") -> Iterable[Violation]:
    """The tokens of all requests together are within what byte counts of 64 bits can express."""
    if tokens * request_count > LARGEST_TOTAL_PROMPT_TOKENS:
        yield Violation(
            field_name,
            f"{tokens} times {request_count} requests is above {LARGEST_TOTAL_PROMPT_TOKENS} tokens in all",
        )


@frozen(kw_only=True)
class PrefillWorkload(CutIntoRanks):
    """`request_count` prompts of `prompt_tokens` each that arrive together at one instance of a model.

    `model_config_json`, the contents of a Hugging Face `config.json`, may take the place of `model`.
    """

    model: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    tensor_parallel_size: int = field(metadata=TENSOR_PARALLEL_SIZE)
    prompt_tokens: int = field(metadata=whole(1, LARGEST_PROMPT_TOKENS))
    request_count: int = field(default=1, metadata=whole(1, LARGEST_REQUEST_COUNT))
    max_num_batched_tokens: int | None = field(default=None, metadata=optional(whole(1, LARGEST_PROMPT_TOKENS)))
    pipeline_parallel_size: int = field(default=1, metadata=PARALLEL_SIZE)
    data_parallel_size: int = field(default=1, metadata=PARALLEL_SIZE)
    expert_parallelism: ExpertParallelism = field(default=ExpertParallelism.UNSPECIFIED, metadata=EXPERT_PARALLELISM)
    sequence_parallel: bool = False
    ranks_per_node: int = field(default=1, metadata=RANKS_PER_NODE)
    model_config_json: str = field(default="", metadata=INLINE_CONFIG)

    @property
    def total_prompt_tokens(self) -> int:
        """Tokens of all prompts together."""
        return self.prompt_tokens * self.request_count

    def cross_violations(self) -> Iterable[Violation]:
        """Hold the total within what byte counts of 64 bits can express, and the layout to its rules."""
        yield from self.layout.cross_violations()
        yield from total_tokens_violations(self.prompt_tokens, self.request_count)


@frozen(kw_only=True)
class DecodeWorkload(CutIntoRanks):
    """`request_count` requests that generate at the same time, each with `draft_token_count` drafts checked per pass.

    `acceptance_length_tokens` is what a pass yields per request on average; it is never assumed where there are drafts.
    `hardware` is an id of the catalogue; empty: no memory rate bounds a pass. `model_config_json`, the contents of a
    Hugging Face `config.json`, may take the place of `model`.
    """

    model: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    tensor_parallel_size: int = field(metadata=TENSOR_PARALLEL_SIZE)
    request_count: int = field(default=1, metadata=whole(1, LARGEST_REQUEST_COUNT))
    draft_token_count: int = field(default=0, metadata=whole(0, LARGEST_DRAFT_TOKEN_COUNT))
    acceptance_length_tokens: float | None = field(
        default=None, metadata=optional(real(1.0 + LARGEST_DRAFT_TOKEN_COUNT))
    )
    hardware: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    pipeline_parallel_size: int = field(default=1, metadata=PARALLEL_SIZE)
    data_parallel_size: int = field(default=1, metadata=PARALLEL_SIZE)
    expert_parallelism: ExpertParallelism = field(default=ExpertParallelism.UNSPECIFIED, metadata=EXPERT_PARALLELISM)
    sequence_parallel: bool = False
    ranks_per_node: int = field(default=1, metadata=RANKS_PER_NODE)
    model_config_json: str = field(default="", metadata=INLINE_CONFIG)
    context_tokens: int | None = field(default=None, metadata=optional(whole(1, LARGEST_PROMPT_TOKENS)))

    @property
    def rows_per_request(self) -> int:
        """Token rows of one request in a pass: the newest token and its drafts."""
        return 1 + self.draft_token_count

    def cross_violations(self) -> Iterable[Violation]:
        """Hold acceptance to what a pass can yield, tokens to what byte counts can hold, the layout to its rules."""
        yield from self.layout.cross_violations()
        if self.context_tokens is not None:
            yield from total_tokens_violations(self.context_tokens, self.request_count, "context_tokens")
        accepted = self.acceptance_length_tokens
        if accepted is not None and not 1 <= accepted <= self.rows_per_request:
            yield Violation(
                "acceptance_length_tokens",
                f"{accepted} is not from 1 to {self.rows_per_request}, one plus the draft tokens",
            )


# Every answer asks for the layout several times. An equal one is the same object, so it is compared at a glance.
@lru_cache(maxsize=1024, typed=True)
def _layout_of(
    tensor_parallel_size: int,
    pipeline_parallel_size: int,
    data_parallel_size: int,
    expert_parallelism: ExpertParallelism,
    ranks_per_node: int,
    *,
    sequence_parallel: bool,
) -> ParallelLayout:
    return ParallelLayout(
        tensor_parallel_size=tensor_parallel_size,
        pipeline_parallel_size=pipeline_parallel_size,
        data_parallel_size=data_parallel_size,
        expert_parallelism=expert_parallelism,
        sequence_parallel=sequence_parallel,
        ranks_per_node=ranks_per_node,
    )
