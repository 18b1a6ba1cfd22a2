"""Converters of `ClusterWorkload` in `linkbound/estimator/v1/layout.proto`."""

from __future__ import annotations

from linkbound.domain.cluster_workload import ClusterWorkload
from linkbound.domain.memory import DEFAULT_MAX_NUM_BATCHED_TOKENS
from linkbound.domain.names import HARDWARE, MODELS, resource_id, resource_name
from linkbound.estimator.v1 import layout_pb2


def cluster_workload_to_proto(value: ClusterWorkload) -> layout_pb2.ClusterWorkload:
    """Prompts on the nodes of a cluster as a message."""
    return layout_pb2.ClusterWorkload(
        model=resource_name(MODELS, value.model) if value.model else "",
        model_config_json=value.model_config_json,
        node_count=value.node_count,
        ranks_per_node=value.ranks_per_node,
        hardware=resource_name(HARDWARE, value.hardware) if value.hardware else "",
        prompt_tokens=value.prompt_tokens,
        request_count=value.request_count,
        max_num_batched_tokens=value.max_num_batched_tokens,
    )


def cluster_workload_from_proto(message: layout_pb2.ClusterWorkload) -> ClusterWorkload:
    """Prompts on the nodes of a cluster from their message."""
    return ClusterWorkload(
        model=resource_id(MODELS, message.model),
        model_config_json=message.model_config_json,
        node_count=message.node_count,
        ranks_per_node=message.ranks_per_node if message.HasField("ranks_per_node") else 1,
        hardware=resource_id(HARDWARE, message.hardware),
        prompt_tokens=message.prompt_tokens,
        request_count=message.request_count if message.HasField("request_count") else 1,
        max_num_batched_tokens=(
            message.max_num_batched_tokens
            if message.HasField("max_num_batched_tokens")
            else DEFAULT_MAX_NUM_BATCHED_TOKENS
        ),
    )
