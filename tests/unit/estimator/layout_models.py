"""Models of a few layers whose collectives are counted by hand, and what is asked of them."""

from typing import Any

from linkbound.domain.catalog import Collective, Hardware, Model, ModelPart, RowScope
from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.collective import CollectiveKind
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link

HIDDEN = 64
VALUE_BYTES = 2
ROW = HIDDEN * VALUE_BYTES
"""Bytes of one token's hidden states."""

BOARD = Hardware(hardware_id="board", display_name="Board", memory_bytes=10**9, memory_bandwidth_bytes_per_second=10**6)


def all_reduce(part: ModelPart, count: int) -> Collective:
    return Collective(
        kind=CollectiveKind.ALL_REDUCE,
        width=HIDDEN,
        count=count,
        row_scope=RowScope.TOKEN,
        reason=part.name.lower(),
        part=part,
    )


def decoder(layers: int = 7, *, dense: int | None = None, experts: int = 0, used: int = 0) -> Model:
    """`dense` layers with a dense MLP come first, the others have an MoE block; None: all of them are dense."""
    dense_count = layers if dense is None else dense
    blocks = [
        (ModelPart.EMBEDDING, 1),
        (ModelPart.ATTENTION, layers),
        (ModelPart.DENSE_MLP, dense_count),
        (ModelPart.ROUTED_EXPERTS, layers - dense_count),
    ]
    return Model(
        model_id="decoder",
        display_name="Decoder",
        hidden_size=HIDDEN,
        layer_count=layers,
        attention_head_count=64,
        key_value_head_count=64,
        vocabulary_size=6400,
        expert_count=experts,
        active_expert_count=used,
        activation_value_bytes=VALUE_BYTES,
        collectives=(
            *(all_reduce(part, count) for part, count in blocks if count),
            Collective(
                kind=CollectiveKind.ALL_GATHER,
                width=6400,
                count=1,
                row_scope=RowScope.LOGITS,
                reason="logits",
                part=ModelPart.LM_HEAD,
            ),
        ),
        active_parameters=8000,
        weight_bits_per_parameter=8.0,
    )


def mixture(layers: int = 8, dense: int = 2) -> Model:
    return decoder(layers, dense=dense, experts=32, used=4)


def cut(tp: int = 1, pp: int = 1, dp: int = 1, **rest: Any) -> ParallelLayout:
    return ParallelLayout(
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        data_parallel_size=dp,
        **rest,
    )


def link(bits_per_second: int = 8 * 10**9) -> Link:
    return Link(line_rate_bits_per_second=bits_per_second)


def workload(**rest: Any) -> ClusterWorkload:
    return ClusterWorkload(**{"model": "decoder", "node_count": 4, "prompt_tokens": 1000, **rest})
