"""Converters of what `EstimateSchedule` streams, in `linkbound/estimator/v1/schedule.proto`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from linkbound.convert.schedule import (
    schedule_passes_from_proto,
    schedule_passes_to_proto,
    schedule_summary_from_proto,
    schedule_summary_to_proto,
    scheduled_requests_from_proto,
    scheduled_requests_to_proto,
)
from linkbound.domain.schedule import ScheduledRequests, SchedulePart, SchedulePasses, ScheduleSummary
from linkbound.estimator.v1 import schedule_pb2

LARGEST_REQUEST_COUNT_OF_MESSAGE = 2000
"""Requests of one message at most. With every time each takes at most 400 bytes: below 0.8 MB."""


def schedule_part_to_proto(value: SchedulePart) -> schedule_pb2.EstimateScheduleResponse:
    """A part of an answer as a message."""
    match value:
        case SchedulePasses():
            return schedule_pb2.EstimateScheduleResponse(passes=schedule_passes_to_proto(value))
        case ScheduledRequests():
            return schedule_pb2.EstimateScheduleResponse(requests=scheduled_requests_to_proto(value))
        case ScheduleSummary():
            return schedule_pb2.EstimateScheduleResponse(summary=schedule_summary_to_proto(value))


def schedule_part_from_proto(message: schedule_pb2.EstimateScheduleResponse) -> SchedulePart:
    """A part of an answer from its message; what a later version may add is no requests."""
    match message.WhichOneof("message"):
        case "passes":
            return schedule_passes_from_proto(message.passes)
        case "summary":
            return schedule_summary_from_proto(message.summary)
        case _:
            return scheduled_requests_from_proto(message.requests)


def parts_that_fit(parts: Iterable[SchedulePasses | ScheduleSummary]) -> Iterator[SchedulePart]:
    """The same parts, each of which a message holds: a summary of many requests behind the most of them."""
    for part in parts:
        if isinstance(part, ScheduleSummary):
            yield from _summary_parts(part)
        else:
            yield part


def _summary_parts(summary: ScheduleSummary) -> Iterator[SchedulePart]:
    rest = summary.requests
    while len(rest) > LARGEST_REQUEST_COUNT_OF_MESSAGE:
        yield ScheduledRequests(requests=rest[:LARGEST_REQUEST_COUNT_OF_MESSAGE])
        rest = rest[LARGEST_REQUEST_COUNT_OF_MESSAGE:]
    yield evolve(summary, requests=rest)
