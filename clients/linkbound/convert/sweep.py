"""Converters of `linkbound/estimator/v1/sweep.proto`."""

from __future__ import annotations

from linkbound.convert.link import link_from_proto, link_to_proto
from linkbound.convert.packed import add_columns, as_column, column_of
from linkbound.convert.values import EnumConverter, each, each_up_to, maybe
from linkbound.convert.workload import prefill_workload_from_proto, prefill_workload_to_proto
from linkbound.domain.errors import InternalError
from linkbound.domain.sweep import (
    DEFAULT_POINTS_PER_RESPONSE,
    LARGEST_AXIS_COUNT,
    SweepAxis,
    SweepColumns,
    SweepRange,
    SweepRequest,
    SweepVariable,
)
from linkbound.estimator.v1 import sweep_pb2

_VARIABLE = EnumConverter(SweepVariable, sweep_pb2.SweepVariable)

sweep_variable_to_proto = _VARIABLE.to_proto
sweep_variable_from_proto = _VARIABLE.from_proto


def sweep_range_to_proto(value: SweepRange) -> sweep_pb2.SweepRange:
    """Evenly spaced values as a message."""
    return sweep_pb2.SweepRange(first=value.first, step=value.step, value_count=value.value_count)


def sweep_range_from_proto(message: sweep_pb2.SweepRange) -> SweepRange:
    """Evenly spaced values from their message."""
    return SweepRange(first=message.first, step=message.step, value_count=message.value_count)


def sweep_axis_to_proto(value: SweepAxis) -> sweep_pb2.SweepAxis:
    """An axis as a message."""
    return sweep_pb2.SweepAxis(
        variable=sweep_variable_to_proto(value.variable),
        values=value.values,
        range=maybe(sweep_range_to_proto, value.range),
    )


def sweep_axis_from_proto(message: sweep_pb2.SweepAxis) -> SweepAxis:
    """An axis from its message."""
    return SweepAxis(
        variable=sweep_variable_from_proto(message.variable),
        values=tuple(message.values),
        range=sweep_range_from_proto(message.range) if message.HasField("range") else None,
    )


def sweep_request_to_proto(value: SweepRequest) -> sweep_pb2.StreamSweepRequest:
    """A sweep as a message."""
    return sweep_pb2.StreamSweepRequest(
        workload=prefill_workload_to_proto(value.workload),
        link=link_to_proto(value.link),
        to_link=maybe(link_to_proto, value.to_link),
        axes=each(sweep_axis_to_proto, value.axes),
        start_index=value.start_index,
        points_per_response=value.points_per_response,
    )


def sweep_request_from_proto(message: sweep_pb2.StreamSweepRequest) -> SweepRequest:
    """A sweep from its message. Raises InvalidArgumentError with every violation."""
    return SweepRequest(
        workload=prefill_workload_from_proto(message.workload),
        link=link_from_proto(message.link),
        to_link=link_from_proto(message.to_link) if message.HasField("to_link") else None,
        axes=each_up_to(LARGEST_AXIS_COUNT, sweep_axis_from_proto, message.axes),
        start_index=message.start_index,
        points_per_response=(
            message.points_per_response if message.HasField("points_per_response") else DEFAULT_POINTS_PER_RESPONSE
        ),
    )


def sweep_columns_to_proto(value: SweepColumns) -> sweep_pb2.StreamSweepResponse:
    """A stretch of points as a message."""
    message = sweep_pb2.StreamSweepResponse(
        start_index=value.start_index,
        point_count=value.point_count,
        total_point_count=value.total_point_count,
        estimator_version=value.estimator_version,
        assumptions=value.assumptions,
    )
    columns = {
        "sent_bytes_per_rank": as_column("q", value.sent_bytes_per_rank),
        "network_seconds": as_column("d", value.network_seconds),
        "extra_ttft_lower_seconds": as_column("d", value.extra_ttft_lower_seconds),
        "extra_ttft_upper_seconds": as_column("d", value.extra_ttft_upper_seconds),
        "infeasible_indices": as_column("q", value.infeasible_indices),
    }
    return add_columns(message, columns)


def sweep_columns_from_proto(message: sweep_pb2.StreamSweepResponse) -> SweepColumns:
    """A stretch of points from its message. Raises InternalError (MALFORMED_ANSWER) where columns differ in length."""
    columns = SweepColumns(
        start_index=message.start_index,
        total_point_count=message.total_point_count,
        sent_bytes_per_rank=column_of(message, "sent_bytes_per_rank", "q"),
        network_seconds=column_of(message, "network_seconds", "d"),
        extra_ttft_lower_seconds=column_of(message, "extra_ttft_lower_seconds", "d"),
        extra_ttft_upper_seconds=column_of(message, "extra_ttft_upper_seconds", "d"),
        infeasible_indices=column_of(message, "infeasible_indices", "q"),
        estimator_version=message.estimator_version,
        assumptions=tuple(message.assumptions),
    )
    lengths = {len(columns.sent_bytes_per_rank), len(columns.network_seconds)}
    changes = {len(columns.extra_ttft_lower_seconds), len(columns.extra_ttft_upper_seconds)}
    if lengths != {message.point_count} or changes not in ({0}, {message.point_count}):
        raise InternalError(
            f"the columns of {message.point_count} points have {sorted(lengths | changes)} entries",
            reason="MALFORMED_ANSWER",
            metadata={"startIndex": str(message.start_index)},
        )
    return columns
