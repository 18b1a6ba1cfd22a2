"""Converters of `linkbound/estimator/v1/engine.proto`."""

from __future__ import annotations

from typing import Literal

from linkbound.convert.layout import parallel_layout_from_proto, parallel_layout_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto
from linkbound.convert.values import EnumConverter, each, each_up_to, maybe
from linkbound.domain.engine import (
    DEFAULT_BLOCK_TOKENS,
    LARGEST_BURST_POINT_COUNT,
    LARGEST_ENGINE_POINT_COUNT,
    BurstPoint,
    BurstTable,
    EngineCalibration,
    EngineMetric,
    EnginePoint,
    EngineRequest,
    EngineResidual,
    EngineTable,
    EngineTerm,
    EngineTermKind,
    SchedulerSettings,
)
from linkbound.domain.measured_range import MeasuredRange
from linkbound.domain.names import ENGINE_CALIBRATIONS, MODELS, resource_id, resource_name
from linkbound.estimator.v1 import engine_pb2

_RangeName = Literal["last_ttft_range_seconds", "mean_ttft_range_seconds", "output_range_tokens_per_second"]

_METRIC = EnumConverter(EngineMetric, engine_pb2.EngineMetric)
_TERM_KIND = EnumConverter(EngineTermKind, engine_pb2.EngineTermKind)

engine_metric_to_proto = _METRIC.to_proto
engine_metric_from_proto = _METRIC.from_proto
engine_term_kind_to_proto = _TERM_KIND.to_proto
engine_term_kind_from_proto = _TERM_KIND.from_proto


def scheduler_settings_to_proto(value: SchedulerSettings) -> engine_pb2.SchedulerSettings:
    """The settings of a scheduler as a message."""
    return engine_pb2.SchedulerSettings(
        engine=value.engine,
        max_num_batched_tokens=value.max_num_batched_tokens,
        long_prefill_token_threshold=value.long_prefill_token_threshold,
        max_num_seqs=value.max_num_seqs,
        max_model_len=value.max_model_len,
        kv_block_count=value.kv_block_count,
        kv_block_tokens=value.kv_block_tokens,
        draft_token_count=value.draft_token_count,
        accepted_draft_tokens_per_pass=value.accepted_draft_tokens_per_pass,
    )


def scheduler_settings_from_proto(message: engine_pb2.SchedulerSettings) -> SchedulerSettings:
    """The settings of a scheduler from their message."""
    return SchedulerSettings(
        engine=message.engine,
        max_num_batched_tokens=message.max_num_batched_tokens,
        long_prefill_token_threshold=message.long_prefill_token_threshold,
        max_num_seqs=message.max_num_seqs if message.HasField("max_num_seqs") else None,
        max_model_len=message.max_model_len if message.HasField("max_model_len") else None,
        kv_block_count=message.kv_block_count if message.HasField("kv_block_count") else None,
        kv_block_tokens=message.kv_block_tokens if message.HasField("kv_block_tokens") else DEFAULT_BLOCK_TOKENS,
        draft_token_count=message.draft_token_count,
        accepted_draft_tokens_per_pass=(
            message.accepted_draft_tokens_per_pass if message.HasField("accepted_draft_tokens_per_pass") else None
        ),
    )


def engine_request_to_proto(value: EngineRequest) -> engine_pb2.EngineRequest:
    """A request to an engine as a message."""
    return engine_pb2.EngineRequest(
        prompt_tokens=value.prompt_tokens,
        output_tokens=value.output_tokens,
        arrival_pass=value.arrival_pass,
        arrival_seconds=value.arrival_seconds,
    )


def engine_request_from_proto(message: engine_pb2.EngineRequest) -> EngineRequest:
    """A request to an engine from its message."""
    return EngineRequest(
        prompt_tokens=message.prompt_tokens,
        output_tokens=message.output_tokens,
        arrival_pass=message.arrival_pass if message.HasField("arrival_pass") else None,
        arrival_seconds=message.arrival_seconds if message.HasField("arrival_seconds") else None,
    )


def burst_point_to_proto(value: BurstPoint) -> engine_pb2.BurstPoint:
    """Bursts of one size as a message."""
    return engine_pb2.BurstPoint(
        message_bytes=value.message_bytes,
        least_bits_per_second=value.least_bits_per_second,
        largest_bits_per_second=value.largest_bits_per_second,
    )


def burst_point_from_proto(message: engine_pb2.BurstPoint) -> BurstPoint:
    """Bursts of one size from their message."""
    return BurstPoint(
        message_bytes=message.message_bytes,
        least_bits_per_second=message.least_bits_per_second,
        largest_bits_per_second=message.largest_bits_per_second,
    )


def burst_table_to_proto(value: BurstTable) -> engine_pb2.BurstTable:
    """Bursts on a link as a message."""
    return engine_pb2.BurstTable(
        points=each(burst_point_to_proto, value.points),
        least_header_ratio=value.least_header_ratio,
        largest_header_ratio=value.largest_header_ratio,
    )


def burst_table_from_proto(message: engine_pb2.BurstTable) -> BurstTable:
    """Bursts on a link from their message."""
    return BurstTable(
        points=each_up_to(LARGEST_BURST_POINT_COUNT, burst_point_from_proto, message.points),
        least_header_ratio=message.least_header_ratio if message.HasField("least_header_ratio") else None,
        largest_header_ratio=message.largest_header_ratio if message.HasField("largest_header_ratio") else None,
    )


def measured_range_to_proto(value: MeasuredRange) -> engine_pb2.MeasuredRange:
    """The range of a figure over its rounds as a message."""
    return engine_pb2.MeasuredRange(least=value.least, largest=value.largest)


def measured_range_from_proto(message: engine_pb2.MeasuredRange) -> MeasuredRange:
    """The range of a figure over its rounds from its message."""
    return MeasuredRange(least=message.least, largest=message.largest)


def engine_point_to_proto(value: EnginePoint) -> engine_pb2.EnginePoint:
    """Requests that were measured together as a message."""
    return engine_pb2.EnginePoint(
        label=value.label,
        requests=each(engine_request_to_proto, value.requests),
        ttft_seconds=value.ttft_seconds,
        last_ttft_seconds=value.last_ttft_seconds,
        mean_ttft_seconds=value.mean_ttft_seconds,
        output_tokens_per_second=value.output_tokens_per_second,
        ttft_range_seconds=each(measured_range_to_proto, value.ttft_range_seconds),
        last_ttft_range_seconds=maybe(measured_range_to_proto, value.last_ttft_range_seconds),
        mean_ttft_range_seconds=maybe(measured_range_to_proto, value.mean_ttft_range_seconds),
        output_range_tokens_per_second=maybe(measured_range_to_proto, value.output_range_tokens_per_second),
    )


def engine_point_from_proto(message: engine_pb2.EnginePoint) -> EnginePoint:
    """Requests that were measured together from their message."""
    return EnginePoint(
        label=message.label,
        requests=each_up_to(LARGEST_ENGINE_POINT_COUNT, engine_request_from_proto, message.requests),
        ttft_seconds=tuple(message.ttft_seconds),
        last_ttft_seconds=message.last_ttft_seconds if message.HasField("last_ttft_seconds") else None,
        mean_ttft_seconds=message.mean_ttft_seconds if message.HasField("mean_ttft_seconds") else None,
        output_tokens_per_second=(
            message.output_tokens_per_second if message.HasField("output_tokens_per_second") else None
        ),
        ttft_range_seconds=each_up_to(
            LARGEST_ENGINE_POINT_COUNT, measured_range_from_proto, message.ttft_range_seconds
        ),
        last_ttft_range_seconds=_range_of(message, "last_ttft_range_seconds"),
        mean_ttft_range_seconds=_range_of(message, "mean_ttft_range_seconds"),
        output_range_tokens_per_second=_range_of(message, "output_range_tokens_per_second"),
    )


def _range_of(message: engine_pb2.EnginePoint, name: _RangeName) -> MeasuredRange | None:
    return measured_range_from_proto(getattr(message, name)) if message.HasField(name) else None


def engine_table_to_proto(value: EngineTable) -> engine_pb2.EngineTable:
    """Measured times of an engine as a message."""
    return engine_pb2.EngineTable(
        model=resource_name(MODELS, value.model) if value.model else "",
        model_config_json=value.model_config_json,
        layout=parallel_layout_to_proto(value.layout),
        link=link_to_proto(value.link),
        inner_link=maybe(link_to_proto, value.inner_link),
        bursts=maybe(burst_table_to_proto, value.bursts),
        scheduler=scheduler_settings_to_proto(value.scheduler),
        points=each(engine_point_to_proto, value.points),
    )


def engine_table_from_proto(message: engine_pb2.EngineTable) -> EngineTable:
    """Measured times of an engine from their message."""
    return EngineTable(
        model=resource_id(MODELS, message.model),
        model_config_json=message.model_config_json,
        layout=parallel_layout_from_proto(message.layout),
        link=link_from_proto(message.link),
        inner_link=link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
        bursts=burst_table_from_proto(message.bursts) if message.HasField("bursts") else None,
        scheduler=scheduler_settings_from_proto(message.scheduler),
        points=each_up_to(LARGEST_ENGINE_POINT_COUNT, engine_point_from_proto, message.points),
    )


def engine_term_to_proto(value: EngineTerm) -> engine_pb2.EngineTerm:
    """One term of a fit as a message."""
    return engine_pb2.EngineTerm(kind=engine_term_kind_to_proto(value.kind), seconds=value.seconds)


def engine_term_from_proto(message: engine_pb2.EngineTerm) -> EngineTerm:
    """One term of a fit from its message."""
    return EngineTerm(kind=engine_term_kind_from_proto(message.kind), seconds=message.seconds)


def engine_residual_to_proto(value: EngineResidual) -> engine_pb2.EngineResidual:
    """What a fit leaves at one figure as a message."""
    return engine_pb2.EngineResidual(
        label=value.label,
        metric=engine_metric_to_proto(value.metric),
        request=value.request,
        measured_seconds=value.measured_seconds,
        error_ratio=value.error_ratio,
        left_out_error_ratio=value.left_out_error_ratio,
    )


def engine_residual_from_proto(message: engine_pb2.EngineResidual) -> EngineResidual:
    """What a fit leaves at one figure from its message."""
    return EngineResidual(
        label=message.label,
        metric=engine_metric_from_proto(message.metric),
        request=message.request,
        measured_seconds=message.measured_seconds,
        error_ratio=message.error_ratio,
        left_out_error_ratio=message.left_out_error_ratio if message.HasField("left_out_error_ratio") else None,
    )


def engine_calibration_to_proto(value: EngineCalibration) -> engine_pb2.EngineCalibration:
    """A fit as a message."""
    return engine_pb2.EngineCalibration(
        name=resource_name(ENGINE_CALIBRATIONS, value.engine_calibration_id) if value.engine_calibration_id else "",
        table=engine_table_to_proto(value.table),
        terms=each(engine_term_to_proto, value.terms),
        residuals=each(engine_residual_to_proto, value.residuals),
        interval_fraction=value.interval_fraction,
        assumptions=value.assumptions,
        sources=value.sources,
    )


def engine_calibration_from_proto(message: engine_pb2.EngineCalibration) -> EngineCalibration:
    """A fit from its message."""
    return EngineCalibration(
        engine_calibration_id=resource_id(ENGINE_CALIBRATIONS, message.name),
        table=engine_table_from_proto(message.table),
        terms=each(engine_term_from_proto, message.terms),
        residuals=each(engine_residual_from_proto, message.residuals),
        interval_fraction=message.interval_fraction if message.HasField("interval_fraction") else None,
        assumptions=tuple(message.assumptions),
        sources=tuple(message.sources),
    )
