"""How models are cut and what is asked about memory and training."""

from __future__ import annotations

from hypothesis import strategies as st

from linkbound.domain.layout import ExpertParallelism, ParallelLayout
from linkbound.domain.memory import MemoryFitRequest
from linkbound.domain.training import TrainingSharding, TrainingStepRequest
from tests.strategies.collectives import times_given
from tests.strategies.cuts import models_given
from tests.strategies.estimator import links
from tests.strategies.values import IDS, LARGEST_SECONDS, Fill, Strategy, maybe, members, texts, wholes


def parallel_layouts(fill: Fill) -> Strategy:
    """Layouts of at most 4,096 ranks, whole nodes filled."""
    sizes = st.integers(1, 16)
    ranks_per_node = st.integers(1, 64)
    return st.builds(
        lambda per_node, **sizes: ParallelLayout(
            ranks_per_node=per_node if _rank_count(**sizes) % per_node == 0 else 1, **sizes
        ),
        ranks_per_node,
        tensor_parallel_size=sizes,
        pipeline_parallel_size=sizes,
        data_parallel_size=sizes,
        expert_parallelism=members(fill, ExpertParallelism),
        sequence_parallel=st.just(True) if fill is Fill.FULL else st.booleans(),
    )


def _rank_count(
    *, tensor_parallel_size: int, pipeline_parallel_size: int, data_parallel_size: int, **_other: object
) -> int:
    return tensor_parallel_size * pipeline_parallel_size * data_parallel_size


def memory_fit_requests(fill: Fill) -> Strategy:
    # A model has a name or comes with the question.
    models = st.fixed_dictionaries({"model": IDS}) | st.fixed_dictionaries({"model_config_json": texts(fill, 64, 1)})
    return models.flatmap(
        lambda model: st.builds(
            MemoryFitRequest,
            **{name: st.just(value) for name, value in model.items()},
            layout=parallel_layouts(fill),
            hardware=IDS,
            context_tokens=st.integers(1, 10**6),
            request_count=st.integers(1, 100_000),
            gpu_memory_utilization_fraction=st.floats(1e-6, 1),
            cache_value_bytes=st.integers(1, 2),
            max_num_batched_tokens=st.integers(1, 10**9),
            weight_bits_per_parameter=maybe(fill, st.floats(1e-3, 64)),
            draft_token_count=wholes(fill, 0, 64),
        )
    )


def training_step_requests(fill: Fill) -> Strategy:
    # What is trained is given in bytes or as a model; how long collectives take by a name or in a table.
    adapters = st.fixed_dictionaries({"lora_parameters": maybe(fill, st.integers(1, 10**15))})
    of_model = st.builds(lambda model, adapters: {**model, **adapters}, models_given(fill), adapters)
    trained = st.fixed_dictionaries({"gradient_bytes": st.integers(1, 10**15)}) | of_model
    given = st.tuples(trained, times_given(fill))
    return given.flatmap(
        lambda parts: st.builds(
            TrainingStepRequest,
            **{name: st.just(value) for part in parts for name, value in part.items()},
            rank_count=st.integers(1, 65_536),
            link=links(fill),
            compute_step_seconds=st.floats(1e-9, LARGEST_SECONDS),
            sharding=members(fill, TrainingSharding),
            value_bytes=st.sampled_from([1, 2, 4]),
        )
    )
