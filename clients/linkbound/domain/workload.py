"""What runs on a tensor-parallel group: prompts, or generation."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.errors import Violation
from linkbound.domain.names import CATALOG_NAME, OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import CrossChecked, optional, real, whole

LARGEST_TENSOR_PARALLEL_SIZE = 4096
LARGEST_REQUEST_COUNT = 100_000
LARGEST_PROMPT_TOKENS = 10**9
LARGEST_TOTAL_PROMPT_TOKENS = 10**11
"""Prompt tokens of all requests together; it keeps byte counts within 64 bits."""
LARGEST_DRAFT_TOKEN_COUNT = 64
LARGEST_SECONDS = 1e9

TENSOR_PARALLEL_SIZE = whole(1, LARGEST_TENSOR_PARALLEL_SIZE)
POSITIVE_SECONDS = real(LARGEST_SECONDS)


@frozen(kw_only=True)
class PrefillWorkload(CrossChecked):
    """`request_count` prompts of `prompt_tokens` each that arrive together at one tensor-parallel group."""

    model: str = field(metadata=CATALOG_NAME)
    tensor_parallel_size: int = field(metadata=TENSOR_PARALLEL_SIZE)
    prompt_tokens: int = field(metadata=whole(1, LARGEST_PROMPT_TOKENS))
    request_count: int = field(default=1, metadata=whole(1, LARGEST_REQUEST_COUNT))
    max_num_batched_tokens: int | None = field(default=None, metadata=optional(whole(1, LARGEST_PROMPT_TOKENS)))

    @property
    def total_prompt_tokens(self) -> int:
        """Tokens of all prompts together."""
        return self.prompt_tokens * self.request_count

    def cross_violations(self) -> Iterable[Violation]:
        """Hold the total within what byte counts of 64 bits can express."""
        if self.total_prompt_tokens > LARGEST_TOTAL_PROMPT_TOKENS:
            yield Violation(
                "prompt_tokens",
                f"{self.prompt_tokens} times {self.request_count} requests is above"
                f" {LARGEST_TOTAL_PROMPT_TOKENS} tokens in all",
            )


@frozen(kw_only=True)
class DecodeWorkload(CrossChecked):
    """`request_count` requests that generate at the same time, each with `draft_token_count` drafts checked per pass.

    `acceptance_length_tokens` is what a pass yields per request on average; it is never assumed where there are drafts.
    `hardware` is an id of the catalogue; empty: no memory rate bounds a pass.
    """

    model: str = field(metadata=CATALOG_NAME)
    tensor_parallel_size: int = field(metadata=TENSOR_PARALLEL_SIZE)
    request_count: int = field(default=1, metadata=whole(1, LARGEST_REQUEST_COUNT))
    draft_token_count: int = field(default=0, metadata=whole(0, LARGEST_DRAFT_TOKEN_COUNT))
    acceptance_length_tokens: float | None = field(
        default=None, metadata=optional(real(1.0 + LARGEST_DRAFT_TOKEN_COUNT))
    )
    hardware: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)

    @property
    def rows_per_request(self) -> int:
        """Token rows of one request in a pass: the newest token and its drafts."""
        return 1 + self.draft_token_count

    def cross_violations(self) -> Iterable[Violation]:
        """Hold the acceptance length within what a pass can yield."""
        accepted = self.acceptance_length_tokens
        if accepted is not None and not 1 <= accepted <= self.rows_per_request:
            yield Violation(
                "acceptance_length_tokens",
                f"{accepted} is not from 1 to {self.rows_per_request}, one plus the draft tokens",
            )
