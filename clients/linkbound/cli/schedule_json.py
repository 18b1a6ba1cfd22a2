"""A schedule as one JSON document, pass by pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import evolve

from linkbound.cli.output import JsonDocument
from linkbound.convert.json import message_to_json
from linkbound.convert.schedule import request_times_to_proto, schedule_pass_to_proto, schedule_summary_to_proto
from linkbound.domain.schedule import RequestTimes, SchedulePass, ScheduleSummary


def print_schedule_as_json(entries: Iterable[SchedulePass | ScheduleSummary]) -> None:
    """Prints the messages of an answer as they come, none of which is kept."""
    document = JsonDocument()
    for entry in entries:
        if isinstance(entry, SchedulePass):
            document.add("passes", message_to_json(schedule_pass_to_proto(entry)))
        else:
            for request in entry.requests:
                document.add("requests", _request_as_json(request))
            rest = message_to_json(schedule_summary_to_proto(evolve(entry, requests=())))
            document.end({name: value for name, value in rest.items() if name != "requests"})


def _request_as_json(request: RequestTimes) -> dict[str, Any]:
    """A request with the TTFT that is known best."""
    written = message_to_json(request_times_to_proto(request))
    ttft = written.get("ttft")
    if ttft is not None:
        written["ttft_seconds"] = ttft.get("calibrated_ttft_seconds", ttft["ttft_seconds"])
    return written
