"""Converters of `linkbound/types/v1/prediction.proto`."""

from __future__ import annotations

from attrs import evolve

from linkbound.convert.estimate import estimate_from_proto, estimate_to_proto
from linkbound.convert.metric import metric_from_proto, metric_to_proto, spread_from_proto, spread_to_proto
from linkbound.convert.values import each, each_up_to, maybe, timestamp_from_proto, timestamp_to_proto
from linkbound.domain.names import RUNS, resource_id, resource_name
from linkbound.domain.prediction import LARGEST_VALUE_COUNT, Baseline, PredictedValue, Prediction, TransferModel
from linkbound.types.v1 import prediction_pb2


def transfer_model_to_proto(value: TransferModel) -> prediction_pb2.TransferModel:
    """How a metric follows from a bandwidth, as a message."""
    return prediction_pb2.TransferModel(
        fixed_seconds=value.fixed_seconds,
        sent_bytes_per_rank=value.sent_bytes_per_rank,
        assumed_bytes_per_second=value.assumed_bytes_per_second,
        assumed_source=value.assumed_source,
    )


def transfer_model_from_proto(message: prediction_pb2.TransferModel) -> TransferModel:
    """How a metric follows from a bandwidth, from its message."""
    return TransferModel(
        fixed_seconds=message.fixed_seconds,
        sent_bytes_per_rank=message.sent_bytes_per_rank,
        assumed_bytes_per_second=message.assumed_bytes_per_second,
        assumed_source=message.assumed_source,
    )


def baseline_to_proto(value: Baseline) -> prediction_pb2.Baseline:
    """A measured baseline as a message."""
    return prediction_pb2.Baseline(
        value=spread_to_proto(value.value),
        run=resource_name(RUNS, value.run) if value.run else "",
    )


def baseline_from_proto(message: prediction_pb2.Baseline) -> Baseline:
    """A measured baseline from its message."""
    return Baseline(value=spread_from_proto(message.value), run=resource_id(RUNS, message.run))


def predicted_value_to_proto(value: PredictedValue) -> prediction_pb2.PredictedValue:
    """The prediction of one metric as a message."""
    return prediction_pb2.PredictedValue(
        metric=metric_to_proto(value.metric),
        subject=value.subject,
        estimate=maybe(estimate_to_proto, value.estimate),
        transfer=maybe(transfer_model_to_proto, value.transfer),
        baseline=maybe(baseline_to_proto, value.baseline),
        missing_inputs=value.missing_inputs,
        assumptions=value.assumptions,
    )


def predicted_value_from_proto(message: prediction_pb2.PredictedValue) -> PredictedValue:
    """The prediction of one metric from its message."""
    return PredictedValue(
        metric=metric_from_proto(message.metric),
        subject=message.subject,
        estimate=estimate_from_proto(message.estimate) if message.HasField("estimate") else None,
        transfer=transfer_model_from_proto(message.transfer) if message.HasField("transfer") else None,
        baseline=baseline_from_proto(message.baseline) if message.HasField("baseline") else None,
        missing_inputs=tuple(message.missing_inputs),
        assumptions=tuple(message.assumptions),
    )


def prediction_to_proto(value: Prediction) -> prediction_pb2.Prediction:
    """A prediction as a message."""
    return prediction_pb2.Prediction(
        estimator_version=value.estimator_version,
        values=each(predicted_value_to_proto, value.values),
        store_time=maybe(timestamp_to_proto, value.store_time),
    )


def prediction_from_proto(message: prediction_pb2.Prediction) -> Prediction:
    """A prediction from its message."""
    store_time = timestamp_from_proto(message.store_time) if message.HasField("store_time") else None
    return evolve(new_prediction_from_proto(message), store_time=store_time)


def new_prediction_from_proto(message: prediction_pb2.Prediction) -> Prediction:
    """A prediction from the message of a request: when it is stored is not the caller's to say."""
    return Prediction(
        estimator_version=message.estimator_version,
        values=each_up_to(LARGEST_VALUE_COUNT, predicted_value_from_proto, message.values),
    )
