"""Streams of the estimator: the points of a sweep, and the passes of a schedule."""

from __future__ import annotations

from linkbound.client.remote.streams import StreamMethod
from linkbound.convert.schedule import schedule_request_to_proto
from linkbound.convert.schedule_parts import schedule_part_from_proto
from linkbound.convert.sweep import sweep_columns_from_proto, sweep_request_to_proto
from linkbound.domain.schedule import SchedulePart, ScheduleRequest
from linkbound.domain.sweep import SweepColumns, SweepRequest
from linkbound.estimator.v1.schedule_pb2 import EstimateScheduleResponse
from linkbound.estimator.v1.sweep_pb2 import StreamSweepResponse

STREAM_SWEEP: StreamMethod[SweepRequest, SweepColumns] = StreamMethod(
    path="/linkbound.estimator.v1.EstimatorService/StreamSweep",
    request_to_proto=sweep_request_to_proto,
    response_type=StreamSweepResponse,
    part_from_proto=sweep_columns_from_proto,
    tells_taken_streams=True,
)
ESTIMATE_SCHEDULE: StreamMethod[ScheduleRequest, SchedulePart] = StreamMethod(
    path="/linkbound.estimator.v1.EstimatorService/EstimateSchedule",
    request_to_proto=schedule_request_to_proto,
    response_type=EstimateScheduleResponse,
    part_from_proto=schedule_part_from_proto,
    tells_taken_streams=True,
)
