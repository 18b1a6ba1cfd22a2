"""Questions of the estimator beside those about prompts, passes and layouts, for Hypothesis."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from linkbound.domain.calibration import CollectivePoint, CollectiveTable, FitCalibrationRequest
from linkbound.domain.collective import CollectiveAlgorithm, CollectiveKind
from linkbound.domain.collective_estimate import CollectiveRequest
from linkbound.domain.memory import MemoryFitRequest
from linkbound.domain.planning import PlanRequest, SlowestLinkRequest
from linkbound.domain.sizing import SizeClusterRequest
from linkbound.domain.training import TrainingSharding, TrainingStepRequest
from tests.property.estimator_strategies import LINKS, MODELS, PREFILL_WORKLOADS
from tests.property.layout_strategies import CONTEXTS, REQUEST_COUNTS, cuts

KINDS = st.sampled_from([kind for kind in CollectiveKind if kind.name not in {"UNSPECIFIED", "UNKNOWN"}])
MODEL_IDS = st.sampled_from([model.model_id for model in MODELS])
COUNTED_MODEL_IDS = st.sampled_from([model.model_id for model in MODELS if model.total_parameters is not None])
HARDWARE_IDS = st.sampled_from(["dgx-spark", "h100-sxm"])
SECONDS = st.floats(1e-9, 1e9)
POINTS = st.builds(
    CollectivePoint, message_bytes=st.integers(1, 10**15) | st.integers(1, 2**20), seconds=st.floats(1e-9, 1e6)
)
LARGEST_CACHE = json.dumps(
    {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 1000,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "head_dim": 1024,
        "intermediate_size": 1024,
        "vocab_size": 1000,
        "hidden_act": "silu",
        "torch_dtype": "bfloat16",
    }
)
"""A model that keeps half a gigabyte of cache for each token."""


@st.composite
def collective_tables(draw: st.DrawFn, kind: CollectiveKind, rank_count: int, ranks_per_node: int) -> CollectiveTable:
    points = draw(st.lists(POINTS, min_size=2, max_size=12, unique_by=lambda point: point.message_bytes))
    repeated = draw(st.lists(st.sampled_from(points), max_size=3))
    return CollectiveTable(kind=kind, rank_count=rank_count, ranks_per_node=ranks_per_node, points=(*points, *repeated))


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, int]:
    """Ranks, and ranks of a node."""
    in_node = draw(st.integers(1, 64))
    return in_node * draw(st.integers(2 if in_node == 1 else 1, 65_536 // in_node)), in_node


@st.composite
def collective_requests(draw: st.DrawFn) -> CollectiveRequest:
    (rank_count, in_node), kind = draw(groups()), draw(KINDS)
    message_bytes = draw(st.none() | st.integers(1, 10**15) | st.integers(1, 2**20))
    algorithms = [CollectiveAlgorithm.UNSPECIFIED, CollectiveAlgorithm.RING, CollectiveAlgorithm.AUTO]
    if kind is CollectiveKind.ALL_REDUCE:
        algorithms.append(CollectiveAlgorithm.DOUBLE_BINARY_TREE)
    if rank_count * in_node * (message_bytes or 0) < 2**63:
        algorithms.append(CollectiveAlgorithm.ONE_SHOT)
    return CollectiveRequest(
        kind=kind,
        rank_count=rank_count,
        ranks_per_node=in_node,
        message_bytes=message_bytes,
        link=draw(LINKS),
        inner_link=draw(LINKS if in_node > 1 else st.none() | LINKS),
        algorithm=draw(st.sampled_from(algorithms)),
        collective_table=draw(st.none() | collective_tables(kind, rank_count, in_node)),
    )


@st.composite
def fit_requests(draw: st.DrawFn) -> FitCalibrationRequest:
    rank_count, in_node = draw(groups())
    return FitCalibrationRequest(table=draw(collective_tables(draw(KINDS), rank_count, in_node)))


@st.composite
def training_requests(draw: st.DrawFn) -> TrainingStepRequest:
    rank_count = draw(st.integers(1, 65_536) | st.integers(2, 16))
    table = collective_tables(CollectiveKind.ALL_REDUCE, max(rank_count, 2), 1)
    trained: dict[str, Any] = {"gradient_bytes": draw(st.integers(1, 10**15))}
    if draw(st.booleans()):
        trained = {
            "model": draw(COUNTED_MODEL_IDS),
            "lora_parameters": draw(st.none() | st.integers(1, 10**15)),
            "value_bytes": draw(st.sampled_from([1, 2, 4])),
        }
    return TrainingStepRequest(
        **trained,
        rank_count=rank_count,
        link=draw(LINKS),
        compute_step_seconds=draw(SECONDS),
        sharding=draw(st.sampled_from([kind for kind in TrainingSharding if kind is not TrainingSharding.UNKNOWN])),
        collective_table=draw(st.none() | table),
    )


@st.composite
def memory_requests(draw: st.DrawFn) -> MemoryFitRequest:
    model, layout = draw(cuts())
    return MemoryFitRequest(
        model=model.model_id,
        layout=layout,
        hardware=draw(HARDWARE_IDS),
        context_tokens=draw(CONTEXTS),
        request_count=draw(REQUEST_COUNTS),
        gpu_memory_utilization_fraction=draw(st.floats(1e-9, 1)),
        cache_value_bytes=draw(st.integers(1, 2)),
        max_num_batched_tokens=draw(st.integers(1, 10**9)),
        weight_bits_per_parameter=draw(st.none() | st.floats(1e-9, 64)),
        draft_token_count=draw(st.integers(0, 64)),
    )


@st.composite
def slowest_link_requests(draw: st.DrawFn) -> SlowestLinkRequest:
    return SlowestLinkRequest(workload=draw(PREFILL_WORKLOADS), target_ttft_seconds=draw(SECONDS))


SIZE_REQUESTS = st.builds(
    SizeClusterRequest,
    node_count=st.integers(1, 4096),
    rate_bits_per_second=st.integers(10**9, 10**12),
    links_per_node=st.none() | st.integers(1, 16),
    oversubscription_ratio=st.none() | st.floats(1, 16),
)
PLAN_REQUESTS = st.builds(
    PlanRequest,
    model=st.just("") | MODEL_IDS,
    node_count=st.integers(1, 4096),
    link=LINKS,
    reference_link=st.none() | LINKS,
    tensor_parallel_size=st.integers(0, 4096) | st.sampled_from([1, 2, 4, 8]),
    prompt_tokens=st.integers(0, 10**9),
    target_ttft_seconds=st.none() | SECONDS,
    baseline_ttft_seconds=st.none() | SECONDS,
    hardware=st.just("") | HARDWARE_IDS,
    counter_interval_seconds=st.none() | SECONDS,
)
