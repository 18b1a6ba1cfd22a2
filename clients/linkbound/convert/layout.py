"""Converters of how a model is cut, in `workload.proto`, and of what that sends, in `estimator_service.proto`."""

from __future__ import annotations

from linkbound.convert.collective import collective_kind_from_proto, collective_kind_to_proto
from linkbound.convert.values import EnumConverter
from linkbound.domain.layout import CollectiveTraffic, ExpertParallelism, ParallelLayout, RankGroup
from linkbound.estimator.v1 import estimator_service_pb2, workload_pb2

_EXPERT_PARALLELISM = EnumConverter(ExpertParallelism, workload_pb2.ExpertParallelism)
_RANK_GROUP = EnumConverter(RankGroup, estimator_service_pb2.RankGroup)

expert_parallelism_to_proto = _EXPERT_PARALLELISM.to_proto
expert_parallelism_from_proto = _EXPERT_PARALLELISM.from_proto
rank_group_to_proto = _RANK_GROUP.to_proto
rank_group_from_proto = _RANK_GROUP.from_proto


def parallel_layout_to_proto(value: ParallelLayout) -> workload_pb2.ParallelLayout:
    """A layout as a message."""
    message = workload_pb2.ParallelLayout()
    write_parallel_layout(value, message)
    return message


def write_parallel_layout(value: ParallelLayout, message: workload_pb2.ParallelLayout) -> None:
    """A layout into `message`, which may be a field of an answer: a message that is put into one is copied."""
    message.tensor_parallel_size = value.tensor_parallel_size
    message.pipeline_parallel_size = value.pipeline_parallel_size
    message.data_parallel_size = value.data_parallel_size
    message.expert_parallelism = expert_parallelism_to_proto(value.expert_parallelism)
    message.sequence_parallel = value.sequence_parallel
    message.ranks_per_node = value.ranks_per_node


def parallel_layout_from_proto(message: workload_pb2.ParallelLayout) -> ParallelLayout:
    """A layout from its message; sizes of 0 are 1."""
    return ParallelLayout(
        tensor_parallel_size=message.tensor_parallel_size or 1,
        pipeline_parallel_size=message.pipeline_parallel_size or 1,
        data_parallel_size=message.data_parallel_size or 1,
        expert_parallelism=expert_parallelism_from_proto(message.expert_parallelism),
        sequence_parallel=message.sequence_parallel,
        ranks_per_node=message.ranks_per_node or 1,
    )


def collective_traffic_to_proto(value: CollectiveTraffic) -> estimator_service_pb2.CollectiveTraffic:
    """What one kind of collective adds to a workload, as a message."""
    message = estimator_service_pb2.CollectiveTraffic()
    write_collective_traffic(value, message)
    return message


def write_collective_traffic(value: CollectiveTraffic, message: estimator_service_pb2.CollectiveTraffic) -> None:
    """The same into `message`, which may be an entry of an answer: a message that is put into one is copied."""
    message.kind = collective_kind_to_proto(value.kind)
    message.rank_group = rank_group_to_proto(value.rank_group)
    message.count_per_pass = value.count_per_pass
    message.sent_bytes_per_rank = value.sent_bytes_per_rank
    message.inner_sent_bytes_per_rank = value.inner_sent_bytes_per_rank
    message.reason = value.reason


def collective_traffic_from_proto(message: estimator_service_pb2.CollectiveTraffic) -> CollectiveTraffic:
    """What one kind of collective adds to a workload, from its message."""
    return CollectiveTraffic(
        kind=collective_kind_from_proto(message.kind),
        rank_group=rank_group_from_proto(message.rank_group),
        count_per_pass=message.count_per_pass,
        sent_bytes_per_rank=message.sent_bytes_per_rank,
        inner_sent_bytes_per_rank=message.inner_sent_bytes_per_rank,
        reason=message.reason,
    )
