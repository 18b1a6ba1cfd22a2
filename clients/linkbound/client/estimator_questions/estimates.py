"""What one collective, prefill, decode or training step costs."""

from __future__ import annotations

from collections.abc import Sequence

from linkbound.client import names, operations
from linkbound.client.link_reader import LinkOrRate, LinkReader
from linkbound.client.options import UNSET, Timeout
from linkbound.client.question import Question, question
from linkbound.domain.calibration import CollectiveTable
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.collective_estimate import CollectiveEstimate, CollectiveRequest
from linkbound.domain.decode import DecodeEstimate, DecodeRequest
from linkbound.domain.layout import ExpertParallelism
from linkbound.domain.prefill import PrefillEstimate, PrefillRequest
from linkbound.domain.training import DEFAULT_VALUE_BYTES, TrainingSharding, TrainingStepEstimate, TrainingStepRequest
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload


def estimate_prefill(  # noqa: PLR0913 - the keywords are the request
    *,
    model: str = "",
    tensor_parallel_size: int,
    prompt_tokens: int,
    link: LinkOrRate,
    request_count: int = 1,
    max_num_batched_tokens: int | None = None,
    to_link: LinkOrRate | None = None,
    baseline_ttft_seconds: float | None = None,
    pipeline_parallel_size: int = 1,
    data_parallel_size: int = 1,
    expert_parallelism: ExpertParallelism = ExpertParallelism.UNSPECIFIED,
    sequence_parallel: bool = False,
    ranks_per_node: int = 1,
    inner_link: LinkOrRate | None = None,
    rank_links: Sequence[LinkOrRate] = (),
    calibration: str = "",
    collective_table: CollectiveTable | None = None,
    model_config_json: str = "",
    timeout_seconds: Timeout = UNSET,
) -> Question[PrefillEstimate]:
    """Bytes on the wire and time bounds of `request_count` prompts of `prompt_tokens` each that arrive together.

    With `to_link`, what changes when the group moves from `link` to it; with `baseline_ttft_seconds`, measured
    over `link` and of the last request, the same as a fraction. `model_config_json`, the contents of a Hugging Face
    `config.json`, may take the place of `model`. With several `ranks_per_node`, `link` is that of a node and
    `inner_link` that of each rank within it; `rank_links` are those of single nodes that have another one. A
    `calibration` of the catalogue, or a `collective_table` in its place, says how long collectives take. Formulas:
    `docs/formulas.md`, prefill and layouts.

    Raises InvalidArgumentError, NotFoundError for an unknown model or calibration, and the errors of the
    connection.
    """
    workload = PrefillWorkload(
        model=names.model_id(model),
        tensor_parallel_size=tensor_parallel_size,
        prompt_tokens=prompt_tokens,
        request_count=request_count,
        max_num_batched_tokens=max_num_batched_tokens,
        pipeline_parallel_size=pipeline_parallel_size,
        data_parallel_size=data_parallel_size,
        expert_parallelism=expert_parallelism,
        sequence_parallel=sequence_parallel,
        ranks_per_node=ranks_per_node,
        model_config_json=model_config_json,
    )
    links = LinkReader()
    request = links.build(
        lambda: PrefillRequest(
            workload=workload,
            link=links.read(link, "link"),
            to_link=links.read_optional(to_link, "to_link"),
            baseline_ttft_seconds=baseline_ttft_seconds,
            inner_link=links.read_optional(inner_link, "inner_link"),
            rank_links=links.read_each(rank_links, "rank_links"),
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
        )
    )
    return question(operations.ESTIMATE_PREFILL, request, timeout_seconds)


def estimate_decode(  # noqa: PLR0913 - the keywords are the request
    *,
    model: str = "",
    tensor_parallel_size: int,
    link: LinkOrRate,
    request_count: int = 1,
    draft_token_count: int = 0,
    acceptance_length_tokens: float | None = None,
    hardware: str = "",
    to_link: LinkOrRate | None = None,
    context_tokens: int | None = None,
    pipeline_parallel_size: int = 1,
    data_parallel_size: int = 1,
    expert_parallelism: ExpertParallelism = ExpertParallelism.UNSPECIFIED,
    sequence_parallel: bool = False,
    ranks_per_node: int = 1,
    inner_link: LinkOrRate | None = None,
    rank_links: Sequence[LinkOrRate] = (),
    calibration: str = "",
    collective_table: CollectiveTable | None = None,
    model_config_json: str = "",
    timeout_seconds: Timeout = UNSET,
) -> Question[DecodeEstimate]:
    """Bytes, pass time and traffic while `request_count` requests generate at the same time.

    `acceptance_length_tokens` is what a pass yields for each request on average; with draft tokens it is never
    assumed. `hardware`, an id of the catalogue, bounds a pass by its memory rate; with `context_tokens` that each
    request has in its cache, reading it counts too. The rest is as for `estimate_prefill`. Formulas:
    `docs/formulas.md`, decode and layouts.

    Raises InvalidArgumentError, NotFoundError for an unknown model, hardware or calibration, and the errors of the
    connection.
    """
    workload = DecodeWorkload(
        model=names.model_id(model),
        tensor_parallel_size=tensor_parallel_size,
        request_count=request_count,
        draft_token_count=draft_token_count,
        acceptance_length_tokens=acceptance_length_tokens,
        hardware=names.hardware_id(hardware),
        pipeline_parallel_size=pipeline_parallel_size,
        data_parallel_size=data_parallel_size,
        expert_parallelism=expert_parallelism,
        sequence_parallel=sequence_parallel,
        ranks_per_node=ranks_per_node,
        model_config_json=model_config_json,
        context_tokens=context_tokens,
    )
    links = LinkReader()
    request = links.build(
        lambda: DecodeRequest(
            workload=workload,
            link=links.read(link, "link"),
            to_link=links.read_optional(to_link, "to_link"),
            inner_link=links.read_optional(inner_link, "inner_link"),
            rank_links=links.read_each(rank_links, "rank_links"),
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
        )
    )
    return question(operations.ESTIMATE_DECODE, request, timeout_seconds)


def estimate_collective(  # noqa: PLR0913 - the keywords are the request
    *,
    kind: CollectiveKind,
    rank_count: int,
    link: LinkOrRate,
    message_bytes: int | None = None,
    ranks_per_node: int = 1,
    inner_link: LinkOrRate | None = None,
    algorithm: CollectiveAlgorithm = CollectiveAlgorithm.UNSPECIFIED,
    calibration: str = "",
    collective_table: CollectiveTable | None = None,
    timeout_seconds: Timeout = UNSET,
) -> Question[CollectiveEstimate]:
    """Bytes of one rank, time and bandwidth of one collective of `message_bytes` among `rank_count` ranks.

    Without a size only rates are answered. With several ranks in a node, `link` is between nodes and `inner_link`
    within them. Bytes and bounds are of `algorithm`, of a ring where none is given. A `calibration` of the
    catalogue, or a `collective_table` in its place, says how long collectives take. Formulas: `docs/formulas.md`,
    collectives.

    Raises InvalidArgumentError, NotFoundError for an unknown calibration, and the errors of the connection.
    """
    links = LinkReader()
    request = links.build(
        lambda: CollectiveRequest(
            kind=kind,
            rank_count=rank_count,
            link=links.read(link, "link"),
            message_bytes=message_bytes,
            ranks_per_node=ranks_per_node,
            inner_link=links.read_optional(inner_link, "inner_link"),
            algorithm=algorithm,
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
        )
    )
    return question(operations.ESTIMATE_COLLECTIVE, request, timeout_seconds)


def estimate_training_step(  # noqa: PLR0913 - the keywords are the request
    *,
    gradient_bytes: int | None = None,
    rank_count: int,
    link: LinkOrRate,
    compute_step_seconds: float,
    model: str = "",
    lora_parameters: int | None = None,
    sharding: TrainingSharding = TrainingSharding.UNSPECIFIED,
    value_bytes: int = DEFAULT_VALUE_BYTES,
    calibration: str = "",
    collective_table: CollectiveTable | None = None,
    model_config_json: str = "",
    timeout_seconds: Timeout = UNSET,
) -> Question[TrainingStepEstimate]:
    """Exchange and step time of data-parallel training on `rank_count` nodes.

    What is trained is given as `gradient_bytes`, or as a `model`: all of it, or `lora_parameters` of adapters.
    `model_config_json`, the contents of a Hugging Face `config.json`, may take the place of `model`.
    `compute_step_seconds` is the step time of one node alone at the same batch per node. A `calibration` of the
    catalogue, or a `collective_table` in its place, says how long collectives take. Formulas: `docs/formulas.md`,
    training.

    Raises InvalidArgumentError, NotFoundError for an unknown model or calibration, and the errors of the
    connection.
    """
    links = LinkReader()
    request = links.build(
        lambda: TrainingStepRequest(
            gradient_bytes=gradient_bytes,
            rank_count=rank_count,
            link=links.read(link, "link"),
            compute_step_seconds=compute_step_seconds,
            model=names.model_id(model),
            lora_parameters=lora_parameters,
            sharding=sharding,
            value_bytes=value_bytes,
            calibration=names.calibration_id(calibration),
            collective_table=collective_table,
            model_config_json=model_config_json,
        )
    )
    return question(operations.ESTIMATE_TRAINING_STEP, request, timeout_seconds)
