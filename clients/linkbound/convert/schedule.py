"""Converters of `EstimateSchedule` in `linkbound/estimator/v1/schedule.proto`."""

from __future__ import annotations

from linkbound.convert.calibration import collective_table_from_proto, collective_table_to_proto
from linkbound.convert.engine import (
    burst_table_from_proto,
    burst_table_to_proto,
    engine_calibration_from_proto,
    engine_calibration_to_proto,
    engine_request_from_proto,
    engine_request_to_proto,
    engine_table_from_proto,
    engine_table_to_proto,
    scheduler_settings_from_proto,
    scheduler_settings_to_proto,
)
from linkbound.convert.estimate import estimate_from_proto, write_estimate
from linkbound.convert.layout import parallel_layout_from_proto, parallel_layout_to_proto
from linkbound.convert.link import link_from_proto, link_to_proto, resolved_link_from_proto, resolved_link_to_proto
from linkbound.convert.values import each, each_up_to, maybe
from linkbound.domain.engine import LARGEST_SCHEDULED_REQUEST_COUNT
from linkbound.domain.names import CALIBRATIONS, ENGINE_CALIBRATIONS, MODELS, resource_id, resource_name
from linkbound.domain.schedule import (
    PassShare,
    RequestTimes,
    ScheduledRequests,
    SchedulePass,
    SchedulePasses,
    ScheduleRequest,
    ScheduleSummary,
    TtftEstimates,
)
from linkbound.estimator.v1 import schedule_pb2


def schedule_request_to_proto(value: ScheduleRequest) -> schedule_pb2.EstimateScheduleRequest:
    """A schedule question as a message."""
    engine_calibration = value.engine_calibration
    return schedule_pb2.EstimateScheduleRequest(
        requests=each(engine_request_to_proto, value.requests),
        scheduler=maybe(scheduler_settings_to_proto, value.scheduler),
        arrivals_may_split=value.arrivals_may_split,
        model=resource_name(MODELS, value.model) if value.model else "",
        model_config_json=value.model_config_json,
        layout=maybe(parallel_layout_to_proto, value.layout),
        link=maybe(link_to_proto, value.link),
        to_link=maybe(link_to_proto, value.to_link),
        inner_link=maybe(link_to_proto, value.inner_link),
        to_bursts=maybe(burst_table_to_proto, value.to_bursts),
        calibration=resource_name(CALIBRATIONS, value.calibration) if value.calibration else "",
        collective_table=maybe(collective_table_to_proto, value.collective_table),
        engine_calibration=resource_name(ENGINE_CALIBRATIONS, engine_calibration) if engine_calibration else "",
        engine_table=maybe(engine_table_to_proto, value.engine_table),
        start_index=value.start_index,
    )


def schedule_request_from_proto(message: schedule_pb2.EstimateScheduleRequest) -> ScheduleRequest:
    """A schedule question from its message. Raises InvalidArgumentError with every violation."""
    return ScheduleRequest(
        requests=each_up_to(LARGEST_SCHEDULED_REQUEST_COUNT, engine_request_from_proto, message.requests),
        scheduler=scheduler_settings_from_proto(message.scheduler) if message.HasField("scheduler") else None,
        arrivals_may_split=message.arrivals_may_split,
        model=resource_id(MODELS, message.model),
        model_config_json=message.model_config_json,
        layout=parallel_layout_from_proto(message.layout) if message.HasField("layout") else None,
        link=link_from_proto(message.link) if message.HasField("link") else None,
        to_link=link_from_proto(message.to_link) if message.HasField("to_link") else None,
        inner_link=link_from_proto(message.inner_link) if message.HasField("inner_link") else None,
        to_bursts=burst_table_from_proto(message.to_bursts) if message.HasField("to_bursts") else None,
        calibration=resource_id(CALIBRATIONS, message.calibration),
        collective_table=(
            collective_table_from_proto(message.collective_table) if message.HasField("collective_table") else None
        ),
        engine_calibration=resource_id(ENGINE_CALIBRATIONS, message.engine_calibration),
        engine_table=engine_table_from_proto(message.engine_table) if message.HasField("engine_table") else None,
        start_index=message.start_index,
    )


def pass_share_to_proto(value: PassShare) -> schedule_pb2.PassShare:
    """What a request takes of a pass as a message."""
    return schedule_pb2.PassShare(request=value.request, tokens=value.tokens)


def pass_share_from_proto(message: schedule_pb2.PassShare) -> PassShare:
    """What a request takes of a pass from its message."""
    return PassShare(message.request, message.tokens)


def schedule_pass_to_proto(value: SchedulePass) -> schedule_pb2.SchedulePass:
    """Equal passes as a message."""
    message = schedule_pb2.SchedulePass()
    _write_pass(value, message)
    return message


def _write_pass(value: SchedulePass, message: schedule_pb2.SchedulePass) -> None:
    for share in value.scheduled:
        message.scheduled.add(request=share.request, tokens=share.tokens)
    message.repeat = value.repeat
    if value.network_seconds is not None:
        write_estimate(value.network_seconds, message.network_seconds)
    if value.seconds is not None:
        write_estimate(value.seconds, message.seconds)


def schedule_pass_from_proto(message: schedule_pb2.SchedulePass) -> SchedulePass:
    """Equal passes from their message."""
    return SchedulePass(
        scheduled=each(pass_share_from_proto, message.scheduled),
        repeat=message.repeat,
        network_seconds=estimate_from_proto(message.network_seconds) if message.HasField("network_seconds") else None,
        seconds=estimate_from_proto(message.seconds) if message.HasField("seconds") else None,
    )


def schedule_passes_to_proto(value: SchedulePasses) -> schedule_pb2.SchedulePasses:
    """A stretch of passes as a message."""
    message = schedule_pb2.SchedulePasses(start_index=value.start_index, estimator_version=value.estimator_version)
    for one in value.passes:
        _write_pass(one, message.passes.add())
    return message


def schedule_passes_from_proto(message: schedule_pb2.SchedulePasses) -> SchedulePasses:
    """A stretch of passes from its message."""
    return SchedulePasses(
        start_index=message.start_index,
        passes=each(schedule_pass_from_proto, message.passes),
        estimator_version=message.estimator_version,
    )


def ttft_estimates_to_proto(value: TtftEstimates) -> schedule_pb2.TtftEstimates:
    """A TTFT as a message."""
    message = schedule_pb2.TtftEstimates()
    _write_ttft(value, message)
    return message


def _write_ttft(value: TtftEstimates, message: schedule_pb2.TtftEstimates) -> None:
    write_estimate(value.ttft_seconds, message.ttft_seconds)
    if value.extra_ttft_seconds is not None:
        write_estimate(value.extra_ttft_seconds, message.extra_ttft_seconds)
    if value.calibrated_ttft_seconds is not None:
        write_estimate(value.calibrated_ttft_seconds, message.calibrated_ttft_seconds)
    if value.calibrated_extra_ttft_seconds is not None:
        write_estimate(value.calibrated_extra_ttft_seconds, message.calibrated_extra_ttft_seconds)


def ttft_estimates_from_proto(message: schedule_pb2.TtftEstimates) -> TtftEstimates:
    """A TTFT from its message."""
    return TtftEstimates(
        ttft_seconds=estimate_from_proto(message.ttft_seconds),
        extra_ttft_seconds=(
            estimate_from_proto(message.extra_ttft_seconds) if message.HasField("extra_ttft_seconds") else None
        ),
        calibrated_ttft_seconds=(
            estimate_from_proto(message.calibrated_ttft_seconds)
            if message.HasField("calibrated_ttft_seconds")
            else None
        ),
        calibrated_extra_ttft_seconds=(
            estimate_from_proto(message.calibrated_extra_ttft_seconds)
            if message.HasField("calibrated_extra_ttft_seconds")
            else None
        ),
    )


def request_times_to_proto(value: RequestTimes) -> schedule_pb2.RequestTimes:
    """When a request gets its tokens as a message."""
    message = schedule_pb2.RequestTimes()
    _write_request(value, message)
    return message


def _write_request(value: RequestTimes, message: schedule_pb2.RequestTimes) -> None:
    message.request = value.request
    message.first_token_pass = value.first_token_pass
    message.last_token_pass = value.last_token_pass
    message.preemption_count = value.preemption_count
    message.output_tokens = value.output_tokens
    if value.ttft is not None:
        _write_ttft(value.ttft, message.ttft)
    if value.output_tokens_per_second is not None:
        write_estimate(value.output_tokens_per_second, message.output_tokens_per_second)


def request_times_from_proto(message: schedule_pb2.RequestTimes) -> RequestTimes:
    """When a request gets its tokens from its message."""
    return RequestTimes(
        request=message.request,
        first_token_pass=message.first_token_pass,
        last_token_pass=message.last_token_pass,
        preemption_count=message.preemption_count,
        output_tokens=message.output_tokens,
        ttft=ttft_estimates_from_proto(message.ttft) if message.HasField("ttft") else None,
        output_tokens_per_second=(
            estimate_from_proto(message.output_tokens_per_second)
            if message.HasField("output_tokens_per_second")
            else None
        ),
    )


def scheduled_requests_to_proto(value: ScheduledRequests) -> schedule_pb2.ScheduledRequests:
    """A stretch of requests as a message."""
    message = schedule_pb2.ScheduledRequests()
    for one in value.requests:
        _write_request(one, message.requests.add())
    return message


def scheduled_requests_from_proto(message: schedule_pb2.ScheduledRequests) -> ScheduledRequests:
    """A stretch of requests from its message."""
    return ScheduledRequests(requests=each(request_times_from_proto, message.requests))


def schedule_summary_to_proto(value: ScheduleSummary) -> schedule_pb2.ScheduleSummary:
    """What follows from passes as a message."""
    message = schedule_pb2.ScheduleSummary(
        pass_count=value.pass_count,
        last_ttft=maybe(ttft_estimates_to_proto, value.last_ttft),
        mean_ttft=maybe(ttft_estimates_to_proto, value.mean_ttft),
        scheduler=scheduler_settings_to_proto(value.scheduler),
        model=resource_name(MODELS, value.model) if value.model else "",
        layout=maybe(parallel_layout_to_proto, value.layout),
        link=maybe(resolved_link_to_proto, value.link),
        to_link=maybe(resolved_link_to_proto, value.to_link),
        engine_calibration=maybe(engine_calibration_to_proto, value.engine_calibration),
        assumptions=value.assumptions,
        estimator_version=value.estimator_version,
    )
    for one in value.requests:
        _write_request(one, message.requests.add())
    return message


def schedule_summary_from_proto(message: schedule_pb2.ScheduleSummary) -> ScheduleSummary:
    """What follows from passes from its message."""
    return ScheduleSummary(
        requests=each(request_times_from_proto, message.requests),
        pass_count=message.pass_count,
        last_ttft=ttft_estimates_from_proto(message.last_ttft) if message.HasField("last_ttft") else None,
        mean_ttft=ttft_estimates_from_proto(message.mean_ttft) if message.HasField("mean_ttft") else None,
        scheduler=scheduler_settings_from_proto(message.scheduler),
        model=resource_id(MODELS, message.model),
        layout=parallel_layout_from_proto(message.layout) if message.HasField("layout") else None,
        link=resolved_link_from_proto(message.link) if message.HasField("link") else None,
        to_link=resolved_link_from_proto(message.to_link) if message.HasField("to_link") else None,
        engine_calibration=(
            engine_calibration_from_proto(message.engine_calibration)
            if message.HasField("engine_calibration")
            else None
        ),
        assumptions=tuple(message.assumptions),
        estimator_version=message.estimator_version,
    )
