"""`EstimateSchedule` on the wire: the messages of a stream, put together to one answer."""

from __future__ import annotations

from linkbound.convert.schedule import schedule_part_from_proto
from linkbound.domain.errors import UnavailableError
from linkbound.domain.schedule import ScheduleEstimate, SchedulePass, ScheduleSummary
from linkbound.estimator.v1.schedule_pb2 import EstimateScheduleResponse


class ScheduleAssembly:
    """Takes the messages of one stream in their order."""

    def __init__(self) -> None:
        self._passes: list[SchedulePass] = []
        self._summary: ScheduleSummary | None = None

    def take(self, message: EstimateScheduleResponse) -> None:
        """Note the next message."""
        part = schedule_part_from_proto(message)
        if isinstance(part, ScheduleSummary):
            self._summary = part
        else:
            self._passes.extend(part)

    def result(self) -> ScheduleEstimate:
        """The answer. Raises UnavailableError (STREAM_ENDED) where its summary did not come."""
        if self._summary is None:
            message = f"the schedule broke: the stream ended after {len(self._passes)} passes, without its summary"
            raise UnavailableError(message, reason="STREAM_ENDED")
        return ScheduleEstimate(passes=tuple(self._passes), summary=self._summary)
