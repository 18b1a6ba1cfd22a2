"""Converters of `EstimateTrainingStep` in `linkbound/estimator/v1/estimator_service.proto`."""

from __future__ import annotations

from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto, resolved_link_from_proto, resolved_link_to_proto
from linkbound.domain.training import TrainingStepEstimate, TrainingStepRequest
from linkbound.estimator.v1 import estimator_service_pb2


def training_step_request_to_proto(value: TrainingStepRequest) -> estimator_service_pb2.EstimateTrainingStepRequest:
    """A question about a training step as a message."""
    return estimator_service_pb2.EstimateTrainingStepRequest(
        gradient_bytes=value.gradient_bytes,
        rank_count=value.rank_count,
        link=link_to_proto(value.link),
        compute_step_seconds=value.compute_step_seconds,
    )


def training_step_request_from_proto(
    message: estimator_service_pb2.EstimateTrainingStepRequest,
) -> TrainingStepRequest:
    """A question about a training step from its message. Raises InvalidArgumentError with every violation."""
    return TrainingStepRequest(
        gradient_bytes=message.gradient_bytes,
        rank_count=message.rank_count,
        link=link_from_proto(message.link),
        compute_step_seconds=message.compute_step_seconds,
    )


def training_step_estimate_to_proto(
    value: TrainingStepEstimate,
) -> estimator_service_pb2.EstimateTrainingStepResponse:
    """The gradient exchange of a step as a message."""
    return estimator_service_pb2.EstimateTrainingStepResponse(
        sent_bytes_per_rank=value.sent_bytes_per_rank,
        sync_seconds=estimate_to_proto(value.sync_seconds),
        step_seconds=estimate_to_proto(value.step_seconds),
        scaling_efficiency_fraction=estimate_to_proto(value.scaling_efficiency_fraction),
        link=resolved_link_to_proto(value.link),
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
        compute_step_seconds=value.compute_step_seconds,
    )


def training_step_estimate_from_proto(
    message: estimator_service_pb2.EstimateTrainingStepResponse,
) -> TrainingStepEstimate:
    """The gradient exchange of a step from its message."""
    return TrainingStepEstimate(
        sent_bytes_per_rank=message.sent_bytes_per_rank,
        sync_seconds=estimate_from_proto(message.sync_seconds),
        step_seconds=estimate_from_proto(message.step_seconds),
        scaling_efficiency_fraction=estimate_from_proto(message.scaling_efficiency_fraction),
        link=resolved_link_from_proto(message.link),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
        compute_step_seconds=message.compute_step_seconds,
    )
