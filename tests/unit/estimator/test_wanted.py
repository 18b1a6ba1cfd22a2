"""Long work ends between two passes once nobody waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from attrs import evolve

from estimator_service.core.engine_times.fit import fit_engine
from estimator_service.core.wanted import UnwantedError, check_wanted, wanted_until
from estimator_service.service import default_estimator
from estimator_service.threads import in_thread
from linkbound.domain.engine import EngineRequest, SchedulerSettings
from linkbound.domain.schedule import ScheduleRequest, ScheduleSummary
from tests.unit.estimator.engine_models import MODEL, Parts, measured_table

PASS_COUNT = 20
REQUESTS = tuple(EngineRequest(prompt_tokens=1, output_tokens=1 + index) for index in range(PASS_COUNT))
"""One ends with each pass, so that each pass is a stretch of its own."""
PASSES_ALONE = ScheduleRequest(requests=REQUESTS, scheduler=SchedulerSettings(max_num_batched_tokens=10**6))
WITH_TIMES = evolve(PASSES_ALONE, engine_calibration="glm-5.3-dgx-spark-8-200g")
BY_TIME = evolve(WITH_TIMES, requests=tuple(evolve(one, arrival_seconds=0.0) for one in REQUESTS))
RESUMED = evolve(WITH_TIMES, start_index=PASS_COUNT)
ESTIMATOR = default_estimator()
PATIENCE_SECONDS = 60.0


class Caller:
    """Waits until it was looked for `patience` times; None: for ever."""

    def __init__(self, patience: int | None = None) -> None:
        self.look_count = 0
        self._patience = patience

    def is_gone(self) -> bool:
        self.look_count += 1
        return self._patience is not None and self.look_count > self._patience


def schedule(request: ScheduleRequest) -> int:
    """Answers a schedule and says how many passes it has."""
    *_, last = ESTIMATOR.stream_schedule(request)
    assert isinstance(last, ScheduleSummary)
    return last.pass_count


def fit() -> None:
    fit_engine(measured_table(Parts(row=1e-3)), MODEL)


LONG_WORK = [
    pytest.param(lambda: schedule(PASSES_ALONE), id="passes alone"),
    pytest.param(lambda: schedule(WITH_TIMES), id="with times"),
    pytest.param(lambda: schedule(BY_TIME), id="arrivals by time"),
    pytest.param(lambda: schedule(RESUMED), id="resumed behind the last pass"),
    pytest.param(fit, id="fit"),
]


def looks_of(work: Callable[[], object]) -> int:
    # What is read and fitted once alone is not counted.
    work()
    caller = Caller()
    with wanted_until(caller.is_gone):
        work()
    return caller.look_count


@pytest.mark.parametrize("work", LONG_WORK)
def test_work_ends_where_it_looks_for_its_caller_in_vain(work: Callable[[], object]) -> None:
    for patience in range(0, looks_of(work), 7):
        caller = Caller(patience)
        with wanted_until(caller.is_gone), pytest.raises(UnwantedError):
            work()
        assert caller.look_count == patience + 1


@pytest.mark.parametrize(
    ("asked", "stage_count"),
    [
        pytest.param(PASSES_ALONE, 2, id="replayed and shown"),
        pytest.param(WITH_TIMES, 3, id="replayed, priced and shown"),
        pytest.param(RESUMED, 3, id="resumed"),
    ],
)
def test_every_stage_looks_after_every_pass(asked: ScheduleRequest, stage_count: int) -> None:
    half = evolve(asked, requests=REQUESTS[: PASS_COUNT // 2], start_index=asked.start_index // 2)
    assert (schedule(asked), schedule(half)) == (PASS_COUNT, PASS_COUNT // 2)
    more = looks_of(lambda: schedule(asked)) - looks_of(lambda: schedule(half))
    assert more == stage_count * PASS_COUNT // 2


def test_a_fit_looks_after_every_pass_of_every_point() -> None:
    table = measured_table(Parts(row=1e-3))
    assert looks_of(fit) >= 2 * sum(len(point.requests) for point in table.points)


def test_nobody_is_looked_for_behind_the_block() -> None:
    with wanted_until(lambda: True), pytest.raises(UnwantedError):
        check_wanted()
    check_wanted()


async def test_a_thread_answers_or_raises() -> None:
    assert await in_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await in_thread(divmod, 7, 0)


async def test_work_in_a_thread_ends_when_its_caller_is_cancelled() -> None:
    has_begun, has_ended = threading.Event(), threading.Event()

    def work() -> None:
        has_begun.set()
        try:
            while True:
                check_wanted()
        except UnwantedError:
            has_ended.set()
            raise

    task = asyncio.ensure_future(in_thread(work))
    assert await asyncio.to_thread(has_begun.wait, PATIENCE_SECONDS)
    assert not has_ended.is_set()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(has_ended.wait, PATIENCE_SECONDS)
