"""Converters of `EstimateTrainingStep` in `linkbound/estimator/v1/estimator_service.proto`."""

from __future__ import annotations

from linkbound.convert.calibration import collective_table_from_proto, collective_table_to_proto
from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto, resolved_link_from_proto, resolved_link_to_proto
from linkbound.convert.values import EnumConverter
from linkbound.domain.names import CALIBRATIONS, MODELS, resource_id, resource_name
from linkbound.domain.training import DEFAULT_VALUE_BYTES, TrainingSharding, TrainingStepEstimate, TrainingStepRequest
from linkbound.estimator.v1 import estimator_service_pb2

_SHARDING = EnumConverter(TrainingSharding, estimator_service_pb2.TrainingSharding)

training_sharding_to_proto = _SHARDING.to_proto
training_sharding_from_proto = _SHARDING.from_proto


def training_step_request_to_proto(value: TrainingStepRequest) -> estimator_service_pb2.EstimateTrainingStepRequest:
    """A question about a training step as a message."""
    return estimator_service_pb2.EstimateTrainingStepRequest(
        gradient_bytes=value.gradient_bytes or 0,
        rank_count=value.rank_count,
        link=link_to_proto(value.link),
        compute_step_seconds=value.compute_step_seconds,
        model=resource_name(MODELS, value.model) if value.model else "",
        lora_parameters=value.lora_parameters,
        sharding=training_sharding_to_proto(value.sharding),
        value_bytes=value.value_bytes,
        calibration=resource_name(CALIBRATIONS, value.calibration) if value.calibration else "",
        collective_table=(
            None if value.collective_table is None else collective_table_to_proto(value.collective_table)
        ),
        model_config_json=value.model_config_json,
    )


def training_step_request_from_proto(
    message: estimator_service_pb2.EstimateTrainingStepRequest,
) -> TrainingStepRequest:
    """A question about a training step from its message. Raises InvalidArgumentError with every violation."""
    return TrainingStepRequest(
        gradient_bytes=message.gradient_bytes or None,
        rank_count=message.rank_count,
        link=link_from_proto(message.link),
        compute_step_seconds=message.compute_step_seconds,
        model=resource_id(MODELS, message.model),
        lora_parameters=message.lora_parameters if message.HasField("lora_parameters") else None,
        sharding=training_sharding_from_proto(message.sharding),
        value_bytes=message.value_bytes if message.HasField("value_bytes") else DEFAULT_VALUE_BYTES,
        calibration=resource_id(CALIBRATIONS, message.calibration),
        collective_table=(
            collective_table_from_proto(message.collective_table) if message.HasField("collective_table") else None
        ),
        model_config_json=message.model_config_json,
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
        gradient_bytes=value.gradient_bytes,
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
        gradient_bytes=message.gradient_bytes,
    )
