"""Which layout of a model over given nodes: what each costs, what fits, and which to take."""

from __future__ import annotations

from collections.abc import Sequence

from linkbound.client import names, operations
from linkbound.client.link_reader import LinkOrRate, LinkReader
from linkbound.client.options import UNSET, Timeout
from linkbound.client.question import Question, question
from linkbound.domain.calibration import CollectiveTable
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.layout_comparison import DEFAULT_OUTPUT_TOKENS, LayoutComparison, LayoutComparisonRequest
from linkbound.domain.layout_recommendation import LayoutRecommendation, LayoutRecommendationRequest
from linkbound.domain.memory import (
    DEFAULT_CACHE_VALUE_BYTES,
    DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION,
    DEFAULT_MAX_NUM_BATCHED_TOKENS,
    MemoryFit,
    MemoryFitRequest,
)
from linkbound.domain.rules import as_tuple
from linkbound.domain.tp_projection import TpProjection, TpProjectionRequest
from linkbound.domain.workload import PrefillWorkload


def compare_layouts(  # noqa: PLR0913 - the keywords are the request
    *,
    model: str = "",
    node_count: int,
    link: LinkOrRate,
    prompt_tokens: int,
    request_count: int = 1,
    ranks_per_node: int = 1,
    inner_link: LinkOrRate | None = None,
    max_num_batched_tokens: int = DEFAULT_MAX_NUM_BATCHED_TOKENS,
    output_tokens: int = DEFAULT_OUTPUT_TOKENS,
    draft_token_count: int = 0,
    hardware: str = "",
    calibration: str = "",
    collective_table: CollectiveTable | None = None,
    model_config_json: str = "",
    timeout_seconds: Timeout = UNSET,
) -> Question[LayoutComparison]:
    """Every way to cut one instance of a model over `node_count` nodes: bytes, times, bubbles, memory, choices.

    For `request_count` requests in flight, each with a prompt and `output_tokens` that it generates. `hardware`, an
    id of the catalogue, says what a rank reads and holds. The rest is as for `estimate_prefill`. Formulas:
    `docs/formulas.md`, layouts.

    Raises InvalidArgumentError, NotFoundError for an unknown model, hardware or calibration, and the errors of the
    connection.
    """
    workload = ClusterWorkload(
        model=names.model_id(model),
        model_config_json=model_config_json,
        node_count=node_count,
        ranks_per_node=ranks_per_node,
        hardware=names.hardware_id(hardware),
        prompt_tokens=prompt_tokens,
        request_count=request_count,
        max_num_batched_tokens=max_num_batched_tokens,
    )
    links = LinkReader()
    request = links.build(
        lambda: LayoutComparisonRequest(
            workload=workload,
            link=links.read(link, "link"),
            inner_link=links.read_optional(inner_link, "inner_link"),
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
            draft_token_count=draft_token_count,
            output_tokens=output_tokens,
        )
    )
    return question(operations.COMPARE_LAYOUTS, request, timeout_seconds)


def recommend_layout(  # noqa: PLR0913 - the keywords are the request
    *,
    model: str = "",
    node_count: int,
    link: LinkOrRate,
    reference_link: LinkOrRate,
    prompt_tokens: int,
    request_count: int = 1,
    baseline_tensor_parallel_size: int = 0,
    baseline_ttft_seconds: float | None = None,
    ranks_per_node: int = 1,
    inner_link: LinkOrRate | None = None,
    max_num_batched_tokens: int = DEFAULT_MAX_NUM_BATCHED_TOKENS,
    hardware: str = "",
    calibration: str = "",
    collective_table: CollectiveTable | None = None,
    model_config_json: str = "",
    timeout_seconds: Timeout = UNSET,
) -> Question[LayoutRecommendation]:
    """How many instances of which size to run on `node_count` nodes, and what each loses over `link`.

    Losses are counted against `reference_link`, over which `baseline_ttft_seconds` of one prompt was measured with
    `baseline_tensor_parallel_size` ranks; without it they are times. The rest is as for `compare_layouts`.
    Formulas: `docs/formulas.md`, recommendation.

    Raises InvalidArgumentError, NotFoundError for an unknown model, hardware or calibration, and the errors of the
    connection.
    """
    workload = ClusterWorkload(
        model=names.model_id(model),
        model_config_json=model_config_json,
        node_count=node_count,
        ranks_per_node=ranks_per_node,
        hardware=names.hardware_id(hardware),
        prompt_tokens=prompt_tokens,
        request_count=request_count,
        max_num_batched_tokens=max_num_batched_tokens,
    )
    links = LinkReader()
    request = links.build(
        lambda: LayoutRecommendationRequest(
            workload=workload,
            link=links.read(link, "link"),
            inner_link=links.read_optional(inner_link, "inner_link"),
            reference_link=links.read(reference_link, "reference_link"),
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
            baseline_tensor_parallel_size=baseline_tensor_parallel_size,
            baseline_ttft_seconds=baseline_ttft_seconds,
        )
    )
    return question(operations.RECOMMEND_LAYOUT, request, timeout_seconds)


def project_tp_sizes(
    *,
    workload: PrefillWorkload,
    baseline_ttft_seconds: float,
    link: LinkOrRate,
    to_link: LinkOrRate,
    tensor_parallel_sizes: Sequence[int],
    hardware: str = "",
    timeout_seconds: Timeout = UNSET,
) -> Question[TpProjection]:
    """How the loss from `link` to `to_link` changes with the tensor-parallel size.

    `baseline_ttft_seconds` is measured over `link` at the size of `workload`. With `hardware`, an id of the
    catalogue, a size is feasible only where weights and caches fit into its memory. Formulas: `docs/formulas.md`,
    projection over tensor-parallel sizes.

    Raises InvalidArgumentError, NotFoundError for an unknown model or hardware, and the errors of the connection.
    """
    links = LinkReader()
    request = links.build(
        lambda: TpProjectionRequest(
            workload=workload,
            baseline_ttft_seconds=baseline_ttft_seconds,
            link=links.read(link, "link"),
            to_link=links.read(to_link, "to_link"),
            tensor_parallel_sizes=as_tuple(tensor_parallel_sizes),
            hardware=names.hardware_id(hardware),
        )
    )
    return question(operations.PROJECT_TP_SIZES, request, timeout_seconds)


def check_memory_fit(  # noqa: PLR0913 - the keywords are the request
    *,
    model: str = "",
    layout: ParallelLayout,
    hardware: str,
    context_tokens: int,
    request_count: int = 1,
    gpu_memory_utilization_fraction: float = DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION,
    cache_value_bytes: int = DEFAULT_CACHE_VALUE_BYTES,
    max_num_batched_tokens: int = DEFAULT_MAX_NUM_BATCHED_TOKENS,
    weight_bits_per_parameter: float | None = None,
    draft_token_count: int = 0,
    model_config_json: str = "",
    timeout_seconds: Timeout = UNSET,
) -> Question[MemoryFit]:
    """What a model cut as `layout` needs for `request_count` requests of `context_tokens` each, and what fits.

    Not fitting is an answer. `cache_value_bytes` is 2 for a 16-bit cache, 1 for an FP8 one. With draft tokens the
    MTP layers are held too. `weight_bits_per_parameter` replaces what the model says of its weights.
    `model_config_json`, the contents of a Hugging Face `config.json`, may take the place of `model`. Formulas:
    `docs/formulas.md`, memory.

    Raises InvalidArgumentError, NotFoundError for an unknown model or hardware, and the errors of the connection.
    """
    request = MemoryFitRequest(
        model=names.model_id(model),
        model_config_json=model_config_json,
        layout=layout,
        hardware=names.hardware_id(hardware),
        context_tokens=context_tokens,
        request_count=request_count,
        gpu_memory_utilization_fraction=gpu_memory_utilization_fraction,
        cache_value_bytes=cache_value_bytes,
        max_num_batched_tokens=max_num_batched_tokens,
        weight_bits_per_parameter=weight_bits_per_parameter,
        draft_token_count=draft_token_count,
    )
    return question(operations.CHECK_MEMORY_FIT, request, timeout_seconds)
