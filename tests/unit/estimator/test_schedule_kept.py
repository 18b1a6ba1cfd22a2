"""What a schedule with times keeps has a bound; passes alone are not kept."""

from collections import deque
from typing import Any

import pytest

from estimator_service.core.engine_times import timeline
from estimator_service.service import default_estimator
from linkbound.domain.engine import EngineRequest, SchedulerSettings
from linkbound.domain.errors import InvalidArgumentError
from linkbound.domain.layout import ParallelLayout
from linkbound.domain.link import Link
from linkbound.domain.schedule import ScheduleRequest, ScheduleSummary

OVER: dict[str, Any] = {
    "model": "glm-5.3",
    "layout": ParallelLayout(tensor_parallel_size=8),
    "link": Link(line_rate_bits_per_second=200 * 10**9),
}


def request(count: int, **rest: Any) -> ScheduleRequest:
    """Requests of which one ends with each pass: `count` (`count` + 1) / 2 places in passes."""
    requests = tuple(EngineRequest(prompt_tokens=1, output_tokens=1 + index) for index in range(count))
    return ScheduleRequest(requests=requests, scheduler=SchedulerSettings(max_num_batched_tokens=10**6), **rest)


def pass_count(asked: ScheduleRequest) -> int:
    (last,) = deque(default_estimator().stream_schedule(asked), maxlen=1)
    assert isinstance(last, ScheduleSummary)
    return last.pass_count


@pytest.fixture(autouse=True)
def small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "LARGEST_KEPT_SHARE_COUNT", 55)


def test_times_of_more_places_than_are_kept_are_refused() -> None:
    assert pass_count(request(10, **OVER)) == 10
    with pytest.raises(InvalidArgumentError, match="more than 55 places"):
        pass_count(request(11, **OVER))


def test_every_way_to_part_requests_counts() -> None:
    """Three that arrive together: as they are, after the first, after the second."""
    assert pass_count(request(3, arrivals_may_split=True, **OVER)) == 3
    with pytest.raises(InvalidArgumentError, match="more than 55 places"):
        pass_count(request(6, arrivals_may_split=True, **OVER))


def test_passes_alone_have_no_bound() -> None:
    assert pass_count(request(100)) == 100
