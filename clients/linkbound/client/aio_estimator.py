"""The estimator, for code on an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from linkbound.client import estimator_requests, names, operations
from linkbound.client.aio_base import AsyncClient
from linkbound.client.backend import AsyncBackend, ChannelOptions, Connection
from linkbound.client.estimator_requests import LinkOrRate
from linkbound.client.options import UNSET, Timeout, TlsFiles
from linkbound.client.target import LOCAL, TargetKind, parse_target
from linkbound.domain.calibration import Calibration, CalibrationRequest, CollectiveTable, FitCalibrationRequest
from linkbound.domain.catalog import Hardware, HardwareRequest, ImportModelRequest, Model, ModelRequest
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.collective_estimate import CollectiveEstimate
from linkbound.domain.decode import DecodeEstimate
from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from linkbound.domain.layout_comparison import DEFAULT_OUTPUT_TOKENS, LayoutComparison
from linkbound.domain.layout_recommendation import LayoutRecommendation
from linkbound.domain.link_comparison import EmulatedLink, LinkComparison
from linkbound.domain.memory import (
    DEFAULT_CACHE_VALUE_BYTES,
    DEFAULT_GPU_MEMORY_UTILIZATION_FRACTION,
    DEFAULT_MAX_NUM_BATCHED_TOKENS,
    MemoryFit,
    MemoryFitRequest,
)
from linkbound.domain.prefill import PrefillEstimate
from linkbound.domain.rules import as_tuple
from linkbound.domain.tp_projection import TpProjection
from linkbound.domain.training import DEFAULT_VALUE_BYTES, TrainingSharding, TrainingStepEstimate
from linkbound.domain.workload import DecodeWorkload, PrefillWorkload

if TYPE_CHECKING:
    from pathlib import Path

    import grpc

    from linkbound.domain.batch import BatchAnswer, BatchQuestion
    from linkbound.domain.errors import Error
    from linkbound.domain.planning import PlanCheck, SlowestLink
    from linkbound.domain.sizing import ClusterSizing
    from linkbound.domain.sweep import SweepAxis, SweepColumns


class AsyncEstimatorClient(AsyncClient):
    """Predicts what the network costs a model that is split over several machines.

    `target` is `host:port`, `unix:/path`, or `local:` for the same answers computed in this process. A host with
    several addresses, or a list of them (`ipv4:10.0.0.1:50051,10.0.0.2:50051`), is asked in turn. `token` is sent as a
    bearer token, `tls` names the files of a connection with TLS; neither matters to `local:`. `timeout_seconds`
    replaces the default deadline of every call: seconds, a timedelta, or None for ever. A `channel` that is given is
    used as it is, with its own retries, and is not closed. Nothing is connected before the first call. What `local:`
    computes waits for nothing, and no deadline interrupts it; models that it imports are kept in the folder `catalog`
    of `data_directory`, None being the user's data directory.

    Raises InvalidArgumentError for a target, token or timeout that cannot be used. Every call raises the classes of
    `linkbound.domain.errors`; links are given as a `Link`, as an effective rate such as `"200g"`, or by a name of
    `linkbound.domain.link_presets` such as `"spark-1f"`.
    """

    def __init__(
        self,
        target: str = LOCAL,
        *,
        data_directory: Path | str | None = None,
        token: str | None = None,
        tls: TlsFiles | None = None,
        timeout_seconds: Timeout = UNSET,
        channel_options: ChannelOptions = (),
        channel: grpc.aio.Channel | None = None,
    ) -> None:
        connection = Connection(target=parse_target(target), token=token, tls=tls, channel_options=channel_options)
        super().__init__(_backend(connection, channel, data_directory), timeout_seconds)

    async def estimate_prefill(  # noqa: PLR0913 - the keywords are the request
        self,
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
    ) -> PrefillEstimate:
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
        request = estimator_requests.prefill_request(
            workload,
            link=link,
            to_link=to_link,
            baseline_ttft_seconds=baseline_ttft_seconds,
            details=estimator_requests.LinkDetails(
                inner_link=inner_link,
                rank_links=rank_links,
                calibration=calibration,
                collective_table=collective_table,
            ),
        )
        return await self._call(operations.ESTIMATE_PREFILL, request, timeout_seconds)

    async def estimate_decode(  # noqa: PLR0913 - the keywords are the request
        self,
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
    ) -> DecodeEstimate:
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
        request = estimator_requests.decode_request(
            workload,
            link=link,
            to_link=to_link,
            details=estimator_requests.LinkDetails(
                inner_link=inner_link,
                rank_links=rank_links,
                calibration=calibration,
                collective_table=collective_table,
            ),
        )
        return await self._call(operations.ESTIMATE_DECODE, request, timeout_seconds)

    async def estimate_collective(  # noqa: PLR0913 - the keywords are the request
        self,
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
    ) -> CollectiveEstimate:
        """Bytes of one rank, time and bandwidth of one collective of `message_bytes` among `rank_count` ranks.

        Without a size only rates are answered. With several ranks in a node, `link` is between nodes and `inner_link`
        within them. Bytes and bounds are of `algorithm`, of a ring where none is given. A `calibration` of the
        catalogue, or a `collective_table` in its place, says how long collectives take. Formulas: `docs/formulas.md`,
        collectives.

        Raises InvalidArgumentError, NotFoundError for an unknown calibration, and the errors of the connection.
        """
        request = estimator_requests.collective_request(
            kind=kind,
            rank_count=rank_count,
            link=link,
            message_bytes=message_bytes,
            ranks_per_node=ranks_per_node,
            inner_link=inner_link,
            algorithm=algorithm,
            calibration=calibration,
            collective_table=collective_table,
        )
        return await self._call(operations.ESTIMATE_COLLECTIVE, request, timeout_seconds)

    async def estimate_training_step(  # noqa: PLR0913 - the keywords are the request
        self,
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
        timeout_seconds: Timeout = UNSET,
    ) -> TrainingStepEstimate:
        """Exchange and step time of data-parallel training on `rank_count` nodes.

        What is trained is given as `gradient_bytes`, or as a `model`: all of it, or `lora_parameters` of adapters.
        `compute_step_seconds` is the step time of one node alone at the same batch per node. A `calibration` of the
        catalogue, or a `collective_table` in its place, says how long collectives take. Formulas: `docs/formulas.md`,
        training.

        Raises InvalidArgumentError, NotFoundError for an unknown model or calibration, and the errors of the
        connection.
        """
        request = estimator_requests.training_step_request(
            gradient_bytes=gradient_bytes,
            rank_count=rank_count,
            link=link,
            compute_step_seconds=compute_step_seconds,
            model=model,
            lora_parameters=lora_parameters,
            sharding=sharding,
            value_bytes=value_bytes,
            calibration=calibration,
            collective_table=collective_table,
        )
        return await self._call(operations.ESTIMATE_TRAINING_STEP, request, timeout_seconds)

    async def compare_links(
        self,
        *,
        workload: PrefillWorkload | DecodeWorkload,
        old_link: LinkOrRate,
        new_link: LinkOrRate,
        baseline_seconds: float | None = None,
        emulation: EmulatedLink | None = None,
        inner_link: LinkOrRate | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> LinkComparison:
        """What `workload` loses or gains if `old_link` becomes `new_link`.

        `baseline_seconds` is measured over `old_link`: the TTFT of a prefill, the pass time of a decode. `emulation`
        is a TTFT measured over a link that stands in for the new one, `inner_link` the link of each rank within a node
        where it has several. Formulas: `docs/formulas.md`, link comparison.

        Raises InvalidArgumentError, NotFoundError for an unknown model or hardware, and the errors of the connection.
        """
        request = estimator_requests.link_comparison_request(
            workload,
            old_link=old_link,
            new_link=new_link,
            baseline_seconds=baseline_seconds,
            emulation=emulation,
            inner_link=inner_link,
        )
        return await self._call(operations.COMPARE_LINKS, request, timeout_seconds)

    async def project_tp_sizes(
        self,
        *,
        workload: PrefillWorkload,
        baseline_ttft_seconds: float,
        link: LinkOrRate,
        to_link: LinkOrRate,
        tensor_parallel_sizes: Sequence[int],
        hardware: str = "",
        timeout_seconds: Timeout = UNSET,
    ) -> TpProjection:
        """How the loss from `link` to `to_link` changes with the tensor-parallel size.

        `baseline_ttft_seconds` is measured over `link` at the size of `workload`. With `hardware`, an id of the
        catalogue, a size is feasible only where weights and caches fit into its memory. Formulas: `docs/formulas.md`,
        projection over tensor-parallel sizes.

        Raises InvalidArgumentError, NotFoundError for an unknown model or hardware, and the errors of the connection.
        """
        request = estimator_requests.tp_projection_request(
            workload,
            baseline_ttft_seconds=baseline_ttft_seconds,
            link=link,
            to_link=to_link,
            tensor_parallel_sizes=tensor_parallel_sizes,
            hardware=hardware,
        )
        return await self._call(operations.PROJECT_TP_SIZES, request, timeout_seconds)

    async def find_slowest_link(
        self,
        *,
        workload: PrefillWorkload,
        target_ttft_seconds: float,
        baseline_link: LinkOrRate | None = None,
        baseline_ttft_seconds: float | None = None,
        inner_link: LinkOrRate | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> SlowestLink:
        """The slowest effective rate that keeps `target_ttft_seconds`, and what links with a name do to it.

        `baseline_ttft_seconds` is measured over `baseline_link`; without it the answer is a rate below which the
        target cannot be kept. `inner_link` is that of each rank within a node of several, and stays. Formulas:
        `docs/formulas.md`, slowest link.

        Raises InvalidArgumentError, NotFoundError for an unknown model, and the errors of the connection.
        """
        from linkbound.client import planning_requests

        request = planning_requests.slowest_link_request(
            workload,
            target_ttft_seconds=target_ttft_seconds,
            baseline_link=baseline_link,
            baseline_ttft_seconds=baseline_ttft_seconds,
            inner_link=inner_link,
        )
        return await self._call(operations.FIND_SLOWEST_LINK, request, timeout_seconds)

    async def size_cluster(
        self,
        *,
        node_count: int,
        rate: LinkOrRate,
        switch: str = "",
        links_per_node: int | None = None,
        nic: str = "",
        oversubscription_ratio: float | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> ClusterSizing:
        """Switches and cables that connect `node_count` nodes, each with `links_per_node` links of `rate`, best first.

        `switch` and `nic` are ids of the catalogue: every switch and the adapter of a DGX Spark where they are empty.
        Leaves are joined without oversubscription unless `oversubscription_ratio` allows some. Rules:
        `docs/formulas.md`, sizing.

        Raises InvalidArgumentError, NotFoundError for an unknown switch or nic, and the errors of the connection.
        """
        from linkbound.client import planning_requests

        request = planning_requests.size_cluster_request(
            node_count=node_count,
            rate=rate,
            switch=switch,
            links_per_node=links_per_node,
            nic=nic,
            oversubscription_ratio=oversubscription_ratio,
        )
        return await self._call(operations.SIZE_CLUSTER, request, timeout_seconds)

    async def check_plan(  # noqa: PLR0913 - the keywords are the request
        self,
        *,
        node_count: int,
        link: LinkOrRate,
        model: str = "",
        reference_link: LinkOrRate | None = None,
        tensor_parallel_size: int = 0,
        prompt_tokens: int = 0,
        target_ttft_seconds: float | None = None,
        baseline_ttft_seconds: float | None = None,
        switch: str = "",
        nic: str = "",
        hardware: str = "",
        counter_interval_seconds: float | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> PlanCheck:
        """The planning checklist for nodes over `link`, line by line; what else is not given is answered as missing.

        `baseline_ttft_seconds` is the TTFT of a prompt of `prompt_tokens`, measured over `reference_link` at
        `tensor_parallel_size`. Lines and rules: `docs/formulas.md`, plan.

        Raises InvalidArgumentError, NotFoundError for an unknown model, hardware, switch or nic, and the errors of the
        connection.
        """
        from linkbound.client import planning_requests

        request = planning_requests.plan_request(
            model=model,
            node_count=node_count,
            link=link,
            reference_link=reference_link,
            tensor_parallel_size=tensor_parallel_size,
            prompt_tokens=prompt_tokens,
            target_ttft_seconds=target_ttft_seconds,
            baseline_ttft_seconds=baseline_ttft_seconds,
            switch=switch,
            nic=nic,
            hardware=hardware,
            counter_interval_seconds=counter_interval_seconds,
        )
        return await self._call(operations.CHECK_PLAN, request, timeout_seconds)

    async def compare_layouts(  # noqa: PLR0913 - the keywords are the request
        self,
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
    ) -> LayoutComparison:
        """Every way to cut one instance of a model over `node_count` nodes: bytes, times, bubbles, memory, choices.

        For `request_count` requests in flight, each with a prompt and `output_tokens` that it generates. `hardware`, an
        id of the catalogue, says what a rank reads and holds. The rest is as for `estimate_prefill`. Formulas:
        `docs/formulas.md`, layouts.

        Raises InvalidArgumentError, NotFoundError for an unknown model, hardware or calibration, and the errors of the
        connection.
        """
        request = estimator_requests.layout_comparison_request(
            model=model,
            model_config_json=model_config_json,
            node_count=node_count,
            ranks_per_node=ranks_per_node,
            link=link,
            inner_link=inner_link,
            prompt_tokens=prompt_tokens,
            request_count=request_count,
            max_num_batched_tokens=max_num_batched_tokens,
            hardware=hardware,
            calibration=calibration,
            collective_table=collective_table,
            draft_token_count=draft_token_count,
            output_tokens=output_tokens,
        )
        return await self._call(operations.COMPARE_LAYOUTS, request, timeout_seconds)

    async def recommend_layout(  # noqa: PLR0913 - the keywords are the request
        self,
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
    ) -> LayoutRecommendation:
        """How many instances of which size to run on `node_count` nodes, and what each loses over `link`.

        Losses are counted against `reference_link`, over which `baseline_ttft_seconds` of one prompt was measured with
        `baseline_tensor_parallel_size` ranks; without it they are times. The rest is as for `compare_layouts`.
        Formulas: `docs/formulas.md`, recommendation.

        Raises InvalidArgumentError, NotFoundError for an unknown model, hardware or calibration, and the errors of the
        connection.
        """
        request = estimator_requests.layout_recommendation_request(
            model=model,
            model_config_json=model_config_json,
            node_count=node_count,
            ranks_per_node=ranks_per_node,
            link=link,
            inner_link=inner_link,
            reference_link=reference_link,
            prompt_tokens=prompt_tokens,
            request_count=request_count,
            max_num_batched_tokens=max_num_batched_tokens,
            hardware=hardware,
            calibration=calibration,
            collective_table=collective_table,
            baseline_tensor_parallel_size=baseline_tensor_parallel_size,
            baseline_ttft_seconds=baseline_ttft_seconds,
        )
        return await self._call(operations.RECOMMEND_LAYOUT, request, timeout_seconds)

    async def check_memory_fit(  # noqa: PLR0913 - the keywords are the request
        self,
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
    ) -> MemoryFit:
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
        return await self._call(operations.CHECK_MEMORY_FIT, request, timeout_seconds)

    async def batch_estimate(
        self, questions: Sequence[BatchQuestion], *, timeout_seconds: Timeout = UNSET
    ) -> tuple[BatchAnswer | Error, ...]:
        """The answers to up to 1000 questions of any kinds, in their order: what each call alone would return or raise.

        A question that fails is an error among the answers and leaves the others alone. The questions and the answers
        have to fit into a message of 16 MiB each.

        Raises InvalidArgumentError for no question, too many or what is none, and the errors of the connection.
        """
        request = estimator_requests.batch_request(questions)
        estimate = await self._call(operations.BATCH_ESTIMATE, request, timeout_seconds)
        return estimate.answers

    def stream_sweep(
        self,
        *,
        workload: PrefillWorkload,
        link: LinkOrRate,
        axes: Sequence[SweepAxis],
        to_link: LinkOrRate | None = None,
        start_index: int = 0,
        points_per_response: int | None = None,
        timeout_seconds: Timeout = UNSET,
    ) -> AsyncIterator[SweepColumns]:
        """Bytes, network time and extra TTFT at every point of up to four `axes`, the last of which varies fastest.

        Yields stretches of points as columns, in the order of their index and from `start_index` on. What an axis
        varies is taken from the axis in place of `workload`, `link` and `to_link`. A stream that breaks is opened again
        where it was, for as long as there is progress; the timeout is that of the whole sweep, none unless one is set.
        With `local:` a sweep needs NumPy. Formulas: `docs/formulas.md`, prefill.

        Raises InvalidArgumentError; while iterating NotFoundError for an unknown model, FailedPreconditionError
        (SWEEPS_UNAVAILABLE, ESTIMATOR_CHANGED), and the errors of the connection.
        """
        request = estimator_requests.sweep_request(
            workload,
            link=link,
            to_link=to_link,
            axes=axes,
            start_index=start_index,
            points_per_response=points_per_response,
        )
        return self._sweep(request, timeout_seconds)

    def list_models(self, *, timeout_seconds: Timeout = UNSET) -> AsyncIterator[Model]:
        """Every model of the catalogue in the order of the ids; the timeout is that of one page.

        Raises the errors of the connection, while iterating.
        """
        return self._entries(operations.LIST_MODELS, timeout_seconds)

    async def get_model(self, model: str, *, timeout_seconds: Timeout = UNSET) -> Model:
        """The model with the id `model`.

        Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
        """
        return await self._call(operations.GET_MODEL, ModelRequest(model=names.model_id(model)).model, timeout_seconds)

    async def import_model(
        self,
        config_json: str,
        *,
        model: str = "",
        display_name: str = "",
        validate_only: bool = False,
        timeout_seconds: Timeout = UNSET,
    ) -> Model:
        """The model in `config_json`, the contents of a Hugging Face `config.json`, kept as `model`.

        With `validate_only` it is read and answered, and not kept; `model` may be left out then. The same content under
        the same name again is the model that exists. The answer holds what was not understood, what was assumed and
        what could not be determined. Formulas: `docs/formulas.md`, parameters, caches and collectives of a pass.

        Raises InvalidArgumentError, AlreadyExistsError where the name is taken by other content,
        FailedPreconditionError where the catalogue is read-only, and the errors of the connection.
        """
        request = ImportModelRequest(
            model=names.model_id(model),
            config_json=config_json,
            display_name=display_name,
            validate_only=validate_only,
        )
        return await self._call(operations.IMPORT_MODEL, request, timeout_seconds)

    def list_hardware(self, *, timeout_seconds: Timeout = UNSET) -> AsyncIterator[Hardware]:
        """All hardware of the catalogue in the order of the ids; the timeout is that of one page.

        Raises the errors of the connection, while iterating.
        """
        return self._entries(operations.LIST_HARDWARE, timeout_seconds)

    async def get_hardware(self, hardware: str, *, timeout_seconds: Timeout = UNSET) -> Hardware:
        """The hardware with the id `hardware`.

        Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
        """
        return await self._call(
            operations.GET_HARDWARE, HardwareRequest(hardware=names.hardware_id(hardware)).hardware, timeout_seconds
        )

    async def fit_calibration(
        self,
        table: CollectiveTable,
        *,
        calibration: str = "",
        sources: Sequence[str] = (),
        timeout_seconds: Timeout = UNSET,
    ) -> Calibration:
        """The fit of measured times of one kind of collective, stored under the id `calibration` where that is given.

        `sources` say where the times come from. The same times and sources under the same name again are the
        calibration that exists. Formulas: `docs/formulas.md`, collective time.

        Raises InvalidArgumentError, AlreadyExistsError where the name is taken by other content,
        FailedPreconditionError where the catalogue cannot be written, and the errors of the connection.
        """
        request = FitCalibrationRequest(
            table=table, calibration=names.calibration_id(calibration), sources=as_tuple(sources)
        )
        return await self._call(operations.FIT_CALIBRATION, request, timeout_seconds)

    def list_calibrations(self, *, timeout_seconds: Timeout = UNSET) -> AsyncIterator[Calibration]:
        """Every calibration of the catalogue in the order of the ids; the timeout is that of one page.

        Raises the errors of the connection, while iterating.
        """
        return self._entries(operations.LIST_CALIBRATIONS, timeout_seconds)

    async def get_calibration(self, calibration: str, *, timeout_seconds: Timeout = UNSET) -> Calibration:
        """The calibration with the id `calibration`.

        Raises InvalidArgumentError, NotFoundError with near names, and the errors of the connection.
        """
        request = CalibrationRequest(calibration=names.calibration_id(calibration))
        return await self._call(operations.GET_CALIBRATION, request.calibration, timeout_seconds)


def _backend(
    connection: Connection, channel: grpc.aio.Channel | None, data_directory: Path | str | None
) -> AsyncBackend:
    if channel is None and connection.target.kind is TargetKind.LOCAL:
        from linkbound.client.local.aio import AsyncLocalBackend
        from linkbound.client.local.blocking import local_estimator

        return AsyncLocalBackend(local_estimator(data_directory))
    from linkbound.client.remote.aio import AsyncRemoteBackend
    from linkbound.client.remote.services import ESTIMATOR_SERVICES

    return AsyncRemoteBackend(connection, channel, ESTIMATOR_SERVICES)
