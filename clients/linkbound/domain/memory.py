"""What a model and its requests need in memory: the question and its answer."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from linkbound.domain.catalog import WeightFormatSource
from linkbound.domain.errors import Violation
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.names import CATALOG_NAME, OPTIONAL_CATALOG_NAME
from linkbound.domain.rules import Checked, instance, optional, real, whole
from linkbound.domain.workload import (
    INLINE_CONFIG,
    LARGEST_DRAFT_TOKEN_COUNT,
    LARGEST_PROMPT_TOKENS,
    LARGEST_REQUEST_COUNT,
    AsksOfModel,
    total_tokens_violations,
)

DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION = 0.9
"""What vLLM takes of the memory unless it is told otherwise."""
DEFAULT_CACHE_VALUE_BYTES = 2
DEFAULT_MAX_NUM_BATCHED_TOKENS = 8192


@frozen(kw_only=True)
class MemoryFitRequest(Checked, AsksOfModel):
    """Does an instance of a model, cut as `layout`, fit with `request_count` requests of `context_tokens` each?

    `model_config_json`, the contents of a Hugging Face `config.json`, may take the place of `model`.
    `cache_value_bytes` is 2 for a 16-bit cache and 1 for an FP8 one. With draft tokens the MTP layers are held too.
    `weight_bits_per_parameter` replaces what the model says about how its weights are stored.
    """

    model: str = field(default="", metadata=OPTIONAL_CATALOG_NAME)
    model_config_json: str = field(default="", metadata=INLINE_CONFIG)
    layout: ParallelLayout = field(metadata=instance(ParallelLayout))
    hardware: str = field(metadata=CATALOG_NAME)
    context_tokens: int = field(metadata=whole(1, LARGEST_PROMPT_TOKENS))
    request_count: int = field(default=1, metadata=whole(1, LARGEST_REQUEST_COUNT))
    gpu_memory_utilization_fraction: float = field(default=DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION, metadata=real(1))
    cache_value_bytes: int = field(default=DEFAULT_CACHE_VALUE_BYTES, metadata=whole(1, 2))
    max_num_batched_tokens: int = field(
        default=DEFAULT_MAX_NUM_BATCHED_TOKENS, metadata=whole(1, LARGEST_PROMPT_TOKENS)
    )
    weight_bits_per_parameter: float | None = field(default=None, metadata=optional(real(64)))
    draft_token_count: int = field(default=0, metadata=whole(0, LARGEST_DRAFT_TOKEN_COUNT))

    def cross_violations(self) -> Iterable[Violation]:
        """Hold the tokens of all requests within what byte counts of 64 bits can express."""
        yield from total_tokens_violations(self.context_tokens, self.request_count, "context_tokens")


@frozen(kw_only=True)
class MemoryNeed:
    """Memory of the fullest rank by purpose, in bytes, beside what the engine may use.

    `weight_format_source`: where the format comes from in which the weights are counted.
    """

    sliced_weight_bytes: int
    replicated_weight_bytes: int
    kv_cache_bytes: int
    activation_bytes: int
    communication_buffer_bytes: int
    runtime_bytes: int
    total_bytes: int
    usable_bytes: int
    weight_format_source: WeightFormatSource = WeightFormatSource.UNSPECIFIED


@frozen(kw_only=True)
class MemoryFit:
    """Whether everything fits; not fitting is an answer. Bytes are of the fullest rank, headroom may be negative."""

    fits: bool
    weight_bytes: int
    kv_cache_bytes: int
    headroom_bytes: int
    smallest_tp_that_fits: int | None = None
    need: MemoryNeed
    largest_request_count: int
    layout: ParallelLayout
    assumptions: tuple[str, ...] = ()
    estimator_version: str
