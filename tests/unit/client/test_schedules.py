"""A schedule that comes in messages, put together; and one whose end does not come."""

import pytest

from linkbound.client.remote.schedules import ScheduleAssembly
from linkbound.convert.schedule import schedule_part_to_proto
from linkbound.domain.engine import SchedulerSettings
from linkbound.domain.errors import UnavailableError
from linkbound.domain.schedule import PassShare, ScheduleEstimate, SchedulePass, ScheduleSummary

PASSES = tuple(SchedulePass(scheduled=(PassShare(0, index),), repeat=index) for index in range(1, 6))
SUMMARY = ScheduleSummary(
    requests=(), pass_count=15, scheduler=SchedulerSettings(max_num_batched_tokens=1), estimator_version="1"
)


def assembly_of(*parts: tuple[SchedulePass, ...] | ScheduleSummary) -> ScheduleAssembly:
    assembly = ScheduleAssembly()
    for part in parts:
        assembly.take(schedule_part_to_proto(part))
    return assembly


def test_stretches_are_put_together_in_their_order() -> None:
    found = assembly_of(PASSES[:2], PASSES[2:3], PASSES[3:], SUMMARY).result()
    assert found == ScheduleEstimate(passes=PASSES, summary=SUMMARY)


@pytest.mark.parametrize("parts", [(), (PASSES,), (PASSES[:3], PASSES[3:])])
def test_without_its_summary_it_is_no_answer(parts: tuple[tuple[SchedulePass, ...], ...]) -> None:
    with pytest.raises(UnavailableError, match="without its summary") as caught:
        assembly_of(*parts).result()
    assert caught.value.reason == "STREAM_ENDED"
